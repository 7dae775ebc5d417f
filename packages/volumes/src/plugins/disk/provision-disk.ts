/** Making disks from the persistent-volume controller, in-tree: the disk cloud is called directly. */
import type { PersistentVolume } from "@longshore/kube";
import { DeletedVolumeInUseError } from "../../framework/controller-errors.ts";
import { CloudError, type Disk, type DiskCloud, type Instance } from "../../framework/ports.ts";
import type { VolumeHost } from "../../framework/volume-host.ts";
import type {
  AllowedTopologies,
  Provisioner,
  SelectedNode,
  VolumeOptions,
} from "../../framework/volume-plugin.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";
import { chooseZones, regionLabels, zoneLabels } from "./choose-zone.ts";
import { requestedSize, roundedSize } from "./class-parameters.ts";
import {
  type DiskDescription,
  type DiskPlan,
  type DiskProvisioning,
  diskSourceOf,
} from "./disk-description.ts";

/** The provisioner of one volume. `cloud` throws where there is no provider. */
export function diskProvisioner(
  provisioning: DiskProvisioning,
  cloud: () => DiskCloud,
  host: () => VolumeHost,
  options: VolumeOptions,
): Provisioner {
  return {
    async check(selectedNode, allowedTopologies, signal) {
      const where = { selectedNode, allowedTopologies };
      await placedPlan(provisioning, cloud(), host(), options, where, signal);
    },
    provision: async (selectedNode, allowedTopologies, signal) => {
      const where = { selectedNode, allowedTopologies };
      return provisionDisk(provisioning, cloud(), host(), options, where, signal);
    },
  };
}

/** What narrows the zones down. */
interface Where {
  readonly selectedNode: SelectedNode | undefined;
  readonly allowedTopologies: AllowedTopologies;
}

/** What is to be made, and in which zones. It is all that can be refused before the disk is made. */
async function placedPlan(
  provisioning: DiskProvisioning,
  cloud: DiskCloud,
  host: VolumeHost,
  options: VolumeOptions,
  where: Where,
  signal: AbortSignal,
) {
  const plan = await provisioning.plan(options, host, signal);
  await checkStoragePolicy(plan, cloud, options, signal);
  const size = requestedSize(options, provisioning.sizeUnit);
  const instances = plan.zoneCount === 0 ? [] : await cloud.listInstances(signal);
  return { plan, size, instances, zones: zonesFor(plan, options, where, instances) };
}

/**
 * Makes the disk by a name that follows from the PV's (so that asking again finds it) and returns the PV, not stored
 * yet, with zones and region as labels and node affinity.
 */
async function provisionDisk(
  provisioning: DiskProvisioning,
  cloud: DiskCloud,
  host: VolumeHost,
  options: VolumeOptions,
  where: Where,
  signal: AbortSignal,
): Promise<PersistentVolume> {
  const placed = await placedPlan(provisioning, cloud, host, options, where, signal);
  const { plan, size, instances } = placed;
  const [zone = "", ...replicaZones] = placed.zones;
  const disk = await cloud.createDisk(
    {
      name: plan.name,
      zone,
      ...(replicaZones.length > 0 && { replicaZones }),
      sizeBytes: size.bytes,
      type: plan.type,
      ...(plan.storagePolicy !== undefined && { storagePolicy: plan.storagePolicy.name }),
      tags: { ...options.cloudTags, ...plan.tags },
    },
    signal,
  );
  const regionOf = provisioning.regionOfZone ?? ((name: string) => regionAmong(instances, name));
  const placement = disk.zone === "" ? undefined : placementOf(disk, regionOf(disk.zone));
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: {
      name: options.pvName,
      ...(placement !== undefined && { labels: placement.labels }),
      annotations: { "kubernetes.io/createdby": provisioning.createdBy, ...plan.annotationsOf?.(disk) },
    },
    spec: {
      accessModes: accessModesOf(plan, options),
      ...(await plan.sourceOf(disk, signal)),
      capacity: { storage: size.quantity },
      ...(options.mountOptions.length > 0 ? { mountOptions: [...options.mountOptions] } : {}),
      ...(placement !== undefined && { nodeAffinity: placement.nodeAffinity }),
      persistentVolumeReclaimPolicy: options.reclaimPolicy,
      volumeMode: options.pvc.spec?.volumeMode ?? "Filesystem",
    },
  };
}

/** @throws InTreeVolumeError for a policy that the provider does not have */
async function checkStoragePolicy(
  { storagePolicy }: DiskPlan,
  cloud: DiskCloud,
  { pvc }: VolumeOptions,
  signal: AbortSignal,
): Promise<void> {
  if (storagePolicy === undefined) return;
  const known = await cloud.listStoragePolicies(signal);
  if (known.includes(storagePolicy.name)) return;
  throw new InTreeVolumeError(
    `${storagePolicy.parameter} "${storagePolicy.name}" of StorageClass ${pvc.spec?.storageClassName ?? ""}: ` +
      `the provider has no such storage policy: use one of ${known.join(", ")}, or make it there`,
  );
}

function zonesFor(
  plan: DiskPlan,
  options: VolumeOptions,
  { selectedNode, allowedTopologies }: Where,
  instances: readonly Instance[],
): readonly string[] {
  if (plan.zoneCount === 0) return [];
  if (plan.fixedZone !== undefined) return [plan.fixedZone];
  const request = {
    parameterZones: plan.zones,
    allowedTopologies,
    selectedNodeLabels: selectedNode?.labels,
    zonesWithNodes: instances.map((instance) => instance.zone),
    claimName: options.pvc.metadata?.name ?? "",
  };
  return chooseZones(request, plan.zoneCount);
}

function accessModesOf(plan: DiskPlan, options: VolumeOptions): string[] {
  const requested = options.pvc.spec?.accessModes ?? [];
  return [...(requested.length > 0 ? requested : (plan.accessModes ?? ["ReadWriteOnce"]))];
}

function regionAmong(instances: readonly Instance[], zone: string): string | undefined {
  return instances.find((instance) => instance.zone === zone)?.region;
}

/** Labels and node affinity of the zones; several are joined with `__` in the label. */
function placementOf(disk: Disk, region: string | undefined) {
  const zones = [disk.zone, ...(disk.replicaZones ?? [])].sort();
  const inRegion = region === undefined ? [] : [{ key: regionLabels[0], operator: "In", values: [region] }];
  const matchExpressions = [{ key: zoneLabels[0], operator: "In", values: zones }, ...inRegion];
  return {
    labels: {
      ...(region !== undefined && { [regionLabels[0]]: region }),
      [zoneLabels[0]]: zones.join("__"),
    },
    nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
  };
}

/** Deletes the disk; one that is gone is fine. @throws DeletedVolumeInUseError while it is attached */
export async function deleteDisk(
  disks: DiskDescription,
  cloud: DiskCloud,
  spec: VolumeSpec,
  signal: AbortSignal,
): Promise<void> {
  const { volumeName } = diskSourceOf(disks, spec);
  await deleteNamed(cloud, disks.names.diskIdOf(volumeName), volumeName, signal);
}

/** As {@link deleteDisk}, by the provider's id. */
export async function deleteNamed(
  cloud: DiskCloud,
  diskId: string,
  volumeName: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    await cloud.deleteDisk(diskId, signal);
  } catch (error) {
    if (!(error instanceof CloudError) || error.code !== "InUse") throw error;
    throw new DeletedVolumeInUseError(`volume ${volumeName} is still attached`, { cause: error });
  }
}

/** Grows the disk to whole units; returns its size then, in bytes. @throws InTreeVolumeError while it must not be attached */
export async function growDisk(
  disks: DiskDescription,
  cloud: DiskCloud,
  spec: VolumeSpec,
  sizeBytes: bigint,
  signal: AbortSignal,
): Promise<bigint> {
  const { volumeName } = diskSourceOf(disks, spec);
  const diskId = disks.names.diskIdOf(volumeName);
  const wanted = roundedSize(sizeBytes, disks.provisioning.sizeUnit).bytes;
  if (disks.expansion === "offline") {
    const disk = await cloud.describeDisk(diskId, signal);
    // Grown before, as far as the provider goes: the controller may have died before it said so.
    if (disk !== undefined && disk.sizeBytes >= wanted) return disk.sizeBytes;
    if (disk !== undefined && disk.attachments.length > 0) {
      throw new InTreeVolumeError(
        `volume ${volumeName}: ${disks.label} grows disks only while they are attached to no node: end the pods that use it`,
      );
    }
  }
  return await cloud.resizeDisk(diskId, wanted, signal);
}
