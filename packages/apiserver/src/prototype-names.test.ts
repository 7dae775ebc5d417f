/** Keys that are names of every object's prototype are keys like others, however they come and go. */
import { createHttpClient, type KubeClient, resources, startInformer } from "@longshore/kube";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { objectFromProtobuf } from "./schema/object-from-protobuf.ts";
import { HttpsConnections } from "./testing/http.ts";
import { adminToken, realEnv, serveForTest, type TestServer } from "./testing/serve.ts";

const names = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf"];
/** As text, so that no literal of this file drops one. */
const textOf = (keys: readonly string[], value: string) =>
  `{${keys.map((key) => `"${key}":${JSON.stringify(value)}`).join(",")}}`;
const text = (value: string) => textOf(names, value);
/** Labels and annotations must begin and end with a letter or a digit. */
const labels = (value: string) => textOf(names.slice(1), value);
/** Entries in the order of their keys. */
const sorted = (map: object | undefined) =>
  Object.entries(map ?? {}).sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
const all = (value: string) => sorted(JSON.parse(text(value)) as object);
const allLabels = (value: string) => sorted(JSON.parse(labels(value)) as object);

let server: TestServer;
let to: HttpsConnections;
let kube: KubeClient & { close(): void };
beforeAll(async () => {
  server = await serveForTest();
  const ca = server.authority.certificate;
  to = new HttpsConnections(server.front.url, { ca });
  const credentials = { current: () => ({ authorization: `Bearer ${adminToken}` }), refused: () => {} };
  kube = createHttpClient(realEnv, { server: server.front.url, ca, credentials });
});
afterAll(async () => {
  kube.close();
  to.close();
  await server.stop();
});

const headers = { authorization: `Bearer ${adminToken}` };
const collection = "/api/v1/namespaces/default/configmaps";
const configMap = (name: string, value = "b25l") =>
  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${name}","labels":${labels("l")},"annotations":${labels("a")}},"data":${text(value)}}`;

async function send(method: string, path: string, body: string, type = "application/json") {
  const answer = await to.send({ method, path, headers: { ...headers, "content-type": type }, body });
  expect(answer.status, answer.body.toString()).toBeLessThan(300);
  return JSON.parse(answer.body.toString());
}
const get = (name: string) => to.json({ path: `${collection}/${name}`, headers });

function expectWhole(
  object: { metadata: { labels?: object; annotations?: object }; data?: object },
  value: string,
) {
  expect(sorted(object.data)).toEqual(all(value));
  expect(sorted(object.metadata.labels)).toEqual(allLabels("l"));
  expect(sorted(object.metadata.annotations)).toEqual(allLabels("a"));
}

describe("keys of prototypes", () => {
  it("are kept by create, get, list, update and watch, in JSON and in YAML", async () => {
    expectWhole(await send("POST", collection, configMap("created")), "b25l");
    expectWhole(await get("created"), "b25l");
    const list = await to.json({ path: collection, headers });
    expectWhole(
      list.items.find((item: { metadata: { name: string } }) => item.metadata.name === "created"),
      "b25l",
    );
    expectWhole(await send("PUT", `${collection}/created`, configMap("created", "two")), "two");
    expectWhole(await send("POST", collection, configMap("from-yaml"), "application/yaml"), "b25l");
    expectWhole(await get("from-yaml"), "b25l");
  });

  it.each([
    ["merge", "application/merge-patch+json", `{"data":${text("new")}}`],
    ["strategic merge", "application/strategic-merge-patch+json", `{"data":${text("new")}}`],
    [
      "JSON",
      "application/json-patch+json",
      JSON.stringify([
        { op: "add", path: "/data", value: {} },
        ...names.map((name) => ({ op: "add", path: `/data/${name}`, value: "new" })),
      ]),
    ],
  ])("are set and removed by a %s patch", async (what, type, patch) => {
    const name = `patched-${what.replaceAll(" ", "-").toLowerCase()}`;
    const base = `{"metadata":{"name":"${name}"},"data":{"x":"y"}}`;
    await send("POST", collection, base);
    const patched = await send("PATCH", `${collection}/${name}`, patch, type);
    expect(sorted(patched.data).filter(([key]) => key !== "x")).toEqual(all("new"));
    expect(sorted((await get(name)).data).filter(([key]) => key !== "x")).toEqual(all("new"));
    if (what === "JSON") return;
    const without = `{"data":${text("new").replaceAll('"new"', "null")}}`;
    expect((await send("PATCH", `${collection}/${name}`, without, type)).data).toEqual({ x: "y" });
  });

  it("are owned and kept by server-side apply, and removed by it", async () => {
    const path = `${collection}/applied?fieldManager=me`;
    const type = "application/apply-patch+yaml";
    expectWhole(await send("PATCH", path, configMap("applied"), type), "b25l");
    expectWhole(await send("PATCH", path, configMap("applied", "two"), type), "two");
    expectWhole(await get("applied"), "two");
    const other = `${collection}/applied?fieldManager=other`;
    const one =
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},"data":{"__proto__":"three"}}';
    const refused = await to.send({
      method: "PATCH",
      path: other,
      headers: { ...headers, "content-type": type },
      body: one,
    });
    expect(refused.status).toBe(409);
    const less = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},"data":{"x":"y"}}';
    expect((await send("PATCH", path, less, type)).data).toEqual({ x: "y" });
  });

  it("are in the client's objects and in the informer's cache", async () => {
    await send("POST", collection, configMap("seen"));
    const object = await kube.get(
      resources.configMaps,
      { namespace: "default", name: "seen" },
      { signal: never },
    );
    expectWhole(object as never, "b25l");
    const informer = startInformer({ ...realEnv, kube }, resources.configMaps);
    try {
      await informer.synced(never);
      expectWhole(informer.get("default/seen") as never, "b25l");
      await send("POST", collection, configMap("seen-later"));
      await vi.waitFor(() => expectWhole(informer.get("default/seen-later") as never, "b25l"));
    } finally {
      await informer.stop();
    }
  });

  it.each(["labels", "annotations"])(
    "that are no names of %s are refused, and not dropped",
    async (member) => {
      const body = `{"metadata":{"name":"refused","${member}":{"__proto__":"x"}}}`;
      const sent = { ...headers, "content-type": "application/json" };
      const answer = await to.send({ method: "POST", path: collection, headers: sent, body });
      expect(answer.status).toBe(422);
      expect(JSON.parse(answer.body.toString()).message).toContain("__proto__");
    },
  );

  it("are answered in protobuf, and taken from it", async () => {
    await send("POST", collection, configMap("in-protobuf"));
    const accept = { ...headers, accept: "application/vnd.kubernetes.protobuf" };
    const { body } = await to.send({ path: `${collection}/in-protobuf`, headers: accept });
    expectWhole(objectFromProtobuf(body) as never, "b25l");
    // And read: the same bytes, put there again.
    const put = { ...headers, "content-type": "application/vnd.kubernetes.protobuf" };
    const answer = await to.send({ method: "PUT", path: `${collection}/in-protobuf`, headers: put, body });
    expect(answer.status, answer.body.toString()).toBe(200);
    expectWhole(await get("in-protobuf"), "b25l");
  });

  it("name no kind, resource, group or version", async () => {
    for (const name of names) {
      for (const path of [
        `/api/v1/namespaces/default/${name}`,
        `/apis/${name}/v1`,
        `/apis/apps/${name}`,
        `/api/${name}`,
      ]) {
        expect((await to.send({ method: "GET", path, headers })).status, path).toBe(404);
      }
    }
  });

  it("are kept in custom resources, where the schema takes any key", async () => {
    const schema = {
      type: "object",
      properties: {
        spec: { type: "object", additionalProperties: { type: "string" } },
        any: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      },
    };
    const definition = {
      metadata: { name: "things.example.com" },
      spec: {
        group: "example.com",
        scope: "Namespaced",
        names: { plural: "things", kind: "Thing" },
        versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      },
    };
    await send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", JSON.stringify(definition));
    const things = "/apis/example.com/v1/namespaces/default/things";
    await vi.waitFor(async () => expect((await to.send({ path: things, headers })).status).toBe(200));
    const body = `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":${text("s")},"any":${text("p")}}`;
    await send("POST", things, body);
    const thing = await to.json({ path: `${things}/a`, headers });
    expect(sorted(thing.spec)).toEqual(all("s"));
    expect(sorted(thing.any)).toEqual(all("p"));
    const patched = await send(
      "PATCH",
      `${things}/a`,
      `{"any":${text("q")}}`,
      "application/merge-patch+json",
    );
    expect(sorted(patched.any)).toEqual(all("q"));
  });
});

const never = new AbortController().signal;
