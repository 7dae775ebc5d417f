/** The embedded API server as the JavaScript client of Kubernetes (`@kubernetes/client-node`) sees it. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  ApiException,
  AppsV1Api,
  CoreV1Api,
  KubeConfig,
  KubernetesObjectApi,
  makeInformer,
  PatchStrategy,
  StorageV1Api,
  setHeaderOptions,
  type V1ConfigMap,
  type V1PersistentVolume,
  VersionApi,
  Watch,
} from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RunningApiServer, runApiServer } from "../../packages/apiserver/src/index.ts";
import { realEnv } from "../../packages/apiserver/src/testing/serve.ts";

let directory: string;
let server: RunningApiServer;
let config: KubeConfig;
let core: CoreV1Api;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "client-node-"));
  const kubeconfigOut = join(directory, "kubeconfig");
  server = await runApiServer(realEnv, { dataDir: join(directory, "data"), port: 0, kubeconfigOut });
  config = new KubeConfig();
  config.loadFromFile(kubeconfigOut);
  core = config.makeApiClient(CoreV1Api);
});
afterAll(async () => {
  await server.stop();
  await rm(directory, { recursive: true });
});

const volume = (name: string, labels: Record<string, string> = {}): V1PersistentVolume => ({
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name, labels },
  spec: {
    capacity: { storage: "1Gi" },
    accessModes: ["ReadWriteOnce"],
    csi: { driver: "csi.example.com", volumeHandle: name },
  },
});

it("makes, reads, changes and deletes objects, with times as dates", async () => {
  const made = await core.createPersistentVolume({ body: volume("one") });
  expect(made.metadata?.creationTimestamp).toBeInstanceOf(Date);
  expect(made.status?.phase).toBe("Pending");
  const next = { ...made, metadata: { ...made.metadata, labels: { tier: "gold" } } };
  const replaced = await core.replacePersistentVolume({ name: "one", body: next });
  expect(replaced.metadata?.labels).toEqual({ tier: "gold" });
  expect((await core.readPersistentVolume({ name: "one" })).metadata?.resourceVersion).toBe(
    replaced.metadata?.resourceVersion,
  );
  const deleted = await core.deletePersistentVolume({ name: "one" });
  expect(deleted.metadata?.deletionTimestamp).toBeInstanceOf(Date);
});

it.each([
  [PatchStrategy.MergePatch, { metadata: { labels: { how: "merge" } } }],
  [PatchStrategy.StrategicMergePatch, { metadata: { labels: { how: "strategic" } } }],
  [PatchStrategy.JsonPatch, [{ op: "add", path: "/metadata/labels/how", value: "json" }]],
])("patches with %s", async (strategy, body) => {
  const name = `patched-${strategy.replace(/\W/g, "-").toLowerCase()}`;
  await core.createPersistentVolume({ body: volume(name, { kept: "yes" }) });
  const options = setHeaderOptions("Content-Type", strategy);
  const patched = await core.patchPersistentVolume({ name, body }, options);
  expect(patched.metadata?.labels).toMatchObject({
    kept: "yes",
    how: expect.stringMatching(/merge|strategic|json/),
  });
});

it("lists in pages and by labels", async () => {
  for (const i of [1, 2, 3])
    await core.createPersistentVolume({ body: volume(`page-${i}`, { set: "pages" }) });
  const first = await core.listPersistentVolume({ labelSelector: "set=pages", limit: 2 });
  expect(first.items.map((item) => item.metadata?.name)).toEqual(["page-1", "page-2"]);
  const _continue = first.metadata?._continue ?? "";
  const second = await core.listPersistentVolume({ labelSelector: "set=pages", limit: 2, _continue });
  expect(second.items.map((item) => item.metadata?.name)).toEqual(["page-3"]);
});

it("gets the reason of a refusal, as a Status", async () => {
  const code = async (doing: Promise<unknown>) => {
    const error = await doing.then(() => undefined).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ApiException);
    const { code, body } = error as ApiException<unknown>;
    const { reason } = typeof body === "string" ? JSON.parse(body) : (body as { reason: string });
    return [code, reason];
  };
  expect(await code(core.readPersistentVolume({ name: "missing" }))).toEqual([404, "NotFound"]);
  await core.createPersistentVolume({ body: volume("twice") });
  expect(await code(core.createPersistentVolume({ body: volume("twice") }))).toEqual([409, "AlreadyExists"]);
  const stale = { ...volume("twice"), metadata: { name: "twice", resourceVersion: "1" } };
  expect(await code(core.replacePersistentVolume({ name: "twice", body: stale }))).toEqual([409, "Conflict"]);
  expect(await code(core.createPersistentVolume({ body: volume("Not a name") }))).toEqual([422, "Invalid"]);
});

it("follows with an informer what comes, changes and goes", async () => {
  const path = "/api/v1/persistentvolumes";
  const list = () => core.listPersistentVolume({ labelSelector: "set=followed" });
  const informer = makeInformer(config, path, list, "set=followed");
  const seen: string[] = [];
  let wake = () => {};
  for (const event of ["add", "update", "delete"] as const) {
    informer.on(event, (object: V1PersistentVolume) => {
      seen.push(`${event} ${object.metadata?.name}`);
      wake();
    });
  }
  const until = async (last: string) => {
    while (seen.at(-1) !== last) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  await core.createPersistentVolume({ body: volume("there", { set: "followed" }) });
  await informer.start();
  await until("add there");
  await core.createPersistentVolume({ body: volume("comes", { set: "followed" }) });
  await until("add comes");
  const body = [{ op: "replace", path: "/metadata/finalizers", value: [] }];
  await core.patchPersistentVolume(
    { name: "comes", body },
    setHeaderOptions("Content-Type", PatchStrategy.JsonPatch),
  );
  await until("update comes");
  await core.deletePersistentVolume({ name: "comes" });
  await until("delete comes");
  expect(informer.list().map((object) => object.metadata?.name)).toEqual(["there"]);
  await informer.stop();
});

it("watches from a version", async () => {
  const { metadata } = await core.listPersistentVolume();
  const query = { resourceVersion: metadata?.resourceVersion, labelSelector: "set=watched" };
  const watch = new Watch(config);
  let controller: AbortController | undefined;
  const first = await new Promise<string>((resolve, reject) => {
    const onEvent = (type: string, object: V1PersistentVolume) => resolve(`${type} ${object.metadata?.name}`);
    watch
      .watch("/api/v1/persistentvolumes", query, onEvent, () => {})
      .then(async (started) => {
        controller = started;
        await core.createPersistentVolume({ body: volume("watched", { set: "watched" }) });
      }, reject);
  });
  controller?.abort();
  expect(first).toBe("ADDED watched");
});

it("knows the other groups, sub-resources and the version", async () => {
  const storage = config.makeApiClient(StorageV1Api);
  await storage.createStorageClass({ body: { metadata: { name: "gold" }, provisioner: "csi.example.com" } });
  expect((await storage.readStorageClass({ name: "gold" })).reclaimPolicy).toBe("Delete");
  const apps = config.makeApiClient(AppsV1Api);
  const labels = { app: "web" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "a" }] } };
  const body = { metadata: { name: "web" }, spec: { selector: { matchLabels: labels }, template } };
  await apps.createNamespacedDeployment({ namespace: "default", body });
  const named = { name: "web", namespace: "default" };
  const scale = await apps.readNamespacedDeploymentScale(named);
  expect(scale.spec?.replicas).toBe(1);
  await apps.replaceNamespacedDeploymentScale({ ...named, body: { ...scale, spec: { replicas: 3 } } });
  expect((await apps.readNamespacedDeployment(named)).spec?.replicas).toBe(3);
  expect((await config.makeApiClient(VersionApi).getCode()).minor).toBe("36");
});

it("finds the place of an object by discovery", async () => {
  const objects = KubernetesObjectApi.makeApiClient(config);
  const map: V1ConfigMap = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "found" } };
  const made = await objects.create(map);
  expect(made.metadata?.namespace).toBe("default");
  const read = await objects.read<V1ConfigMap>({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "found" },
  });
  expect(read.metadata?.uid).toBe(made.metadata?.uid);
});
