import { createMeter } from "@longshore/runtime";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HttpsConnections } from "../testing/http.ts";
import { adminToken, janeToken, realEnv, serveForTest, type TestServer } from "../testing/serve.ts";

let api: TestServer;
let over: HttpsConnections;

beforeAll(async () => {
  const meter = createMeter();
  api = await serveForTest({}, { ...realEnv, meter }, {}, { metrics: meter });
  over = new HttpsConnections(api.front.url, { ca: api.authority.certificate });
});
afterAll(async () => {
  over.close();
  await api.stop();
});

async function ask(path: string, token = adminToken, method = "GET", body?: object) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const answer = await over.send({ method, path, headers, ...(body && { body: JSON.stringify(body) }) });
  return { status: answer.status, type: answer.headers["content-type"], text: answer.body.toString() };
}

const configMaps = "/api/v1/namespaces/default/configmaps";

test("requests are counted by what they are about, and nothing that a client makes up becomes a label", async () => {
  await ask(configMaps, adminToken, "POST", { metadata: { name: "a" } });
  await ask(`${configMaps}/a?dryRun=All`, adminToken, "DELETE");
  await ask(`${configMaps}/missing`);
  await ask(configMaps, janeToken);
  await ask("/apis/made.up/v1/things");
  await ask("/made/up");
  const { status, type, text } = await ask("/metrics");
  expect([status, type]).toEqual([200, expect.stringContaining("text/plain; version=0.0.4")]);
  const total = text.split("\n").filter((line) => line.startsWith("apiserver_request_total{"));
  const ofConfigMaps = 'group="",version="v1",resource="configmaps",subresource=""';
  expect(total).toEqual(
    expect.arrayContaining([
      `apiserver_request_total{verb="POST",dry_run="",${ofConfigMaps},scope="namespace",component="apiserver",code="201"} 1`,
      `apiserver_request_total{verb="DELETE",dry_run="All",${ofConfigMaps},scope="resource",component="apiserver",code="200"} 1`,
      `apiserver_request_total{verb="GET",dry_run="",${ofConfigMaps},scope="resource",component="apiserver",code="404"} 1`,
      `apiserver_request_total{verb="LIST",dry_run="",${ofConfigMaps},scope="namespace",component="apiserver",code="403"} 1`,
    ]),
  );
  expect(text).not.toContain("made");
  expect(text).toContain('apiserver_storage_objects{resource="configmaps"} 1');
  expect(text).toContain('apiserver_current_inflight_requests{request_kind="readOnly"} 1');
  expect(text).toMatch(/apiserver_request_duration_seconds_count\{verb="POST",.*configmaps.* 1/);
});

test("an open watch is counted while it lasts", async () => {
  const watches = async () => {
    const { text } = await ask("/metrics");
    const [line = ""] = text
      .split("\n")
      .filter((one) => one.startsWith("apiserver_longrunning_requests{") && one.includes("configmaps"));
    return line.split("} ")[1];
  };
  const headers = { authorization: `Bearer ${adminToken}` };
  const watch = await over.open({ path: `${configMaps}?watch=1`, headers });
  expect(await watches()).toBe("1");
  watch.destroy();
  await expect.poll(watches).toBe("0");
});

test("they are for who may read that path", async () => {
  expect(await ask("/metrics", janeToken)).toMatchObject({ status: 403 });
  await ask("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", adminToken, "POST", {
    metadata: { name: "jane-monitors" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:monitoring" },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "jane" }],
  });
  expect(await ask("/metrics", janeToken)).toMatchObject({ status: 200 });
  expect(await ask("/metrics", adminToken, "POST")).toMatchObject({ status: 405 });
});

test("a server without them has no such path", async () => {
  const plain = await serveForTest();
  const connections = new HttpsConnections(plain.front.url, { ca: plain.authority.certificate });
  const headers = { authorization: `Bearer ${adminToken}` };
  expect((await connections.send({ path: "/metrics", headers })).status).toBe(404);
  connections.close();
  await plain.stop();
});
