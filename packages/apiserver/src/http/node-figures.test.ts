/** The figures of a node, through the API server, over real connections. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resources } from "@longshore/kube";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { HttpsConnections } from "../testing/http.ts";
import { adminToken, janeToken, realEnv, serveForTest, type TestServer } from "../testing/serve.ts";

const admin = { authorization: `Bearer ${adminToken}` };
const jane = { authorization: `Bearer ${janeToken}` };
const summary = "/api/v1/nodes/n1/proxy/stats/summary";

let dir: string;
let node: Server;
let test: TestServer;
let connections: HttpsConnections;
const asked: string[] = [];
let answer = { code: 200, text: '{"node":{"nodeName":"n1"}}' };

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "longshore-proxy-"));
  node = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(answer.code).end(answer.text);
  });
  await new Promise<void>((resolve) => node.listen(join(dir, "n1"), resolve));
  const nodeSocket = (name: string) => (name === "far" ? undefined : join(dir, name));
  test = await serveForTest({}, realEnv, {}, { nodeSocket });
  connections = new HttpsConnections(test.front.url, { ca: test.authority.certificate });
  const { signal } = new AbortController();
  for (const name of ["n1", "n2", "far"]) {
    await test.server
      .client()
      .create(resources.nodes, { apiVersion: "v1", kind: "Node", metadata: { name } }, { signal });
  }
});
afterAll(async () => {
  connections.close();
  await test.stop();
  node.close();
  rmSync(dir, { recursive: true });
});
beforeEach(() => {
  asked.length = 0;
  answer = { code: 200, text: '{"node":{"nodeName":"n1"}}' };
});

const get = async (path: string, headers: Record<string, string> = admin, method = "GET") => {
  const { status, headers: got, body } = await connections.send({ method, path, headers });
  return { status, type: got["content-type"], text: body.toString() };
};

describe("stats/summary through nodes/NAME/proxy", () => {
  it("is what the node answers", async () => {
    expect(await get(`${summary}?x=1`)).toEqual({ status: 200, type: "application/json", text: answer.text });
    expect(asked).toEqual(["GET /stats/summary?x=1"]);
  });

  it("is answered as metrics are, too", async () => {
    answer = { code: 200, text: "kubelet_volume_stats_capacity_bytes 1\n" };
    const { status, type, text } = await get("/api/v1/nodes/n1/proxy/metrics");
    expect([status, type, text]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8", answer.text]);
    expect(asked).toEqual(["GET /metrics?"]);
    expect((await get("/api/v1/nodes/n1/proxy/metrics", jane)).status).toBe(403);
  });

  it("is named by discovery, as the sub-resources of a pod that a node answers", async () => {
    const { resources: found } = JSON.parse((await get("/api/v1")).text);
    const kindOf = (wanted: string) => found.find(({ name }: { name: string }) => name === wanted)?.kind;
    expect(["nodes/proxy", "pods/attach", "pods/exec", "pods/portforward"].map(kindOf)).toEqual([
      "NodeProxyOptions",
      "PodAttachOptions",
      "PodExecOptions",
      "PodPortForwardOptions",
    ]);
  });

  it("needs the right to get nodes/proxy", async () => {
    const refused = await get(summary, jane);
    expect(refused.status).toBe(403);
    expect(refused.text).toContain('cannot get resource \\"nodes/proxy\\"');
    expect(asked).toEqual([]);
  });

  it.each([
    ["/api/v1/nodes/n1/proxy/containerLogs/ns/pod/main"],
    ["/api/v1/nodes/n1/proxy/stats/../containerLogs/ns/pod/main"],
    ["/api/v1/nodes/n1/proxy/stats//summary"],
    ["/api/v1/nodes/n1/proxy/metrics/cadvisor"],
    ["/api/v1/nodes/n1/proxy/"],
    ["/api/v1/nodes/n1/status/stats/summary"],
    ["/api/v1/proxy/nodes/n1/stats/summary"],
  ])("is all that is passed on: %s is not", async (path) => {
    expect((await get(path)).status).toBe(404);
    expect(asked).toEqual([]);
  });

  it("is read alone", async () => {
    for (const method of ["POST", "PUT", "DELETE"])
      expect((await get(summary, admin, method)).status).toBe(404);
    expect(asked).toEqual([]);
  });

  it.each([
    ["gone", 404, 'nodes \\"gone\\" not found'],
    ["far", 503, "node far has no address"],
    ["n2", 503, "the node does not answer"],
  ])("of node %s: %i, %s", async (name, code, message) => {
    const refused = await get(`/api/v1/nodes/${name}/proxy/stats/summary`);
    expect(refused.status).toBe(code);
    expect(refused.text).toContain(message);
  });

  it("passes on what the node refuses", async () => {
    answer = { code: 500, text: "the node is starting" };
    const refused = await get(summary);
    expect(refused.status).toBe(500);
    expect(refused.text).toContain("the node is starting");
  });
});
