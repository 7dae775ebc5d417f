/** The same over the wire, in both versions of HTTP: the method and the path are those of the request line. */
import { once } from "node:events";
import { connect } from "node:http2";
import { afterAll, beforeAll, expect, it } from "vitest";
import { HttpsConnections } from "../testing/http.ts";
import { janeToken, serveForTest, type TestServer } from "../testing/serve.ts";

let test: TestServer;
let http1: HttpsConnections;

beforeAll(async () => {
  test = await serveForTest({ controllers: false });
  http1 = new HttpsConnections(test.front.url, { ca: test.authority.certificate });
  const kube = test.server.client();
  const signal = new AbortController().signal;
  const group = "rbac.authorization.k8s.io";
  const bindings = {
    group,
    versions: ["v1"],
    kind: "ClusterRoleBinding",
    plural: "clusterrolebindings",
  } as const;
  const binding = {
    apiVersion: `${group}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name: "jane" },
    roleRef: { apiGroup: group, kind: "ClusterRole", name: "view" },
    subjects: [{ kind: "User", apiGroup: group, name: "jane" }],
  };
  await kube.create({ ...bindings, namespaced: false }, binding, { signal });
});
afterAll(async () => {
  http1.close();
  await test.stop();
});

const body = JSON.stringify({ metadata: { name: "c" } });
const headers = {
  authorization: `Bearer ${janeToken}`,
  "content-type": "application/json",
  "x-http-method-override": "GET",
  "x-http-method": "GET",
  "x-original-url": "/version",
};

async function overHttp2(method: string, path: string): Promise<number> {
  const session = connect(test.front.url, { ca: test.authority.certificate });
  try {
    const stream = session.request({ ":method": method, ":path": path, ...headers }, { endStream: false });
    stream.end(body);
    const [answer] = (await once(stream, "response")) as [{ readonly ":status"?: number }];
    stream.close();
    return answer[":status"] ?? 0;
  } finally {
    session.destroy();
  }
}

it.each([
  ["POST", "/api/v1/namespaces/default/configmaps", 403],
  ["POST", "/api/v1/watch/namespaces/default/configmaps", 405],
  ["POST", "/api/v1/watch/namespaces/default/serviceaccounts/x/token", 403],
  ["DELETE", "/api/v1/watch/namespaces/default/configmaps/c", 405],
  ["constructor", "/api/v1/namespaces/default/configmaps", 403],
  ["POST", "/version/../api/v1/namespaces/default/configmaps", 403],
  ["GET", "/version/../api/v1/namespaces/default/secrets", 403],
  ["GET", "/healthz/%2e%2e/api/v1/namespaces/default/configmaps", 403],
  ["GET", "/api/v1/namespaces/default/configmaps/%zz", 400],
])("%s %s", async (method, path, status) => {
  const { revision } = test.server.registry.context.store;
  // Node's client of HTTP/1.1 sends no method that it does not know.
  const isKnown = method === method.toUpperCase();
  if (isKnown) expect((await http1.send({ method, path, headers, body })).status).toBe(status);
  expect(await overHttp2(method, path)).toBe(status);
  expect(test.server.registry.context.store.revision).toBe(revision);
});

it("gets the object that is named, whatever the query says of watching", async () => {
  const path = "/api/v1/namespaces/default?watch=true";
  const { authorization } = headers;
  expect(await http1.json({ path, headers: { authorization } })).toMatchObject({ kind: "Namespace" });
});
