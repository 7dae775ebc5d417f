/** What only a cache says decides over no disk: the server is asked directly before (docs/contract.md C3). */
import {
  interceptWrites,
  type KubeClient,
  type KubeObject,
  type PersistentVolume,
  resources,
  type Stored,
  type WatchEvent,
} from "@longshore/kube";
import { FakeProvisioning } from "@longshore/testing/sidecars";
import { describe, expect, it } from "vitest";
import { intent, ref } from "../testing/leak-stage.ts";
import { aClaim, addNode, aStorageClass, sidecarWorld, type World } from "../testing/world.ts";
import { startProvisioner } from "./provisioner.ts";

const namespace = "default";
const secretParameters = {
  "csi.storage.k8s.io/provisioner-secret-name": "cloud",
  "csi.storage.k8s.io/provisioner-secret-namespace": namespace,
};

async function worldWith(parameters?: Record<string, string>): Promise<World> {
  const world = await sidecarWorld({}, { extend: new FakeProvisioning().extend });
  const { kube, signal } = world;
  await addNode(world, "node-a", "us-east-1a");
  const storageClass = aStorageClass(parameters === undefined ? {} : { parameters });
  await kube.create(resources.storageClasses, storageClass, { signal });
  await kube.create(
    resources.secrets,
    { metadata: { name: "cloud", namespace }, data: { key: "dmFsdWU=" } },
    { signal },
  );
  return world;
}

/** The client with a watch of claims that reports each one as deleted once the intent is on it. */
function losingClaims(kube: KubeClient, link: { isLosing: boolean }): KubeClient {
  async function* lossy<T extends KubeObject>(events: AsyncIterable<WatchEvent<T>>) {
    for await (const event of events) {
      yield event;
      if (event.type === "BOOKMARK" || !link.isLosing) continue;
      const { metadata } = event.object;
      if (!metadata.finalizers?.includes(intent)) continue;
      const resourceVersion = String(Number(metadata.resourceVersion) + 1);
      const object = { ...event.object, metadata: { ...metadata, resourceVersion } };
      yield { type: "DELETED", object } as const;
    }
  }
  return {
    ...interceptWrites(kube, (_, signal, send) => send(signal)),
    watch(resource, options) {
      const events = kube.watch(resource, options);
      return resource.kind === "PersistentVolumeClaim" ? lossy(events) : events;
    },
  };
}

const askedFor = ({ cloud }: World, rpc: string) =>
  cloud.calls.filter((call) => call.startsWith(`${rpc} `)).length;

/** A change of the claim that its watch delivers. */
async function touchClaim({ kube, signal }: World): Promise<void> {
  const body = { metadata: { labels: { touched: "yes" } } };
  await kube.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, { signal });
}

async function settledWithOneVolume(world: World): Promise<void> {
  const { kube, signal } = world;
  await world.eventually("the volume, without the intent", async () => {
    const claim = await kube.get(resources.persistentVolumeClaims, ref, { signal });
    const { items } = await kube.list(resources.persistentVolumes, { signal });
    return items.length === 1 && !claim?.metadata.finalizers?.includes(intent);
  });
  expect(world.cloud.disks.size).toBe(1);
}

describe("a claim that only the cache has lost", () => {
  it("gets the volume that was being made for it", async () => {
    const world = await worldWith();
    const link = { isLosing: true };
    let finish = () => {};
    const held = new Promise<void>((resolve) => {
      finish = resolve;
    });
    world.csi.intercept(async (call, proceed) => {
      const answer = await proceed();
      if (call.rpc === "CreateVolume") await held;
      return answer;
    });
    const provisioner = startProvisioner(world.env(losingClaims(world.kube, link)));
    await world.kube.create(resources.persistentVolumeClaims, aClaim(), { signal: world.signal });
    await world.eventually("the call", async () => askedFor(world, "CreateVolume") > 0);
    await world.clock.settle();
    finish();
    link.isLosing = false;
    await settledWithOneVolume(world);
    expect(askedFor(world, "DeleteVolume")).toBe(0);
    await provisioner.stop();
  });

  it("keeps the volume that an uncertain call may have made", async () => {
    const world = await worldWith();
    const link = { isLosing: true };
    world.cloud.next("CreateVolume", { lost: true });
    const provisioner = startProvisioner(world.env(losingClaims(world.kube, link)));
    await world.kube.create(resources.persistentVolumeClaims, aClaim(), { signal: world.signal });
    await world.eventually("the call", async () => askedFor(world, "CreateVolume") > 0);
    await world.clock.advance(30_000);
    expect(askedFor(world, "DeleteVolume")).toBe(0);
    expect(world.cloud.disks.size).toBe(1);
    link.isLosing = false;
    await touchClaim(world);
    await settledWithOneVolume(world);
    expect(askedFor(world, "DeleteVolume")).toBe(0);
    await provisioner.stop();
  });
});

/** The client that lets something happen once, just before a secret is read. */
function beforeSecret(kube: KubeClient, happens: () => Promise<unknown>): KubeClient {
  let isDone = false;
  return {
    ...interceptWrites(kube, (_, signal, send) => send(signal)),
    async get(resource, object, options) {
      if (resource.kind === "Secret" && !isDone) {
        isDone = true;
        await happens();
      }
      return kube.get(resource, object, options);
    },
  };
}

const patchVolume = ({ kube, signal }: World, name: string, body: object, subresource?: "status") =>
  kube.patch(
    resources.persistentVolumes,
    { name },
    { type: "merge", body },
    subresource === undefined ? { signal } : { signal, subresource },
  );

const changes: readonly [
  name: string,
  change: (world: World, pv: Stored<PersistentVolume>) => Promise<unknown>,
][] = [
  [
    "is to be retained",
    (world, { metadata }) =>
      patchVolume(world, metadata.name, { spec: { persistentVolumeReclaimPolicy: "Retain" } }),
  ],
  [
    "is bound again",
    (world, { metadata }) => patchVolume(world, metadata.name, { status: { phase: "Bound" } }, "status"),
  ],
  [
    "is another provisioner's",
    (world, { metadata }) =>
      patchVolume(world, metadata.name, {
        metadata: { annotations: { "pv.kubernetes.io/provisioned-by": "other.example.com" } },
      }),
  ],
  [
    "has been replaced under its name by one that is in use",
    async (world, pv) => {
      const { kube, signal } = world;
      const { name } = pv.metadata;
      await patchVolume(world, name, { metadata: { finalizers: null } });
      await kube.delete(resources.persistentVolumes, { name }, { signal });
      const { annotations } = pv.metadata;
      const metadata = annotations === undefined ? { name } : { name, annotations };
      await kube.create(resources.persistentVolumes, { metadata, spec: pv.spec ?? {} } as PersistentVolume, {
        signal,
      });
      await patchVolume(world, name, { status: { phase: "Bound" } }, "status");
    },
  ],
  [
    "has been deleted by hand, with the protection taken off, to keep its disk",
    async (world, { metadata: { name } }) => {
      await patchVolume(world, name, { metadata: { finalizers: null } });
      await world.kube.delete(resources.persistentVolumes, { name }, { signal: world.signal });
    },
  ],
];

describe("a released volume that, by the time the secret is read,", () => {
  it.each(changes)("%s keeps its disk", async (_, change) => {
    const world = await worldWith(secretParameters);
    const { kube, signal } = world;
    const making = startProvisioner(world.env());
    await kube.create(resources.persistentVolumeClaims, aClaim(), { signal });
    await settledWithOneVolume(world);
    await making.stop();
    const [pv] = (await kube.list(resources.persistentVolumes, { signal })).items;
    if (pv === undefined) throw new Error("there is no volume");
    await patchVolume(world, pv.metadata.name, { status: { phase: "Released" } }, "status");
    let hasChanged = false;
    const client = beforeSecret(kube, async () => {
      await change(world, pv);
      hasChanged = true;
    });
    const provisioner = startProvisioner(world.env(client));
    await world.eventually("the change", async () => hasChanged);
    await world.clock.advance(60_000);
    expect(world.cloud.disks.size).toBe(1);
    expect(askedFor(world, "DeleteVolume")).toBe(0);
    await provisioner.stop();
  });
});
