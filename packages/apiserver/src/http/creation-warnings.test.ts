import { afterAll, beforeAll, expect, it } from "vitest";
import { HttpsConnections } from "../testing/http.ts";
import { adminToken, serveForTest, type TestServer } from "../testing/serve.ts";

let server: TestServer;
let to: HttpsConnections;
const says = "nothing routes it";
beforeAll(async () => {
  server = await serveForTest({ creationWarnings: { "Ingress.networking.k8s.io": says } });
  to = new HttpsConnections(server.front.url, { ca: server.authority.certificate });
});
afterAll(async () => {
  to.close();
  await server.stop();
});

const ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
const ingress = (name: string) =>
  JSON.stringify({
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name },
    spec: { defaultBackend: { service: { name: "a", port: { number: 80 } } } },
  });

async function send(method: string, path: string, body: string, type = "application/json") {
  const headers = { authorization: `Bearer ${adminToken}`, "content-type": type };
  const answer = await to.send({ method, path, body, headers });
  return [answer.status, answer.headers.warning];
}

it("the creation of such an object warns, by a create and by an apply, and nothing else does", async () => {
  const warning = `299 - "${says}"`;
  expect(await send("POST", ingresses, ingress("a"))).toEqual([201, warning]);
  const apply = "application/apply-patch+yaml";
  expect(await send("PATCH", `${ingresses}/b?fieldManager=t`, ingress("b"), apply)).toEqual([201, warning]);
  expect(await send("PATCH", `${ingresses}/b?fieldManager=t`, ingress("b"), apply)).toEqual([200, undefined]);
  const annotated = JSON.stringify({ metadata: { annotations: { a: "b" } } });
  const merge = "application/merge-patch+json";
  expect(await send("PATCH", `${ingresses}/a`, annotated, merge)).toEqual([200, undefined]);
  const map = JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m" } });
  expect(await send("POST", "/api/v1/namespaces/default/configmaps", map)).toEqual([201, undefined]);
});
