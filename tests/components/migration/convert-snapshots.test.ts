/** Snapshots of a claim outlive its conversion: old ones are restored, new ones are made, by the product's own controllers. */
import { fileURLToPath } from "node:url";
import { readDefinitions } from "@longshore/apiserver";
import { type PersistentVolumeClaim, resources } from "@longshore/kube";
import { snapshotCrdsUrl, snapshotResources } from "@longshore/storage";
import { expect, test } from "vitest";
import { ConversionWorld } from "../../../packages/simulation/src/conversion-world.ts";

const { volumeSnapshots, volumeSnapshotContents } = snapshotResources;
const { signal } = new AbortController();
const namespace = "default";
const claimName = "data-writer-0";
const driver = "ebs.csi.aws.com";

async function play(script: (world: ConversionWorld) => Promise<void>): Promise<void> {
  const snapshotDefinitions = await readDefinitions([fileURLToPath(snapshotCrdsUrl)]);
  await ConversionWorld.play({ plugins: ["aws-ebs"], snapshotDefinitions }, script);
}

/** Takes a snapshot of the writer's claim; its content. */
async function snapshot({ cluster: { kube }, until }: Bound, name: string) {
  const spec = { source: { persistentVolumeClaimName: claimName } };
  await kube.create(volumeSnapshots, { metadata: { namespace, name }, spec }, { signal });
  await until(`${name} is ready`, async () => {
    return (await kube.get(volumeSnapshots, { namespace, name }, { signal }))?.status?.readyToUse === true;
  });
  const stored = await kube.get(volumeSnapshots, { namespace, name }, { signal });
  const content = stored?.status?.boundVolumeSnapshotContentName ?? "";
  return kube.get(volumeSnapshotContents, { name: content }, { signal });
}

type Bound = Pick<ConversionWorld, "cluster" | "until">;
const bound = (world: ConversionWorld): Bound => ({
  cluster: world.cluster,
  until: world.until.bind(world),
});

/** A new claim from the snapshot; the snapshot that its disk was made from. */
async function restore({ cluster: { kube, cloud }, until }: Bound, from: string) {
  const name = `restored-${from}`;
  const claim: PersistentVolumeClaim = {
    metadata: { namespace, name },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "native",
      resources: { requests: { storage: "1Gi" } },
      dataSource: { apiGroup: volumeSnapshots.group, kind: "VolumeSnapshot", name: from },
    },
  };
  await kube.create(resources.persistentVolumeClaims, claim, { signal });
  await until(`${name} is bound`, async () => {
    const stored = await kube.get(resources.persistentVolumeClaims, { namespace, name }, { signal });
    return stored?.status?.phase === "Bound";
  });
  const stored = await kube.get(resources.persistentVolumeClaims, { namespace, name }, { signal });
  const ref = { name: stored?.spec?.volumeName ?? "" };
  const volume = await kube.get(resources.persistentVolumes, ref, { signal });
  return cloud.disks().find(({ id }) => id === volume?.spec?.csi?.volumeHandle)?.source;
}

test("one taken before and one taken after name the same disk, and both are restored", async () => {
  await play(async (world) => {
    const cluster = bound(world);
    const before = await snapshot(cluster, "before");
    const result = await world.convert(world.operator("m1"), { scaleDown: true });
    expect(result.failed).toEqual([]);
    await world.writersRun();
    expect([await world.lostWrites(), world.violations]).toEqual([[], []]);
    const [volume] = world.cluster.objects(resources.persistentVolumes);
    const after = await snapshot(cluster, "after");
    for (const content of [before, after]) {
      expect(content?.spec).toMatchObject({
        driver,
        source: { volumeHandle: volume?.spec?.csi?.volumeHandle },
      });
    }
    await world.cluster.kube.create(
      resources.storageClasses,
      { metadata: { name: "native" }, provisioner: driver, volumeBindingMode: "Immediate" },
      { signal },
    );
    // The world reports each disk that is made from here on.
    expect(await restore(cluster, "before")).toEqual({
      kind: "snapshot",
      id: before?.status?.snapshotHandle,
    });
    expect(await restore(cluster, "after")).toEqual({ kind: "snapshot", id: after?.status?.snapshotHandle });
  });
});

test("a claim whose snapshot names another disk is refused, and nothing is changed", async () => {
  await play(async (world) => {
    const { kube } = world.cluster;
    const content = await snapshot(bound(world), "before");
    const name = content?.metadata.name ?? "";
    const wrong = {
      metadata: { name: "wrong" },
      spec: {
        ...content?.spec,
        deletionPolicy: "Retain" as const,
        driver,
        source: { volumeHandle: "vol-other" },
        volumeSnapshotRef: { ...content?.spec.volumeSnapshotRef },
      },
    };
    await kube.create(volumeSnapshotContents, wrong, { signal });
    const status = { boundVolumeSnapshotContentName: "wrong" };
    const stored = await kube.get(volumeSnapshots, { namespace, name: "before" }, { signal });
    if (stored === undefined) throw new Error(`the snapshot of ${name} is gone`);
    await kube.updateStatus(
      volumeSnapshots,
      { ...stored, status: { ...stored.status, ...status } },
      { signal },
    );
    const plan = await world.plan(world.operator("m1"), { scaleDown: true });
    expect(plan.volumes).toEqual([]);
    expect(plan.refused.flatMap(({ refusals }) => refusals)).toMatchObject([
      {
        code: "snapshot",
        object: "VolumeSnapshotContent wrong",
        field: "spec.source.volumeHandle",
        reason: expect.stringMatching(/^it is vol-other, and the claim of VolumeSnapshot default\/before/),
      },
    ]);
    expect(world.violations).toEqual([]);
  });
});
