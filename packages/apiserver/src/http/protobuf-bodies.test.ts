/** Bodies in protobuf that nothing is known of are refused, and not taken for empty ones. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { objectToProtobuf, protobufType } from "../schema/object-to-protobuf.ts";
import { aCustomKind } from "../testing/custom-kinds.ts";
import { HttpsConnections } from "../testing/http.ts";
import { adminToken, serveForTest, type TestServer } from "../testing/serve.ts";

let own: TestServer;
let to: HttpsConnections;

beforeAll(async () => {
  own = await serveForTest({ controllers: false, definitions: [aCustomKind("boxes", "Box", "Cluster")] });
  to = new HttpsConnections(own.front.url, { ca: own.authority.certificate });
});
afterAll(async () => {
  to.close();
  await own.stop();
});

/** A ConfigMap's body that says that it is of another kind: what it holds is not known. */
function bodyOf(apiVersion: string, kind: string): Buffer {
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } };
  const whole = (objectToProtobuf(object) as Buffer).subarray(4);
  const message = whole.subarray((whole[1] as number) + 2);
  const type = [apiVersion, kind].flatMap((text, i) => [(i + 1) * 8 + 2, text.length, ...Buffer.from(text)]);
  return Buffer.concat([Buffer.from("k8s\0"), Buffer.from([0x0a, type.length, ...type]), message]);
}

async function post(path: string, body: Buffer) {
  const headers = { authorization: `Bearer ${adminToken}`, "content-type": protobufType };
  const answer = await to.send({ method: "POST", path, headers, body });
  return { status: answer.status, ...JSON.parse(answer.body.toString()) };
}

test("of a kind without a form in protobuf: 415", async () => {
  const custom = await post("/apis/x.example.com/v1/boxes", bodyOf("x.example.com/v1", "Box"));
  expect(custom).toMatchObject({ code: 415, reason: "UnsupportedMediaType" });
  expect(custom.message).toBe(
    "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml",
  );
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const definition = await post(definitions, bodyOf("apiextensions.k8s.io/v1", "CustomResourceDefinition"));
  expect(definition).toMatchObject({ code: 415 });
});

test("of a kind that is not known, where one with a form is made: 400", async () => {
  const answer = await post("/api/v1/namespaces/default/configmaps", bodyOf("v2", "Thing"));
  expect(answer).toMatchObject({ code: 400, message: 'no kind "Thing" is registered for version "v2"' });
});

test("of the kind that is made: made", async () => {
  const answer = await post("/api/v1/namespaces/default/configmaps", bodyOf("v1", "ConfigMap"));
  expect(answer).toMatchObject({ kind: "ConfigMap", metadata: { name: "a" } });
});
