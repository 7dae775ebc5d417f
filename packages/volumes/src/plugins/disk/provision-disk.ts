/** Making disks from the persistent-volume controller, in-tree: the disk cloud is called directly. */
import type { PersistentVolume } from "@longshore/kube";
import { DeletedVolumeInUseError } from "../../framework/controller-errors.ts";
import { CloudError, type Disk, type DiskCloud, type Instance } from "../../framework/ports.ts";
import type { VolumeHost } from "../../framework/volume-host.ts";
import type { AllowedTopologies, VolumeOptions } from "../../framework/volume-plugin.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import { chooseZones, regionLabels, zoneLabels } from "./choose-zone.ts";
import { gibToBytes, requestedGiB, wholeGiB } from "./class-parameters.ts";
import { type DiskDescription, type DiskPlan, diskSourceOf } from "./disk-description.ts";
import { InTreeVolumeError } from "./volume-source.ts";

/** The node that the scheduler has chosen. */
export interface SelectedNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * Makes the disk by a name that follows from the PV's (so that asking again finds it) and returns the PV, not stored
 * yet, with zones and region as labels and node affinity.
 */
export async function provisionDisk(
  disks: DiskDescription,
  cloud: DiskCloud,
  host: VolumeHost,
  options: VolumeOptions,
  selectedNode: SelectedNode | undefined,
  allowedTopologies: AllowedTopologies,
  signal: AbortSignal,
): Promise<PersistentVolume> {
  const plan = await disks.provisioning.plan(options, host, signal);
  const sizeGiB = requestedGiB(options);
  const instances = plan.zoneCount === 0 ? [] : await cloud.listInstances(signal);
  const [zone = "", ...replicaZones] = zonesFor(plan, options, selectedNode, allowedTopologies, instances);
  const disk = await cloud.createDisk(
    {
      name: plan.name,
      zone,
      ...(replicaZones.length > 0 && { replicaZones }),
      sizeBytes: gibToBytes(sizeGiB),
      type: plan.type,
      tags: { ...options.cloudTags, ...plan.tags },
    },
    signal,
  );
  const regionOf = disks.provisioning.regionOfZone ?? ((name: string) => regionAmong(instances, name));
  const placement = plan.zoneCount === 0 ? undefined : placementOf(disk, regionOf);
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: {
      name: options.pvName,
      ...(placement !== undefined && { labels: placement.labels }),
      annotations: { "kubernetes.io/createdby": disks.provisioning.createdBy, ...plan.annotations },
    },
    spec: {
      accessModes: accessModesOf(plan, options),
      ...plan.sourceOf(disk),
      capacity: { storage: `${sizeGiB}Gi` },
      ...(options.mountOptions.length > 0 ? { mountOptions: [...options.mountOptions] } : {}),
      ...(placement !== undefined && { nodeAffinity: placement.nodeAffinity }),
      persistentVolumeReclaimPolicy: options.reclaimPolicy,
      volumeMode: options.pvc.spec?.volumeMode ?? "Filesystem",
    },
  };
}

function zonesFor(
  plan: DiskPlan,
  options: VolumeOptions,
  selectedNode: SelectedNode | undefined,
  allowedTopologies: AllowedTopologies,
  instances: readonly Instance[],
): readonly string[] {
  if (plan.zoneCount === 0) return [];
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

function regionAmong(instances: readonly Instance[], zone: string): string {
  return instances.find((instance) => instance.zone === zone)?.region ?? zone;
}

/** Labels and node affinity of the zones; several are joined with `__` in the label. */
function placementOf(disk: Disk, regionOf: (zone: string) => string) {
  const zones = [disk.zone, ...(disk.replicaZones ?? [])].sort();
  const region = regionOf(disk.zone);
  return {
    labels: { [regionLabels[0]]: region, [zoneLabels[0]]: zones.join("__") },
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [
          {
            matchExpressions: [
              { key: zoneLabels[0], operator: "In", values: zones },
              { key: regionLabels[0], operator: "In", values: [region] },
            ],
          },
        ],
      },
    },
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
  try {
    await cloud.deleteDisk(disks.names.diskIdOf(volumeName), signal);
  } catch (error) {
    if (!(error instanceof CloudError) || error.code !== "InUse") throw error;
    throw new DeletedVolumeInUseError(`volume ${volumeName} is still attached`, { cause: error });
  }
}

/** Grows the disk to whole GiB; returns its size then, in bytes. @throws InTreeVolumeError while it must not be attached */
export async function growDisk(
  disks: DiskDescription,
  cloud: DiskCloud,
  spec: VolumeSpec,
  sizeBytes: bigint,
  signal: AbortSignal,
): Promise<bigint> {
  const { volumeName } = diskSourceOf(disks, spec);
  const diskId = disks.names.diskIdOf(volumeName);
  const wanted = gibToBytes(wholeGiB(sizeBytes));
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
