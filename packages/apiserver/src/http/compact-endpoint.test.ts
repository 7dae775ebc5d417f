import { afterAll, beforeAll, expect, it } from "vitest";
import { HttpsConnections } from "../testing/http.ts";
import { adminToken, janeToken, serveForTest, type TestServer } from "../testing/serve.ts";

let test: TestServer;
let to: HttpsConnections;
beforeAll(async () => {
  test = await serveForTest();
  to = new HttpsConnections(test.front.url, { ca: test.authority.certificate });
});
afterAll(async () => {
  to.close();
  await test.stop();
});

const as = (token: string) => ({ authorization: `Bearer ${token}`, "content-type": "application/json" });
const maps = "/api/v1/namespaces/default/configmaps";

it("has the server forget what came before, for administrators only", async () => {
  const create = (name: string) =>
    to.json({
      method: "POST",
      path: maps,
      headers: as(adminToken),
      body: JSON.stringify({ metadata: { name } }),
    });
  const first = (await create("a")).metadata.resourceVersion;
  const last = (await create("b")).metadata.resourceVersion;
  const watch = `${maps}?watch=true&timeoutSeconds=1&resourceVersion=${first}`;
  expect((await to.send({ path: watch, headers: as(adminToken) })).body.toString()).toContain('"ADDED"');
  const compact = { method: "POST", path: `/compact?revision=${last}` };
  expect((await to.send({ ...compact, headers: as(janeToken) })).status).toBe(403);
  expect((await to.json({ ...compact, headers: as(adminToken) })).status).toBe("Success");
  expect((await to.send({ path: watch, headers: as(adminToken) })).body.toString()).toContain('"code":410');
});

it.each(["0", "-1", "x", "999999999"])("refuses %s as a version", async (revision) => {
  const exchange = { method: "POST", path: `/compact?revision=${revision}`, headers: as(adminToken) };
  expect((await to.send(exchange)).status).toBe(400);
  expect((await to.send({ ...exchange, method: "GET" })).status).toBe(405);
});
