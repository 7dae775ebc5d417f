/**
 * A whole work cycle of each controller sidecar, with the reference driver, wherever it runs: in one process under a
 * virtual clock, or in processes of its own. What a cycle makes it takes away again, and it throws at a wrong end.
 */
import {
  isDeleting,
  isNotFound,
  type KubeClient,
  type KubeObject,
  type ObjectRef,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Resource,
  resources,
} from "@longshore/kube";
import type { ProviderDisk } from "@longshore/reference-driver";
import { migratedToAnnotation, snapshotResources } from "@longshore/storage";

/** A node of the world, with the provider's name of its machine. */
export interface CycleNode {
  readonly nodeName: string;
  readonly instanceId: string;
}

/** What a cycle works with. Nothing else is at work in it but the sidecar and, where one is needed, its companion. */
export interface CycleWorld {
  readonly kube: KubeClient;
  readonly signal: AbortSignal;
  readonly driverName: string;
  readonly zone: string;
  readonly nodes: readonly CycleNode[];
  /** Disks of the provider. */
  disks(): readonly ProviderDisk[];
  /** Snapshots of the provider, by id. */
  snapshots(): Promise<readonly string[]>;
  makeDisk(name: string): Promise<string>;
  deleteDisk(id: string): Promise<void>;
  /** Waits for `condition`. @throws Error when it does not come */
  eventually<T>(what: string, condition: () => Promise<T | undefined | false>): Promise<T>;
}

/** Names of the sidecars that have cycles. */
export type CycleName = "attacher" | "provisioner" | "resizer" | "snapshotter";

/** One run of a cycle; `id` makes its names unique. */
export type WorkCycle = (world: CycleWorld, id: string) => Promise<void>;

/** The cycles. */
export const workCycles: Readonly<Record<CycleName, WorkCycle>> = {
  attacher: attachTwice,
  provisioner: provisionAndGiveUp,
  resizer: expand,
  snapshotter: snapshot,
};

/** A migrated volume is attached to one node after the other, and deleted while it is attached to the last. */
async function attachTwice(world: CycleWorld, id: string): Promise<void> {
  const { kube, signal, driverName: attacher } = world;
  const disk = await world.makeDisk(`crash-${id}`);
  const pvName = `pv-${id}`;
  const spec = {
    ...volumeSpec,
    awsElasticBlockStore: { volumeID: `aws://${world.zone}/${disk}`, fsType: "ext4" },
  };
  const annotations = { [migratedToAnnotation]: attacher };
  await kube.create(
    resources.persistentVolumes,
    { metadata: { name: pvName, annotations }, spec },
    { signal },
  );
  const attachedTo = () =>
    world
      .disks()
      .find((each) => each.id === disk)
      ?.attachments.map(({ instanceId }) => instanceId)
      .join();
  for (const [at, { nodeName, instanceId }] of world.nodes.entries()) {
    const name = `va-${id}-${nodeName}`;
    const source = { persistentVolumeName: pvName };
    await kube.create(
      resources.volumeAttachments,
      { metadata: { name }, spec: { attacher, nodeName, source } },
      { signal },
    );
    await world.eventually(`${name} is attached`, async () => {
      const va = await kube.get(resources.volumeAttachments, { name }, { signal });
      return va?.status?.attached === true;
    });
    expectThat(attachedTo() === instanceId, `${disk} is attached to [${attachedTo()}], not to ${instanceId}`);
    if (at === world.nodes.length - 1) await letGo(world, resources.persistentVolumes, { name: pvName });
    await kube.delete(resources.volumeAttachments, { name }, { signal });
    await gone(world, resources.volumeAttachments, { name });
    expectThat(attachedTo() === "", `${disk} is still attached to [${attachedTo()}]`);
  }
  await gone(world, resources.persistentVolumes, { name: pvName });
  await world.deleteDisk(disk);
}

/** A claim gets a volume and is deleted; another is deleted while its volume is being made. No disk is left. */
async function provisionAndGiveUp(world: CycleWorld, id: string): Promise<void> {
  const { kube, signal } = world;
  const before = world.disks().length;
  const claims = resources.persistentVolumeClaims;
  await kube.create(
    resources.storageClasses,
    {
      metadata: { name: `class-${id}` },
      provisioner: world.driverName,
      reclaimPolicy: "Delete",
      volumeBindingMode: "Immediate",
    },
    { signal },
  );
  const [kept, dropped] = [`kept-${id}`, `dropped-${id}`];
  await kube.create(claims, aClaim(world, kept, id), { signal });
  const pv = await world.eventually("a volume for the claim", () => volumeOf(world, kept));
  await world.eventually("the intent is taken off", async () => {
    const claim = await kube.get(claims, { namespace: "default", name: kept }, { signal });
    return !claim?.metadata.finalizers?.includes("longshore.dev/provisioning");
  });
  const handle = pv.spec?.csi?.volumeHandle;
  const names = world.disks().map((disk) => disk.id);
  expectThat(names.includes(handle ?? ""), `the volume's disk ${handle} is not among [${names}]`);
  expectThat(names.length === before + 1, `there are ${names.length - before} disks for one claim`);

  await kube.create(claims, aClaim(world, dropped, id), { signal });
  for (const name of [dropped, kept]) await letGo(world, claims, { namespace: "default", name });
  for (const name of [dropped, kept]) {
    const ref = { namespace: "default", name };
    await world.eventually(`claim ${name} and its volume are gone`, async () => {
      if ((await kube.get(claims, ref, { signal })) !== undefined) return false;
      // The part of the persistent-volume controller and of the protection of volumes.
      const left = await volumeOf(world, name);
      if (left === undefined) return true;
      await release(world, left.metadata.name);
      return false;
    });
  }
  await world.eventually("the disks are gone", async () => world.disks().length === before);
  await kube.delete(resources.storageClasses, { name: `class-${id}` }, { signal });
}

/** A bound claim asks for more. */
async function expand(world: CycleWorld, id: string): Promise<void> {
  const { kube, signal, driverName } = world;
  const disk = await world.makeDisk(`crash-${id}`);
  const name = `data-${id}`;
  const ref = { namespace: "default", name };
  const pvName = `pv-${id}`;
  const claim = await kube.create(
    resources.persistentVolumeClaims,
    { ...aClaim(world, name, id), spec: { ...aClaim(world, name, id).spec, volumeName: pvName } },
    { signal },
  );
  const { uid } = claim.metadata;
  await kube.create(
    resources.storageClasses,
    { metadata: { name: `class-${id}` }, provisioner: driverName, allowVolumeExpansion: true },
    { signal },
  );
  const claimRef = { kind: "PersistentVolumeClaim", apiVersion: "v1", ...ref, uid };
  const spec = {
    ...volumeSpec,
    claimRef,
    storageClassName: `class-${id}`,
    csi: { driver: driverName, volumeHandle: disk },
  };
  await kube.create(resources.persistentVolumes, { metadata: { name: pvName }, spec }, { signal });
  const status = { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" } };
  await patchStatus(world, resources.persistentVolumeClaims, ref, status);
  const body = { spec: { resources: { requests: { storage: "2Gi" } } } };
  await kube.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, { signal });
  await world.eventually("the node's turn, or the end", async () => {
    const now = await kube.get(resources.persistentVolumeClaims, ref, { signal });
    const pending = now?.status?.conditions?.some(({ type }) => type === "FileSystemResizePending");
    return pending === true || now?.status?.capacity?.storage === "2Gi";
  });
  const pv = await kube.get(resources.persistentVolumes, { name: pvName }, { signal });
  expectThat(pv?.spec?.capacity?.storage === "2Gi", `the volume says ${pv?.spec?.capacity?.storage}`);
  const bytes = world.disks().find((each) => each.id === disk)?.sizeBytes;
  expectThat(bytes === 2n ** 31n, `the disk has ${bytes} bytes`);
  await letGo(world, resources.persistentVolumeClaims, ref);
  await gone(world, resources.persistentVolumeClaims, ref);
  await letGo(world, resources.persistentVolumes, { name: pvName });
  await gone(world, resources.persistentVolumes, { name: pvName });
  await kube.delete(resources.storageClasses, { name: `class-${id}` }, { signal });
  await world.deleteDisk(disk);
}

/** A snapshot of a claim is made, and deleted. */
async function snapshot(world: CycleWorld, id: string): Promise<void> {
  const { kube, signal, driverName } = world;
  const before = (await world.snapshots()).length;
  const disk = await world.makeDisk(`crash-${id}`);
  const [name, pvName, className] = [`data-${id}`, `pv-${id}`, `class-${id}`];
  const ref = { namespace: "default", name };
  const claim = await kube.create(
    resources.persistentVolumeClaims,
    { ...aClaim(world, name, id), spec: { ...aClaim(world, name, id).spec, volumeName: pvName } },
    { signal },
  );
  const claimRef = { kind: "PersistentVolumeClaim", apiVersion: "v1", ...ref, uid: claim.metadata.uid };
  const spec = { ...volumeSpec, claimRef, csi: { driver: driverName, volumeHandle: disk } };
  await kube.create(resources.persistentVolumes, { metadata: { name: pvName }, spec }, { signal });
  await patchStatus(world, resources.persistentVolumeClaims, ref, { phase: "Bound" });
  await kube.create(
    snapshotResources.volumeSnapshotClasses,
    { metadata: { name: className }, driver: driverName, deletionPolicy: "Delete" },
    { signal },
  );
  const source = { persistentVolumeClaimName: name };
  await kube.create(
    snapshotResources.volumeSnapshots,
    { metadata: ref, spec: { source, volumeSnapshotClassName: className } },
    { signal },
  );
  await world.eventually("the snapshot is ready", async () => {
    const now = await kube.get(snapshotResources.volumeSnapshots, ref, { signal });
    return now?.status?.readyToUse === true;
  });
  const made = (await world.snapshots()).length - before;
  expectThat(made === 1, `there are ${made} snapshots for one VolumeSnapshot`);
  await kube.delete(snapshotResources.volumeSnapshots, ref, { signal });
  await gone(world, snapshotResources.volumeSnapshots, ref);
  await world.eventually("the content is gone", async () => {
    const { items } = await kube.list(snapshotResources.volumeSnapshotContents, { signal });
    return items.every((content) => content.spec.volumeSnapshotRef.name !== name);
  });
  const left = (await world.snapshots()).length - before;
  expectThat(left === 0, `${left} snapshots are left`);
  await letGo(world, resources.persistentVolumeClaims, ref);
  await gone(world, resources.persistentVolumeClaims, ref);
  await letGo(world, resources.persistentVolumes, { name: pvName });
  await gone(world, resources.persistentVolumes, { name: pvName });
  await kube.delete(snapshotResources.volumeSnapshotClasses, { name: className }, { signal });
  await world.deleteDisk(disk);
}

const volumeSpec = {
  capacity: { storage: "1Gi" },
  accessModes: ["ReadWriteOnce"],
  persistentVolumeReclaimPolicy: "Retain",
};

function aClaim(world: CycleWorld, name: string, id: string): PersistentVolumeClaim {
  const annotations = { "volume.beta.kubernetes.io/storage-provisioner": world.driverName };
  return {
    metadata: { namespace: "default", name, annotations },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
      storageClassName: `class-${id}`,
    },
  };
}

async function volumeOf({ kube, signal }: CycleWorld, claimName: string) {
  const { items } = await kube.list(resources.persistentVolumes, { signal });
  return items.find(({ spec }) => spec?.claimRef?.name === claimName);
}

/** What the persistent-volume controller does with the volume of a claim that is gone, and its protection. */
async function release(world: CycleWorld, name: string): Promise<void> {
  const { kube, signal } = world;
  const pv = await kube.get(resources.persistentVolumes, { name }, { signal });
  if (pv === undefined) return;
  if (pv.status?.phase !== "Released") {
    await patchStatus(world, resources.persistentVolumes, { name }, { phase: "Released" });
  }
  if (isDeleting(pv)) await unprotect(world, resources.persistentVolumes, { name });
}

/**
 * Deletes, and removes the protection finalizers of a volume or claim that is in use: no other component here does
 * this.
 */
async function letGo<T extends KubeObject>(
  world: CycleWorld,
  resource: Resource<T>,
  ref: ObjectRef,
): Promise<void> {
  await world.kube.delete(resource, ref, { signal: world.signal });
  await unprotect(world, resource, ref);
}

async function unprotect<T extends KubeObject>(
  { kube, signal }: CycleWorld,
  resource: Resource<T>,
  ref: ObjectRef,
): Promise<void> {
  const object = await kube.get(resource, ref, { signal });
  const finalizers = object?.metadata.finalizers ?? [];
  const at = finalizers.findIndex((finalizer) => /^kubernetes\.io\/pvc?-protection$/.test(finalizer));
  if (at < 0) return;
  const path = `/metadata/finalizers/${at}`;
  const body = [
    { op: "test", path, value: finalizers[at] },
    { op: "remove", path },
  ];
  await kube.patch(resource, ref, { type: "json", body }, { signal }).catch((error) => {
    if (!isNotFound(error)) throw error;
  });
}

function gone<T extends KubeObject>(
  world: CycleWorld,
  resource: Resource<T>,
  ref: ObjectRef,
): Promise<unknown> {
  return world.eventually(`${resource.kind} ${ref.name} is gone`, async () => {
    const left = await world.kube.get(resource, ref, { signal: world.signal });
    if (left !== undefined) await unprotect(world, resource, ref);
    return left === undefined;
  });
}

async function patchStatus<T extends PersistentVolume | PersistentVolumeClaim>(
  { kube, signal }: CycleWorld,
  resource: Resource<T>,
  ref: ObjectRef,
  status: Readonly<Record<string, unknown>>,
): Promise<void> {
  const body = { status };
  await kube
    .patch(resource, ref, { type: "merge", body }, { signal, subresource: "status" })
    .catch((error) => {
      if (!isNotFound(error)) throw error;
    });
}

function expectThat(condition: boolean, otherwise: string): void {
  if (!condition) throw new Error(otherwise);
}
