/** Discovery, OpenAPI, and what else clients read to find out what is served, over the wire. */
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HttpsConnections } from "../testing/http.ts";
import { adminToken, serveForTest, type TestServer } from "../testing/serve.ts";

const authorization = `Bearer ${adminToken}`;
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const openApiProtobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/** A server of that version and the ways to ask it. */
function aServerOf(emulatedVersion: string) {
  let server: TestServer;
  let to: HttpsConnections;
  beforeAll(async () => {
    server = await serveForTest({ emulatedVersion });
    to = new HttpsConnections(server.front.url, { ca: server.authority.certificate });
  });
  afterAll(async () => {
    to.close();
    await server.stop();
  });
  const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    to.send({ path, headers: { authorization, ...headers } });
  return {
    get,
    // biome-ignore lint/suspicious/noExplicitAny: documents of every form.
    json: async (path: string, headers?: Readonly<Record<string, string>>): Promise<any> =>
      JSON.parse((await get(path, headers)).body.toString()),
    kinds: () => server.server.registry.context.kinds,
    post: (path: string, body: string, type = "application/json") =>
      to.send({ method: "POST", path, body, headers: { authorization, "content-type": type } }),
    patch: (path: string, body: object, type: string) =>
      to.send({
        method: "PATCH",
        path,
        body: JSON.stringify(body),
        headers: { authorization, "content-type": type },
      }),
  };
}

describe("a server of 1.36", () => {
  const server = aServerOf("1.36");

  it("serves everything in one document, and no body to a client that has it", async () => {
    const first = await server.get("/apis", { accept: `${aggregated},application/json` });
    expect(first.headers["content-type"]).toBe(aggregated);
    const { items } = JSON.parse(first.body.toString());
    const apps = items.find((group: { metadata: { name: string } }) => group.metadata.name === "apps");
    const [{ version, resources, freshness }] = apps.versions;
    expect([version, freshness]).toEqual(["v1", "Current"]);
    expect(resources.find((r: { resource: string }) => r.resource === "deployments")).toMatchObject({
      responseKind: { group: "apps", version: "v1", kind: "Deployment" },
      scope: "Namespaced",
      singularResource: "deployment",
      shortNames: ["deploy"],
      categories: ["all"],
      subresources: [
        { subresource: "scale", responseKind: { group: "autoscaling", version: "v1", kind: "Scale" } },
        { subresource: "status", verbs: ["get", "patch", "update"] },
      ],
    });
    const { etag = "" } = first.headers;
    const again = await server.get("/apis", { accept: aggregated, "if-none-match": etag });
    expect([again.status, again.body.length]).toEqual([304, 0]);
  });

  it("serves the same in the beta form, and the plain form to clients that prefer it", async () => {
    const beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    expect((await server.json("/api", { accept: beta })).apiVersion).toBe("apidiscovery.k8s.io/v2beta1");
    expect((await server.json("/api", { accept: `application/json,${aggregated}` })).kind).toBe(
      "APIVersions",
    );
    expect((await server.json("/apis")).kind).toBe("APIGroupList");
  });

  it("names what there is one of", async () => {
    const { resources } = await server.json("/api/v1");
    const volumes = resources.find((r: { name: string }) => r.name === "persistentvolumes");
    expect(volumes).toMatchObject({ singularName: "persistentvolume", storageVersionHash: "HN/zwEC+JgM=" });
  });

  it("names its version, and the one before as compatible", async () => {
    expect(await server.json("/version")).toMatchObject({
      minor: "36",
      gitVersion: "v1.36.0+longshore",
      emulationMinor: "36",
      minCompatibilityMinor: "35",
    });
  });

  it("leads from the index of OpenAPI v3 to documents that may be kept", async () => {
    const { paths } = await server.json("/openapi/v3");
    const url = paths["apis/storage.k8s.io/v1"].serverRelativeURL;
    const kept = await server.get(url);
    expect(kept.headers["cache-control"]).toBe("public, immutable");
    const document = JSON.parse(kept.body.toString());
    const { schemas } = document.components;
    expect(schemas["io.k8s.api.storage.v1.VolumeAttachment"]).toMatchObject({
      required: ["spec"],
      "x-kubernetes-group-version-kind": [
        { group: "storage.k8s.io", version: "v1", kind: "VolumeAttachment" },
      ],
    });
    expect(schemas["io.k8s.api.storage.v1.CSINodeSpec"].properties.drivers).toMatchObject({
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
      "x-kubernetes-patch-merge-key": "name",
    });
    const patch = document.paths["/apis/storage.k8s.io/v1/csinodes/{name}"].patch;
    expect(patch.parameters.map((p: { name: string }) => p.name)).toEqual(
      expect.arrayContaining(["dryRun", "fieldManager", "fieldValidation", "force"]),
    );
    const moved = await server.get("/openapi/v3/apis/storage.k8s.io/v1?hash=OLD");
    expect([moved.status, moved.headers.location]).toEqual([301, url]);
    expect((await server.get("/openapi/v3/apis/nosuch/v1")).status).toBe(404);
  });

  it.each(["/openapi/v2", "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"])(
    "refers in %s to nothing that is not there",
    async (path) => {
      const document = await server.json(path);
      const schemas = document.definitions ?? document.components.schemas;
      const missing = new Set<string>();
      const look = (value: unknown): void => {
        if (typeof value !== "object" || value === null) return;
        const { $ref } = value as { $ref?: string };
        const name = typeof $ref === "string" ? ($ref.split("/").at(-1) ?? "") : undefined;
        if (name !== undefined && schemas[name] === undefined) missing.add(name);
        for (const member of Object.values(value)) look(member);
      };
      look(document);
      expect([...missing]).toEqual([]);
    },
  );

  it("sends OpenAPI v2 compressed and in protobuf, each with its ETag", async () => {
    const json = await server.get("/openapi/v2");
    const compressed = await server.get("/openapi/v2", { "accept-encoding": "gzip" });
    expect(compressed.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(compressed.body).equals(json.body)).toBe(true);
    const protobuf = await server.get("/openapi/v2", { accept: openApiProtobuf });
    // openapi.v2.Document: field 1, the version of OpenAPI.
    expect([...protobuf.body.subarray(0, 5)]).toEqual([0x0a, 3, ...Buffer.from("2.0")]);
    expect(protobuf.headers.etag).not.toBe(json.headers.etag);
    const etag = protobuf.headers.etag ?? "";
    expect((await server.get("/openapi/v2", { accept: openApiProtobuf, "if-none-match": etag })).status).toBe(
      304,
    );
  });

  it("rebuilds the documents when the kinds change", async () => {
    const before = await server.json("/apis", { accept: aggregated });
    const { paths } = await server.json("/openapi/v3");
    const kinds = server.kinds();
    kinds.add({
      group: "stable.example.com",
      versions: ["v1"],
      kind: "Cat",
      plural: "cats",
      namespaced: true,
    });
    const after = await server.json("/apis", { accept: aggregated });
    expect(after.items.length).toBe(before.items.length + 1);
    const { paths: now } = await server.json("/openapi/v3");
    expect(Object.keys(now)).toEqual([...Object.keys(paths), "apis/stable.example.com/v1"]);
    expect(now["api/v1"]).toEqual(paths["api/v1"]);
    kinds.remove("stable.example.com", "cats");
    expect(await server.json("/apis", { accept: aggregated })).toEqual(before);
  });

  const volume = (name: string, more = "") =>
    `{"metadata":{"name":"${name}"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],${more}"hostPath":{"path":"/x"}}}`;
  const path = "/api/v1/persistentvolumes";

  it("warns of members that it does not know, and of those that are there twice", async () => {
    const answer = await server.post(
      path,
      volume("warned", '"size":1,"volumeMode":"Block","volumeMode":"Block",'),
    );
    expect(answer.status).toBe(201);
    expect(answer.headers.warning).toBe(
      String.raw`299 - "duplicate field \"spec.volumeMode\"", 299 - "unknown field \"spec.size\""`,
    );
  });

  it.each([
    [
      "Strict",
      400,
      'PersistentVolume in version "v1" cannot be handled as a PersistentVolume: strict decoding error: unknown field "spec.size"',
      undefined,
    ],
    ["Ignore", 201, undefined, undefined],
    ["Warn", 201, undefined, '299 - "unknown field \\"spec.size\\""'],
  ])("with fieldValidation=%s", async (validation, status, message, warning) => {
    const name = `v-${validation.toLowerCase()}`;
    const answer = await server.post(`${path}?fieldValidation=${validation}`, volume(name, '"size":1,'));
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body.toString()).message).toBe(message);
    expect(answer.headers.warning).toBe(warning);
  });

  it("holds patches and YAML to the same", async () => {
    await server.post(path, volume("patched"));
    const patch = (body: object, type: string) =>
      server.patch(`${path}/patched?fieldValidation=Strict`, body, `application/${type}+json`);
    for (const type of ["merge-patch", "strategic-merge-patch"]) {
      const refused = await patch({ spec: { size: 1 } }, type);
      expect([refused.status, JSON.parse(refused.body.toString()).message]).toEqual([
        422,
        expect.stringContaining('strict decoding error: unknown field "spec.size"'),
      ]);
    }
    const yaml = "metadata: {name: y}\nspec:\n  storageClassName: a\n  storageClassName: b\n";
    const twice = await server.post(`${path}?fieldValidation=Strict`, yaml, "application/yaml");
    expect([twice.status, JSON.parse(twice.body.toString()).message]).toEqual([
      400,
      expect.stringContaining('line 4: key "storageClassName" already set in map'),
    ]);
  });

  it("takes no other way of validation", async () => {
    const answer = await server.post(`${path}?fieldValidation=Maybe`, volume("x"));
    expect([answer.status, JSON.parse(answer.body.toString()).details.causes[0].reason]).toEqual([
      422,
      "FieldValueNotSupported",
    ]);
  });

  it.each(["v1", "v1beta1"])("watches the metadata alone, in %s", async (version) => {
    const accept = `application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=${version}`;
    const list = await server.json("/api/v1/namespaces", {
      accept: `application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=${version}`,
    });
    expect(list).toMatchObject({ kind: "PartialObjectMetadataList", apiVersion: `meta.k8s.io/${version}` });
    expect(list.items[0]).not.toHaveProperty("spec");
    const one = await server.json("/api/v1/namespaces/default", { accept });
    expect(one).toMatchObject({ kind: "PartialObjectMetadata", metadata: { name: "default" } });
    const watched = await server.get("/api/v1/namespaces?watch=1&timeoutSeconds=1&resourceVersion=0", {
      accept,
    });
    const [first] = watched.body.toString().split("\n");
    expect(JSON.parse(first ?? "")).toMatchObject({
      type: "ADDED",
      object: { kind: "PartialObjectMetadata", apiVersion: `meta.k8s.io/${version}` },
    });
  });
});

describe("a server of 1.20", () => {
  const server = aServerOf("1.20");

  it("knows none of this", async () => {
    expect((await server.json("/apis", { accept: `${aggregated},application/json` })).kind).toBe(
      "APIGroupList",
    );
    expect((await server.get("/openapi/v3")).status).toBe(404);
    const { definitions, paths } = await server.json("/openapi/v2");
    const members = definitions["io.k8s.api.core.v1.PersistentVolumeSpec"].properties;
    expect(Object.keys(members)).not.toContain("volumeAttributesClassName");
    const write = paths["/api/v1/persistentvolumes"].post.parameters.map((p: { name: string }) => p.name);
    expect(write).toEqual(["body", "dryRun", "fieldManager"]);
    const body =
      '{"metadata":{"name":"x"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"},"size":1}}';
    const made = await server.post("/api/v1/persistentvolumes?fieldValidation=Strict", body);
    expect([made.status, made.headers.warning]).toEqual([201, undefined]);
  });

  it("warns of versions that will go", async () => {
    const answer = await server.get("/apis/storage.k8s.io/v1beta1/csinodes");
    expect(answer.headers.warning).toBe(
      '299 - "storage.k8s.io/v1beta1 CSINode is deprecated in v1.17+, unavailable in v1.22+; use storage.k8s.io/v1 CSINode"',
    );
    expect((await server.get("/apis/storage.k8s.io/v1/csinodes")).headers.warning).toBeUndefined();
  });
});
