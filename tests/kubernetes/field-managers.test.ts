/**
 * The embedded API server compared with the real kube-apiserver: random writes of several managers (applies, updates,
 * patches, status, dry runs) leave the same objects, the same managed fields and the same failures.
 */
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Call } from "../../packages/apiserver/src/testing/differences.ts";
import { randomKinds, shown, writeDifferences } from "../../packages/apiserver/src/testing/field-managers.ts";
import { HttpsConnections } from "../../packages/apiserver/src/testing/http.ts";
import { adminToken, serveForTest, type TestServer } from "../../packages/apiserver/src/testing/serve.ts";
import { soundObjects } from "../../packages/apiserver/src/testing/sound-objects.ts";
import { type ControlPlane, startControlPlane } from "./support/index.ts";

/** Another seed is another run: LONGSHORE_SEED. */
const seed = Number(process.env.LONGSHORE_SEED ?? 1);

/** The reference keeps an annotation of an old version in a DaemonSet, and fills a Service's addresses later than ours. */
const passedOver: ReadonlySet<string> = new Set(["DaemonSet", "Service"]);

function callTo(to: HttpsConnections, token: string): Call {
  return async (method, path, body, contentType = "application/json") => {
    const headers = {
      authorization: `Bearer ${token}`,
      accept: "application/json",
      "content-type": contentType,
    };
    const answer = await to.send({
      method,
      path,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: JSON.parse(answer.body.toString()) };
  };
}

describe("managed fields, beside the real kube-apiserver", () => {
  let plane: ControlPlane;
  let server: TestServer;
  let connections: readonly HttpsConnections[];
  let reference: Call;
  let ours: Call;

  beforeAll(async () => {
    plane = await startControlPlane({ requireServiceAccounts: false });
    server = await serveForTest({ controllers: false, emulatedVersion: "1.20" });
    const theirs = new HttpsConnections(plane.url, { ca: await readFile(plane.caPath, "utf8") });
    const own = new HttpsConnections(server.front.url, { ca: server.authority.certificate });
    connections = [theirs, own];
    reference = callTo(theirs, plane.adminToken);
    ours = callTo(own, adminToken);
  });
  afterAll(async () => {
    for (const connection of connections) connection.close();
    await server.stop();
    await plane.stop();
  });

  it.each(randomKinds)("after random writes to a $name", async (kind) => {
    const found: unknown[] = [];
    for await (const difference of writeDifferences(reference, ours, kind, {
      seed,
      sequences: 40,
      writes: 15,
    })) {
      found.push(difference);
    }
    expect(found).toEqual([]);
  });

  it.each(soundObjects.filter(({ object }) => !passedOver.has(String(object.kind))))(
    "of a new $object.kind $object.metadata.name",
    async ({ path, object }) => {
      const at = `${path}?fieldManager=one&dryRun=All`;
      const [a, b] = await Promise.all([reference("POST", at, object), ours("POST", at, object)]);
      const managed = ({ body }: Awaited<ReturnType<Call>>) =>
        body.metadata?.managedFields?.map((entry: object) => ({ ...entry, time: "" }));
      // What one of them refuses is no new object.
      if (a.status === 201 && b.status === 201) expect(managed(b), shown(b)).toEqual(managed(a));
    },
  );
});
