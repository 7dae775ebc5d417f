/**
 * Our rules for objects against those of the real API server: some ten thousand wrong and right objects, created and
 * written over one another as dry runs on both, are answered alike, down to causes and filled members.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Call, type Difference, differences } from "../../packages/apiserver/src/testing/differences.ts";
import { HttpsConnections } from "../../packages/apiserver/src/testing/http.ts";
import { adminToken, serveForTest, type TestServer } from "../../packages/apiserver/src/testing/serve.ts";
import { type ControlPlane, startControlPlane } from "./support/index.ts";

let kubernetes: ControlPlane;
let own: TestServer;
let to: HttpsConnections;

beforeAll(async () => {
  kubernetes = await startControlPlane({ apiServerArgs: ["--disable-admission-plugins=ServiceAccount"] });
  own = await serveForTest({ controllers: false, emulatedVersion: "1.20" });
  to = new HttpsConnections(own.front.url, { ca: own.authority.certificate });
}, 120_000);
afterAll(async () => {
  to?.close();
  await own?.stop();
  await kubernetes?.stop();
});

const reference: Call = (method, path, body, contentType) =>
  kubernetes.call(method, path, body, contentType === undefined ? {} : { contentType });

const ours: Call = async (method, path, body, contentType = "application/json") => {
  const answer = await to.send({
    method,
    path,
    headers: { authorization: `Bearer ${adminToken}`, "content-type": contentType },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = answer.body.toString();
  return { status: answer.status, body: text.startsWith("{") ? JSON.parse(text) : text };
};

async function found(kinds: RegExp): Promise<Difference[]> {
  const all: Difference[] = [];
  const only = ({ object }: { readonly object: Record<string, unknown> }) => kinds.test(String(object.kind));
  for await (const difference of differences(reference, ours, only)) all.push(difference);
  return all;
}

/** How many differences are known, kind by kind; each may shrink and none may grow. */
test.each([
  [/^(CSIDriver|CSINode|StorageClass|VolumeAttachment|ConfigMap|Lease)$/, 0],
  [/^PersistentVolume$/, 4],
  [/^PersistentVolumeClaim$/, 24],
  [/^Pod$/, 0],
  [/^Node$/, 13],
  [/^(Deployment|ReplicaSet|DaemonSet)$/, 10],
  [/^StatefulSet$/, 41],
])(
  "%s: at most %i answers differ",
  async (kinds, most) => {
    const all = await found(kinds);
    expect(all.length, JSON.stringify(all.slice(0, 5), undefined, 1)).toBeLessThanOrEqual(most);
  },
  280_000,
);
