/**
 * Options of reads over HTTP. The answers under 1.20 are those that kube-apiserver 1.20.2 returned to the same
 * requests (`<now>` stands for the version of the list, `<later>` for a future one).
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HttpsConnections } from "../testing/http.ts";
import { adminToken, serveForTest, type TestServer } from "../testing/serve.ts";

const path = "/api/v1/namespaces/default/configmaps";
const headers = { authorization: `Bearer ${adminToken}`, "content-type": "application/json" };
const future = 1_000_000;

async function started(options: { readonly emulatedVersion: string; readonly featureGates?: string }) {
  const server = await serveForTest({ controllers: false, ...options });
  const to = new HttpsConnections(server.front.url, { ca: server.authority.certificate });
  for (const name of ["a", "b", "c"]) {
    await to.send({ method: "POST", path, headers, body: JSON.stringify({ metadata: { name } }) });
  }
  return { server, to, version: String(server.server.registry.context.store.revision) };
}

let server: TestServer;
let to: HttpsConnections;
let version: string;

async function ask(query: string): Promise<{ status: number; text: string }> {
  const filled = query.replace("=<now>", `=${version}`).replace("=<later>", `=${future}`);
  const { status, body } = await to.send({ path: `${path}${filled}`, headers });
  return { status, text: body.toString() };
}

const stop = async () => {
  to.close();
  await server.stop();
};

describe("under 1.20", () => {
  beforeAll(async () => {
    ({ server, to, version } = await started({ emulatedVersion: "1.20" }));
  });
  afterAll(stop);

  const tooLarge = (): string => `Timeout: Too large resource version: ${future}, current: ${version}`;
  const notANumber = (text: string) =>
    `resourceVersion: Invalid value: "${text}": strconv.ParseUint: parsing "${text}": invalid syntax`;
  const options = (why: string) => `ListOptions.meta.k8s.io "" is invalid: ${why}`;
  const unless =
    "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
  const withContinue =
    "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided";
  const unsupported =
    'resourceVersionMatch: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""';
  const futureRevision = "etcdserver: mvcc: required revision is a future revision";
  const badToken = "invalid continue token: continue key is not valid: ";
  const token = (parts: object) => Buffer.from(JSON.stringify(parts)).toString("base64url");

  const refused: readonly (readonly [string, number, () => string])[] = [
    ["/a?resourceVersion=<later>", 504, tooLarge],
    ["/a?resourceVersion=xyz", 500, () => notANumber("xyz")],
    ["/a?resourceVersion=-5", 500, () => notANumber("-5")],
    ["/nope?resourceVersion=0", 404, () => 'configmaps "nope" not found'],
    ["?resourceVersion=xyz", 500, () => notANumber("xyz")],
    ["?resourceVersion=<later>", 504, tooLarge],
    ["?resourceVersion=<later>&resourceVersionMatch=NotOlderThan", 504, tooLarge],
    ["?resourceVersion=<later>&resourceVersionMatch=Exact", 500, () => futureRevision],
    ["?resourceVersion=<later>&limit=1", 500, () => futureRevision],
    [`?continue=${token({ v: "meta.k8s.io/v1", rv: future, start: "b\0" })}`, 500, () => futureRevision],
    ["?resourceVersionMatch=Foo", 422, () => options(`[${unless}, ${unsupported}]`)],
    [
      "?resourceVersionMatch=Foo&resourceVersion=1&continue=x",
      422,
      () => options(`[${withContinue}, ${unsupported}]`),
    ],
    ["?resourceVersionMatch=Exact&continue=x", 422, () => options(`[${unless}, ${withContinue}]`)],
    [
      `?continue=${token({ v: "meta.k8s.io/v1", rv: 0, start: "b\0" })}`,
      400,
      () => `${badToken}incorrect encoded start resourceVersion (version meta.k8s.io/v1)`,
    ],
    [
      `?continue=${token({ v: "x", rv: 1, start: "b\0" })}`,
      400,
      () => `${badToken}server does not recognize this encoded version "x"`,
    ],
    [
      `?continue=${token({ v: "meta.k8s.io/v1", rv: 1, start: "b\0" })}&resourceVersion=1`,
      400,
      () => "specifying resource version is not allowed when using continue",
    ],
    ["?watch=1&resourceVersion=xyz", 500, () => notANumber("xyz")],
    ["?watch=1&resourceVersion=-1", 500, () => notANumber("-1")],
    [
      "?watch=1&resourceVersion=1&resourceVersionMatch=NotOlderThan",
      422,
      () => options("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch"),
    ],
  ];
  it.each(refused)("%s is refused with %d", async (query, code, message) => {
    const { status, text } = await ask(query);
    expect(status).toBe(code);
    expect(JSON.parse(text)).toMatchObject({ kind: "Status", code, message: message() });
  });

  it.each([
    ["?resourceVersion=0", "abc"],
    ["?resourceVersion=1", "abc"],
    ["?resourceVersion=<now>&resourceVersionMatch=Exact", "abc"],
    ["?resourceVersion=1&resourceVersionMatch=Exact", ""],
    ["?resourceVersion=1&limit=1", ""],
    ["?limit=-1", "abc"],
    ["?limit=1&resourceVersion=0", "abc"],
    ["?limit=1&resourceVersion=0&resourceVersionMatch=NotOlderThan", "abc"],
    ["?limit=1&resourceVersion=<now>&resourceVersionMatch=NotOlderThan", "a"],
    ["?limit=1&resourceVersion=<now>", "a"],
    ["?sendInitialEvents=true", "abc"],
    [`?limit=1&continue=${token({ v: "meta.k8s.io/v1", rv: -1, start: "b\0" })}`, "c"],
    [`?limit=1&continue=${token({ v: "meta.k8s.io/v1", rv: -1, start: "a\0" })}&resourceVersion=0`, "b"],
  ])("%s lists %s", async (query, names) => {
    const { items } = JSON.parse((await ask(query)).text);
    expect(items.map((item: { metadata: { name: string } }) => item.metadata.name).join("")).toBe(names);
  });

  it.each([
    ["?watch=1&timeoutSeconds=1&resourceVersion=<now>&allowWatchBookmarks=true", []],
    ["?watch=1&timeoutSeconds=-1&resourceVersion=<now>", []],
    ["?watch=1&timeoutSeconds=1&limit=1&continue=abc&resourceVersion=0", ["ADDED", "ADDED", "ADDED"]],
    ["?watch=1&timeoutSeconds=1&sendInitialEvents=true", ["ADDED", "ADDED", "ADDED"]],
    ["?watch=1&timeoutSeconds=1&resourceVersion=<later>", []],
    ["?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Db", ["ADDED"]],
  ])("%s sends %j", async (query, types) => {
    const { status, text } = await ask(query);
    expect(status).toBe(200);
    const lines = text.split("\n").filter((line) => line !== "");
    expect(lines.map((line) => JSON.parse(line).type)).toEqual(types);
  });
});

describe("under 1.36", () => {
  beforeAll(async () => {
    ({ server, to, version } = await started({ emulatedVersion: "1.36" }));
  });
  afterAll(stop);

  const streamed = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1";

  it("a list can be streamed, and its end is marked", async () => {
    const { text } = await ask(`${streamed}&allowWatchBookmarks=true`);
    const events = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events.slice(0, 3).map((e) => `${e.type} ${e.object.metadata.name}`)).toEqual([
      "ADDED a",
      "ADDED b",
      "ADDED c",
    ]);
    expect(events[3]).toEqual({
      type: "BOOKMARK",
      object: {
        kind: "ConfigMap",
        apiVersion: "v1",
        metadata: { resourceVersion: version, annotations: { "k8s.io/initial-events-end": "true" } },
      },
    });
    expect(events).toHaveLength(4);
  });

  it.each([
    ["?sendInitialEvents=true", 422, /sendInitialEvents is forbidden for list/],
    [
      "?watch=1&sendInitialEvents=true",
      422,
      /sendInitialEvents requires setting resourceVersionMatch to NotOlderThan/,
    ],
    [`${streamed}&resourceVersion=<later>`, 504, /Too large resource version/],
    ["?resourceVersion=<later>&resourceVersionMatch=Exact", 504, /Too large resource version/],
  ])("%s is refused with %d", async (query, code, message) => {
    const { status, text } = await ask(query);
    expect(status).toBe(code);
    expect(JSON.parse(text).message).toMatch(message);
  });
});

describe("where the gate WatchList is off", () => {
  beforeAll(async () => {
    ({ server, to, version } = await started({ emulatedVersion: "1.36", featureGates: "WatchList=false" }));
  });
  afterAll(stop);

  it("a list cannot be streamed", async () => {
    const { status, text } = await ask("?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    expect(status).toBe(422);
    expect(JSON.parse(text).message).toContain("unless the WatchList feature gate is enabled");
  });
});
