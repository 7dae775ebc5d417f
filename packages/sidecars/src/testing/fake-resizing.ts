/** What the fake driver needs to expand and modify, and claims that are bound to its volumes. */
import {
  ControllerServiceCapability_RPC_Type as ControllerRpc,
  type CsiServices,
  CsiStatusError,
  NodeServiceCapability_RPC_Type as NodeRpc,
} from "@longshore/csi";
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { resources } from "@longshore/kube";
import type { FakeCloud } from "@longshore/testing/sidecars";
import { aStorageClass, sidecarWorld, type World, type WorldOptions } from "./world.ts";

/** How the driver resizes. */
export interface ResizingOptions {
  /** Default true. */
  readonly controllerExpands?: boolean;
  /** The node service has EXPAND_VOLUME; default true. */
  readonly nodeExpands?: boolean;
  /** What it answers about the node's part; default true. */
  readonly nodeExpansionRequired?: boolean;
  readonly modifies?: boolean;
  readonly emulatedVersion?: string;
}

const gib = 1024n ** 3n;

/** A world whose driver resizes. */
export function resizingWorld(options: ResizingOptions = {}): Promise<World> {
  const { controllerExpands = true, nodeExpands = true, modifies = false } = options;
  const { nodeExpansionRequired = true } = options;
  const extend: WorldOptions["extend"] = (services, cloud): CsiServices => ({
    ...services,
    controller: {
      ...services.controller,
      controllerGetCapabilities: async () => ({
        capabilities: [
          ...(controllerExpands ? [ControllerRpc.EXPAND_VOLUME] : []),
          ...(modifies ? [ControllerRpc.MODIFY_VOLUME] : []),
        ].map((type) => ({ type: { case: "rpc" as const, value: { type } } })),
      }),
      controllerExpandVolume: ({ volumeId, capacityRange }) => {
        const required = capacityRange?.requiredBytes ?? 0n;
        return cloud.run("ControllerExpandVolume", `${volumeId} ${required / gib}Gi`, () => {
          const disk = diskOf(cloud, volumeId);
          const bytes = required > disk.bytes ? required : disk.bytes;
          cloud.disks.set(volumeId, { ...disk, bytes });
          return { capacityBytes: bytes, nodeExpansionRequired };
        });
      },
      controllerModifyVolume: ({ volumeId, mutableParameters }) =>
        cloud.run("ControllerModifyVolume", `${volumeId} ${JSON.stringify(mutableParameters)}`, () => {
          const disk = diskOf(cloud, volumeId);
          cloud.disks.set(volumeId, { ...disk, ...mutableParameters });
          return {};
        }),
    },
    node: {
      nodeGetCapabilities: async () => ({
        capabilities: (nodeExpands ? [NodeRpc.EXPAND_VOLUME] : []).map((type) => ({
          type: { case: "rpc" as const, value: { type } },
        })),
      }),
    },
  });
  const { emulatedVersion } = options;
  return sidecarWorld({}, { extend, ...(emulatedVersion === undefined ? {} : { emulatedVersion }) });
}

function diskOf(cloud: FakeCloud, volumeId: string) {
  const disk = cloud.disks.get(volumeId);
  if (disk === undefined) throw new CsiStatusError("NOT_FOUND", `no volume ${volumeId}`);
  return disk;
}

/** Where the claim of a test is. */
export const claimRef = { namespace: "default", name: "data" } as const;

/** Makes a claim of 1 GiB that is bound to `pv-1`, a CSI volume of the driver unless another source is given. */
export async function addBoundClaim(
  { kube, cloud, signal }: World,
  source: Partial<NonNullable<PersistentVolume["spec"]>> = {
    csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-9" },
  },
): Promise<Stored<PersistentVolumeClaim>> {
  cloud.disks.set("vol-9", { name: "pv-1", bytes: gib, zone: "us-east-1a" });
  const accessModes = ["ReadWriteOnce"];
  const storageClass = aStorageClass({ allowVolumeExpansion: true });
  await kube.create(resources.storageClasses, storageClass, { signal });
  const claim = await kube.create(
    resources.persistentVolumeClaims,
    {
      metadata: { ...claimRef },
      spec: {
        accessModes,
        resources: { requests: { storage: "1Gi" } },
        storageClassName: "gp2",
        volumeName: "pv-1",
      },
    },
    { signal },
  );
  await kube.create(
    resources.persistentVolumes,
    {
      metadata: { name: "pv-1" },
      spec: {
        accessModes,
        capacity: { storage: "1Gi" },
        storageClassName: "gp2",
        claimRef: { ...claimRef, kind: "PersistentVolumeClaim", apiVersion: "v1", uid: claim.metadata.uid },
        ...source,
      },
    },
    { signal },
  );
  return patchStatus(kube, { phase: "Bound", accessModes, capacity: { storage: "1Gi" } }, signal);
}

/** Changes the claim's status, as the persistent-volume controller and kubelets do. */
export function patchStatus(
  kube: World["kube"],
  status: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<Stored<PersistentVolumeClaim>> {
  return kube.patch(
    resources.persistentVolumeClaims,
    claimRef,
    { type: "merge", body: { status } },
    { signal, subresource: "status" },
  );
}

/** Changes what the user asks for. */
export function ask(
  { kube, signal }: World,
  spec: { readonly storage?: string; readonly className?: string | null },
  annotations: Readonly<Record<string, string>> = {},
): Promise<Stored<PersistentVolumeClaim>> {
  const { storage, className } = spec;
  const body = {
    metadata: { annotations },
    spec: {
      ...(storage === undefined ? {} : { resources: { requests: { storage } } }),
      ...(className === undefined ? {} : { volumeAttributesClassName: className }),
    },
  };
  return kube.patch(resources.persistentVolumeClaims, claimRef, { type: "merge", body }, { signal });
}

/** The claim of the test. */
export async function theClaim({ kube, signal }: World): Promise<Stored<PersistentVolumeClaim>> {
  const claim = await kube.get(resources.persistentVolumeClaims, claimRef, { signal });
  if (claim === undefined) throw new Error("the claim is gone");
  return claim;
}

/** Its volume. */
export async function theVolume({ kube, signal }: World): Promise<Stored<PersistentVolume>> {
  const volume = await kube.get(resources.persistentVolumes, { name: "pv-1" }, { signal });
  if (volume === undefined) throw new Error("the volume is gone");
  return volume;
}

/** What the kubelet does when it has made the file system larger (docs/behaviour/node-agent.md 7.6). */
export async function nodeExpanded(world: World): Promise<void> {
  const { kube, signal } = world;
  const { status } = await theClaim(world);
  const { capacity } = (await theVolume(world)).spec ?? {};
  const conditions = (status?.conditions ?? []).filter(
    ({ type }) => !["Resizing", "FileSystemResizePending"].includes(type),
  );
  await patchStatus(kube, { capacity, conditions, allocatedResourceStatuses: null }, signal);
}

/** Reasons of the events there are, in the order in which they were last written. */
export async function eventReasons({ kube, signal }: World): Promise<string[]> {
  const { items } = await kube.list(resources.events, { signal });
  return [...items]
    .sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
    .map(({ reason = "" }) => reason);
}
