/** The scheduler over a cache that lags: what it has chosen counts before the cache shows it. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type KubeClient, type KubeObject, type Resource, resources, sharedInformers } from "@longshore/kube";
import { type Component, stopAll } from "@longshore/runtime";
import { laggingClient, virtualEnv } from "@longshore/testing/kube";
import { afterEach, expect, test } from "vitest";
import { startScheduler } from "./scheduler.ts";

const { signal } = new AbortController();
const driver = "ebs.csi.aws.com";
const components: Component[] = [];
afterEach(() => stopAll(components.splice(0)));

async function createNode(kube: KubeClient, slots: number): Promise<void> {
  await kube.create(resources.nodes, { metadata: { name: "n1" } }, { signal });
  const body = { status: { conditions: [{ type: "Ready", status: "True" }] } };
  const options = { subresource: "status", signal } as const;
  await kube.patch(resources.nodes, { name: "n1" }, { type: "merge", body }, options);
  // A new node is tainted as not ready.
  const untainted = { spec: { taints: null } };
  await kube.patch(resources.nodes, { name: "n1" }, { type: "merge", body: untainted }, { signal });
  const spec = { drivers: [{ name: driver, nodeID: "i", topologyKeys: [], allocatable: { count: slots } }] };
  await kube.create(resources.csiNodes, { metadata: { name: "n1" }, spec }, { signal });
}

async function createPod(kube: KubeClient, name: string, volumeName?: string): Promise<void> {
  const create = <T extends KubeObject>(resource: Resource<T>, object: T) =>
    kube.create(resource, object, { signal });
  const bound = { "pv.kubernetes.io/bind-completed": "yes" };
  const resource = { storage: "1Gi" };
  if (volumeName !== undefined) {
    await create(resources.persistentVolumes, {
      metadata: { name: volumeName },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: resource,
        csi: { driver, volumeHandle: volumeName },
      },
    });
    await create(resources.persistentVolumeClaims, {
      metadata: { name, namespace: "default", annotations: bound },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: resource }, volumeName },
    });
  }
  await create(resources.pods, {
    metadata: { name, namespace: "default" },
    spec: {
      containers: [{ name: "c", image: "none" }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: name } }],
    },
  });
}

/** The pods with their nodes. */
async function placesOf(kube: KubeClient): Promise<object> {
  const { items } = await kube.list(resources.pods, { signal });
  return Object.fromEntries(items.map(({ metadata, spec }) => [metadata.name, spec?.nodeName]));
}

function start(lagMs: number) {
  const env = virtualEnv();
  const kube = createApiServer(env, { store: memoryStore() }).client();
  const late = { ...env, kube: laggingClient(env.clock, kube, { lagMs, isDead: false }) };
  const informers = sharedInformers(late);
  components.push(informers, startScheduler({ ...late, informers }, { migrates: () => false }));
  return { clock: env.clock, kube };
}

test("two pods never take the same last slot (controllers.md B7)", async () => {
  const { clock, kube } = start(3000);
  await createNode(kube, 1);
  await createPod(kube, "a", "v1");
  await createPod(kube, "b", "v2");
  await clock.advance(20_000);
  expect(await placesOf(kube)).toEqual({ a: "n1", b: undefined });
  await kube.delete(resources.pods, { namespace: "default", name: "a" }, { gracePeriodSeconds: 0, signal });
  await clock.advance(3500);
  expect(await placesOf(kube)).toEqual({ b: "n1" });
});

test("a pod is scheduled as soon as its claim is there (controllers.md B7)", async () => {
  const { clock, kube } = start(0);
  await createNode(kube, 1);
  await createPod(kube, "a");
  await clock.advance(5500);
  expect(await placesOf(kube)).toEqual({ a: undefined });
  const spec = {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
    storageClassName: "late",
  };
  const late = { metadata: { name: "late" }, provisioner: driver, volumeBindingMode: "WaitForFirstConsumer" };
  await kube.create(resources.storageClasses, late, { signal });
  const claim = { metadata: { name: "a", namespace: "default" }, spec };
  await kube.create(resources.persistentVolumeClaims, claim, { signal });
  await clock.advance(100);
  const ref = { namespace: "default", name: "a" };
  const stored = await kube.get(resources.persistentVolumeClaims, ref, { signal });
  expect(stored?.metadata.annotations?.["volume.kubernetes.io/selected-node"]).toBe("n1");
  expect(await placesOf(kube)).toEqual({ a: undefined });
});

test("what is still attached keeps its slot after its pod has gone, until it is detached (csi-plugin.md 16)", async () => {
  const { clock, kube } = start(0);
  await createNode(kube, 1);
  const spec = { attacher: driver, nodeName: "n1", source: { persistentVolumeName: "gone" } };
  await kube.create(resources.volumeAttachments, { metadata: { name: "va" }, spec }, { signal });
  await createPod(kube, "a", "v1");
  await clock.advance(20_000);
  expect(await placesOf(kube)).toEqual({ a: undefined });
  await kube.delete(resources.volumeAttachments, { name: "va" }, { signal });
  await clock.advance(100);
  expect(await placesOf(kube)).toEqual({ a: "n1" });
});
