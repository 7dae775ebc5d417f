/** The provisioner is killed at every point of copying, publishing capacity and taking a claim; the next one completes it. */
import { fileURLToPath } from "node:url";
import { readDefinitions } from "@longshore/apiserver";
import { type PersistentVolumeClaim, resources } from "@longshore/kube";
import { snapshotCrdsUrl, snapshotResources } from "@longshore/storage";
import { type CrashFlow, crashAtEveryPoint, crashInPairs, Succession } from "@longshore/testing/kube";
import { FakeProvisioning } from "@longshore/testing/sidecars";
import { describe, expect, it } from "vitest";
import { mortal } from "../testing/crashing.ts";
import { aClaim, addNode, aStorageClass, sidecarWorld, type World } from "../testing/world.ts";
import { type ProvisionerOptions, startProvisioner } from "./provisioner.ts";

const namespace = "default";
const ours = /^(longshore\.dev|provisioner\.storage\.kubernetes\.io)\//;

interface Story {
  readonly name: string;
  readonly options: ProvisionerOptions;
  readonly binding: string;
  /** @throws Error at a wrong end */
  play(world: World): Promise<void>;
}

const createClaim = ({ kube, signal }: World, name: string, dataSource?: object) => {
  const claim = aClaim({ name });
  const spec = { ...claim.spec, ...(dataSource === undefined ? {} : { dataSource }) };
  return kube.create(resources.persistentVolumeClaims, { ...claim, spec } as PersistentVolumeClaim, {
    signal,
  });
};

/** The persistent-volume controller's part: the claim's volume is bound to it. */
async function bind(world: World, name: string): Promise<void> {
  const { kube, signal } = world;
  const ref = { name, namespace };
  const claim = await kube.get(resources.persistentVolumeClaims, ref, { signal });
  const volume = { name: `pvc-${claim?.metadata.uid}` };
  await world.eventually(`the volume of ${name}`, async () => {
    const now = await kube.get(resources.persistentVolumeClaims, ref, { signal });
    const isStored = (await kube.get(resources.persistentVolumes, volume, { signal })) !== undefined;
    return isStored && !(now?.metadata.finalizers ?? []).includes("longshore.dev/provisioning");
  });
  const merge = (body: object) => ({ type: "merge", body }) as const;
  const status = { signal, subresource: "status" } as const;
  await kube.patch(resources.persistentVolumeClaims, ref, merge({ spec: { volumeName: volume.name } }), {
    signal,
  });
  await kube.patch(resources.persistentVolumeClaims, ref, merge({ status: { phase: "Bound" } }), status);
  await kube.patch(resources.persistentVolumes, volume, merge({ status: { phase: "Bound" } }), status);
}

async function createSnapshot({ kube, signal }: World): Promise<void> {
  const ref = { name: "snap", namespace };
  const source = { persistentVolumeClaimName: "src" };
  const { metadata } = await kube.create(
    snapshotResources.volumeSnapshots,
    { metadata: ref, spec: { source } },
    { signal },
  );
  await kube.create(
    snapshotResources.volumeSnapshotContents,
    {
      metadata: { name: "content" },
      spec: {
        deletionPolicy: "Delete",
        driver: "ebs.csi.aws.com",
        source: { snapshotHandle: "snap-1" },
        volumeSnapshotRef: { ...ref, uid: metadata.uid },
      },
    },
    { signal },
  );
  const merge = (body: object) => ({ type: "merge", body }) as const;
  const status = { signal, subresource: "status" } as const;
  const content = { snapshotHandle: "snap-1", readyToUse: true };
  await kube.patch(
    snapshotResources.volumeSnapshotContents,
    { name: "content" },
    merge({ status: content }),
    status,
  );
  const bound = { boundVolumeSnapshotContentName: "content", readyToUse: true };
  await kube.patch(snapshotResources.volumeSnapshots, ref, merge({ status: bound }), status);
}

const stories: readonly Story[] = [
  {
    name: "a clone and a restore, whose sources are deleted then",
    options: {},
    binding: "Immediate",
    async play(world) {
      const { kube, signal } = world;
      await createClaim(world, "src");
      await bind(world, "src");
      await createSnapshot(world);
      await createClaim(world, "clone", { kind: "PersistentVolumeClaim", name: "src" });
      const apiGroup = "snapshot.storage.k8s.io";
      await createClaim(world, "restore", { apiGroup, kind: "VolumeSnapshot", name: "snap" });
      await bind(world, "clone");
      await bind(world, "restore");
      expect(world.cloud.disks.size).toBe(3);
      await kube.delete(resources.persistentVolumeClaims, { name: "src", namespace }, { signal });
      await kube.delete(snapshotResources.volumeSnapshots, { name: "snap", namespace }, { signal });
      await world.eventually("nothing of ours on the sources", async () => {
        const { items: claims } = await kube.list(resources.persistentVolumeClaims, { signal });
        const { items: snapshots } = await kube.list(snapshotResources.volumeSnapshots, { signal });
        const all = [...claims, ...snapshots].flatMap(({ metadata }) => metadata.finalizers ?? []);
        return !all.some((finalizer) => ours.test(finalizer));
      });
    },
  },
  {
    name: "figures of room",
    options: { capacity: { namespace, ownerRefLevel: -1, pollIntervalMs: 10_000 } },
    binding: "WaitForFirstConsumer",
    async play(world) {
      const figures = async () =>
        (await world.kube.list(resources.csiStorageCapacities, { signal: world.signal })).items
          .map(
            ({ capacity, nodeTopology }) => `${Object.values(nodeTopology?.matchLabels ?? {})} ${capacity}`,
          )
          .sort()
          .join();
      await world.eventually("figures", async () => (await figures()) === "us-east-1a 10Gi,us-east-1b 20Gi");
      await world.kube.delete(resources.csiNodes, { name: "node-b" }, { signal: world.signal });
      await world.eventually("one figure", async () => (await figures()) === "us-east-1a 10Gi");
    },
  },
  {
    name: "taking a claim for the node",
    options: { nodeDeployment: { nodeName: "node-a" }, strictTopology: true },
    binding: "Immediate",
    async play(world) {
      await createClaim(world, "data");
      await bind(world, "data");
      expect([...world.cloud.disks.values()].map(({ zone }) => zone)).toEqual(["us-east-1a"]);
    },
  },
];

const definitions = await readDefinitions([fileURLToPath(snapshotCrdsUrl)]);

/** Plays a story; one provisioner takes the place of the other. */
const flowOf =
  ({ options, binding, play }: Story): CrashFlow =>
  async (points) => {
    const driver = new FakeProvisioning();
    driver.room.set("us-east-1a", 10n << 30n);
    driver.room.set("us-east-1b", 20n << 30n);
    const world = await sidecarWorld({}, { extend: driver.extend, definitions });
    await addNode(world, "node-a", "us-east-1a");
    await addNode(world, "node-b", "us-east-1b");
    const storageClass = aStorageClass({ volumeBindingMode: binding });
    await world.kube.create(resources.storageClasses, storageClass, { signal: world.signal });
    const provisioners = new Succession(points, (life) =>
      startProvisioner(mortal(world.env(), life), options),
    );
    await play(world);
    await world.clock.run(provisioners.stop());
    return provisioners.calls;
  };

describe("killed at every point of", () => {
  it.each(stories)("$name", async (story) => {
    const { summary, failures } = await crashAtEveryPoint(flowOf(story), story);
    console.log(summary);
    expect(failures).toEqual([]);
  });
});

describe("killed, and the one after it too, at", () => {
  it.each(stories)(
    "$name",
    async (story) => {
      const { summary, failures } = await crashInPairs(flowOf(story), 20, story);
      console.log(summary);
      expect(failures).toEqual([]);
    },
    3_600_000,
  );
});
