/** What the API has no type for comes back as it was sent: nulls, and integers that JavaScript's numbers cannot hold. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseJson, toJson } from "../api/json.ts";
import { HttpsConnections } from "../testing/http.ts";
import { adminToken, serveForTest, type TestServer } from "../testing/serve.ts";

let own: TestServer;
let to: HttpsConnections;

beforeAll(async () => {
  own = await serveForTest({ controllers: false });
  to = new HttpsConnections(own.front.url, { ca: own.authority.certificate });
  await ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
});
afterAll(async () => {
  to.close();
  await own.stop();
});

const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "boxes.example.com" },
  spec: {
    group: "example.com",
    names: { kind: "Box", plural: "boxes" },
    scope: "Cluster",
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              any: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
              count: { type: "integer", format: "int64", minimum: 0 },
              ids: { type: "array", "x-kubernetes-list-type": "set", items: { type: "integer" } },
            },
          },
        },
        additionalPrinterColumns: [{ name: "Count", type: "integer", jsonPath: ".count" }],
      },
    ],
  },
};

async function ask(
  method: string,
  path: string,
  body?: unknown,
  contentType = "application/json",
  accept = "application/json",
) {
  const answer = await to.send({
    method,
    path,
    headers: { authorization: `Bearer ${adminToken}`, "content-type": contentType, accept },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : toJson(body) }),
  });
  return { status: answer.status, text: answer.body.toString() };
}

const boxes = "/apis/example.com/v1/boxes";
const long = 9007199254740993n;

test("in a custom resource, through every way of writing and reading it", async () => {
  const box = { apiVersion: "example.com/v1", kind: "Box", metadata: { name: "a" } };
  const values = {
    any: { long, none: null, list: [null, -long] },
    count: long,
    ids: [long, 9007199254740992],
  };
  const made = await ask("POST", boxes, { ...box, ...values });
  expect(made).toMatchObject({ status: 201 });
  expect(parseJson(made.text)).toMatchObject(values);
  const one = `${boxes}/a`;
  expect(parseJson((await ask("GET", one)).text)).toMatchObject(values);
  const asYaml = await ask("GET", one, undefined, undefined, "application/yaml");
  expect(asYaml.text).toContain("count: 9007199254740993\n");
  const table = "application/json;as=Table;g=meta.k8s.io;v=v1";
  expect((await ask("GET", boxes, undefined, undefined, table)).text).toContain(
    '"cells":["a",9007199254740993]',
  );

  const merged = await ask("PATCH", one, { any: { more: long + 2n } }, "application/merge-patch+json");
  expect(parseJson(merged.text)).toMatchObject({ ...values, any: { ...values.any, more: long + 2n } });
  const operation = { op: "test", path: "/count", value: long };
  expect(await ask("PATCH", one, [operation], "application/json-patch+json")).toMatchObject({ status: 200 });
  const other = [{ ...operation, value: Number(long) }];
  expect(await ask("PATCH", one, other, "application/json-patch+json")).toMatchObject({ status: 422 });

  const yaml = `apiVersion: example.com/v1\nkind: Box\nmetadata: {name: b}\ncount: ${long}\nids: [${long}]\n`;
  const applied = await ask("PATCH", `${boxes}/b?fieldManager=me`, yaml, "application/apply-patch+yaml");
  expect(applied).toMatchObject({ status: 201 });
  expect(parseJson(applied.text)).toMatchObject({ count: long, ids: [long] });
  expect(applied.text).toContain('"v:9007199254740993":{}');
});

test("what a schema says of numbers holds for them", async () => {
  const box = { apiVersion: "example.com/v1", kind: "Box", metadata: { name: "c" } };
  const below = await ask("POST", boxes, { ...box, count: -long });
  expect(below.status).toBe(422);
  expect(below.text).toContain("Invalid value: -9007199254740993");
  const twice = await ask("POST", boxes, { ...box, ids: [long, 1, long] });
  expect(twice.status).toBe(422);
  expect(twice.text).toContain("Duplicate value: 9007199254740993");
});

test("in the data of a ControllerRevision, where a null says that a patch removes something", async () => {
  const revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
  const data = { spec: { template: { $patch: "replace", creationTimestamp: null, id: long, list: [null] } } };
  const metadata = { name: "a" };
  const revision = { apiVersion: "apps/v1", kind: "ControllerRevision", metadata, data, revision: 1 };
  expect(parseJson((await ask("POST", revisions, revision)).text)).toMatchObject({ data });
  const labelled = await ask(
    "PATCH",
    `${revisions}/a`,
    { metadata: { labels: { a: "b" } } },
    "application/strategic-merge-patch+json",
  );
  expect(parseJson(labelled.text)).toMatchObject({ data, metadata: { labels: { a: "b" } } });

  // As compiled clients have it: bytes that they compare.
  const protobuf = "application/vnd.kubernetes.protobuf";
  const sorted =
    '{"spec":{"template":{"$patch":"replace","creationTimestamp":null,"id":9007199254740993,"list":[null]}}}';
  const shown = await ask("GET", `${revisions}/a`, undefined, undefined, protobuf);
  expect(shown.text).toContain(sorted);
});
