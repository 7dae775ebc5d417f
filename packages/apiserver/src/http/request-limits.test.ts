import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { HttpsConnections } from "../testing/http.ts";
import { adminToken, janeToken, realEnv, serveForTest, type TestServer } from "../testing/serve.ts";
import { InFlight, requestLimitsDefault } from "./request-limits.ts";

const jane = { name: "jane", groups: ["devs"] };
const root = { name: "root", groups: ["system:masters"] };
const few = { ...requestLimitsDefault, readsMax: 2, writesMax: 1, watchesMax: 1 };
const tooMany = expect.objectContaining({ code: 429 });

describe("what is worked on at a time", () => {
  it.each([
    ["get", 2],
    ["list", 2],
    ["create", 1],
    ["deletecollection", 1],
    ["post", 1],
    ["watch", 1],
  ])("of %s are %i", (verb, count) => {
    const inFlight = new InFlight(few);
    const ends = Array.from({ length: count }, () => inFlight.begin({ user: jane, verb }));
    expect(() => inFlight.begin({ user: jane, verb })).toThrow(tooMany);
    ends[0]?.();
    ends[0]?.();
    const again = inFlight.begin({ user: jane, verb });
    expect(() => inFlight.begin({ user: jane, verb })).toThrow(tooMany);
    again();
    for (const end of ends) end();
    expect(inFlight.counts).toEqual({ reads: 0, writes: 0, watches: 0 });
  });

  it("does not hold administrators back, but for watches", () => {
    const inFlight = new InFlight(few);
    for (let i = 0; i < 5; i++) inFlight.begin({ user: root, verb: "create" });
    expect(() => inFlight.begin({ user: jane, verb: "create" })).toThrow(tooMany);
    inFlight.begin({ user: root, verb: "watch" });
    expect(() => inFlight.begin({ user: root, verb: "watch" })).toThrow(tooMany);
  });

  it("does not count what may take long, and has no limit where that is 0", () => {
    const inFlight = new InFlight({ ...few, readsMax: 0 });
    for (let i = 0; i < 9; i++) inFlight.begin({ user: jane, verb: "get" });
    for (let i = 0; i < 9; i++) inFlight.begin({ user: jane, verb: "create", subresource: "exec" });
    inFlight.begin({ user: jane, verb: "create" });
  });
});

describe("over HTTP", () => {
  let test: TestServer;
  let to: HttpsConnections;
  const serve = async (limits: object) => {
    test = await serveForTest({}, realEnv, limits);
    to = new HttpsConnections(test.front.url, { ca: test.authority.certificate });
  };
  afterEach(async () => {
    to.close();
    await test.stop();
  });
  const as = (token: string) => ({ authorization: `Bearer ${token}` });

  it("a request too many is answered 429 with Retry-After, and the next finds room", async () => {
    await serve({ writesMax: 1 });
    // The first holds its place for as long as its body takes to come.
    const headers = { ...as(janeToken), "content-type": "application/json" };
    const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    const body = JSON.stringify({ spec: { nonResourceAttributes: { path: "/healthz", verb: "get" } } });
    const { request } = await import("node:https");
    const slow = request(`${test.front.url}${path}`, {
      method: "POST",
      headers: { ...headers, "content-length": body.length },
      ca: test.authority.certificate,
    });
    const answered = once(slow, "response");
    slow.write(body.slice(0, 5));
    let refused = await to.send({ method: "POST", path, headers, body });
    while (refused.status === 201) refused = await to.send({ method: "POST", path, headers, body });
    expect(refused.status).toBe(429);
    expect(refused.headers["retry-after"]).toBe("1");
    expect(JSON.parse(refused.body.toString())).toMatchObject({ reason: "TooManyRequests", code: 429 });
    slow.end(body.slice(5));
    const [first] = await answered;
    expect(first.statusCode).toBe(201);
    first.resume();
    await once(first, "end");
    expect((await to.send({ method: "POST", path, headers, body })).status).toBe(201);
  });

  it("a watch too many is answered 429, until one ends", async () => {
    await serve({ watchesMax: 1 });
    const path = "/api/v1/configmaps?watch=1&resourceVersion=0";
    const open = await to.open({ path, headers: as(adminToken) });
    expect(open.statusCode).toBe(200);
    expect((await to.send({ path, headers: as(adminToken) })).status).toBe(429);
    open.destroy();
    let next = await to.open({ path, headers: as(adminToken) });
    while (next.statusCode === 429) {
      next.resume();
      next = await to.open({ path, headers: as(adminToken) });
    }
    expect(next.statusCode).toBe(200);
    next.destroy();
  });

  it.each([
    ["a little", 5_000],
    ["far", 100_000],
  ])("headers that are %s too long are answered 431, and others go on", async (_much, length) => {
    await serve({ headerBytesMax: 4096 });
    const headers = { ...as(adminToken), "x-filler": "x".repeat(length) };
    const fresh = new HttpsConnections(test.front.url, { ca: test.authority.certificate });
    expect((await fresh.send({ path: "/version", headers })).status).toBe(431);
    fresh.close();
    expect((await to.send({ path: "/version", headers: as(adminToken) })).status).toBe(200);
  });

  it("headers of 900 KB are read over HTTP/1.1, in one line or in many", async () => {
    await serve({});
    const lines = Object.fromEntries(
      Array.from({ length: 900 }, (_, i) => [`x-filler-${i}`, "x".repeat(1000)]),
    );
    for (const filler of [{ "x-filler": "x".repeat(900_000) }, lines]) {
      const answer = await to.send({ path: "/version", headers: { ...as(adminToken), ...filler } });
      expect(answer.status).toBe(200);
    }
  });

  it("the keys of tokens are readable for service accounts, and for other users only with the right", async () => {
    await serve({});
    const path = "/.well-known/openid-configuration";
    expect((await to.send({ path, headers: as(janeToken) })).status).toBe(403);
    const { jwks_uri, issuer } = await to.json({ path, headers: as(adminToken) });
    expect(issuer).toBe("https://kubernetes.default.svc");
    const keys = await to.send({ path: new URL(jwks_uri).pathname, headers: as(adminToken) });
    expect(keys.headers["content-type"]).toBe("application/jwk-set+json");
    expect(JSON.parse(keys.body.toString()).keys).toHaveLength(1);
    const bot = {
      ...as(adminToken),
      "impersonate-user": "system:serviceaccount:default:default",
    };
    expect((await to.send({ path, headers: bot })).status).toBe(200);
  });
});
