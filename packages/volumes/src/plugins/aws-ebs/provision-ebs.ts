/** Making EBS volumes from the persistent-volume controller, in-tree: the disk cloud is called directly. */
import { type PersistentVolume, parseQuantity } from "@longshore/kube";
import { DeletedVolumeInUseError } from "../../framework/controller-errors.ts";
import { CloudError, type DiskCloud } from "../../framework/ports.ts";
import type { AllowedTopologies, VolumeOptions } from "../../framework/volume-plugin.ts";
import { chooseZone, regionLabels, regionOfZone, zoneLabels } from "./choose-zone.ts";
import { awsEbsPluginName, diskIdOf, EbsVolumeError, ebsVolumeID } from "./ebs-volume-id.ts";

const gibibyte = 1024n ** 3n;
const defaultType = "gp2";
const defaultFsType = "ext4";

interface EbsParameters {
  readonly type: string;
  readonly fsType: string;
  readonly zones: readonly string[] | undefined;
  /** Settings that the disk keeps as tags. */
  readonly tags: Readonly<Record<string, string>>;
}

/**
 * Makes the disk named after the PV (so that asking again finds it) and returns the PV, not stored
 * yet, with zone and region as labels and node affinity.
 */
export async function provisionEbs(
  cloud: DiskCloud,
  options: VolumeOptions,
  selectedNode: { readonly name: string; readonly labels: Readonly<Record<string, string>> } | undefined,
  allowedTopologies: AllowedTopologies,
  signal: AbortSignal,
): Promise<PersistentVolume> {
  const parameters = readParameters(options.parameters);
  const requested = parseQuantity(options.pvc.spec?.resources?.requests?.storage ?? "0").toBytes();
  // EBS sizes are whole GiB, and at least one.
  const sizeGiB = (requested + gibibyte - 1n) / gibibyte || 1n;
  const zone = chooseZone({
    parameterZones: parameters.zones,
    allowedTopologies,
    selectedNodeLabels: selectedNode?.labels,
    zonesWithNodes: (await cloud.listInstances(signal)).map((instance) => instance.zone),
    claimName: options.pvc.metadata?.name ?? "",
  });
  const disk = await cloud.createDisk(
    {
      name: options.pvName,
      zone,
      sizeBytes: sizeGiB * gibibyte,
      type: parameters.type,
      tags: { ...options.cloudTags, ...parameters.tags },
    },
    signal,
  );
  return volumeFor(options, parameters, disk.id, disk.zone, `${sizeGiB}Gi`);
}

/** Deletes the disk; one that is gone is fine. @throws DeletedVolumeInUseError while it is attached */
export async function deleteEbs(cloud: DiskCloud, volumeID: string, signal: AbortSignal): Promise<void> {
  try {
    await cloud.deleteDisk(diskIdOf(volumeID), signal);
  } catch (error) {
    if (!(error instanceof CloudError) || error.code !== "InUse") throw error;
    throw new DeletedVolumeInUseError(`volume ${volumeID} is still attached`, { cause: error });
  }
}

function volumeFor(
  options: VolumeOptions,
  parameters: EbsParameters,
  diskId: string,
  zone: string,
  capacity: string,
): PersistentVolume {
  const region = regionOfZone(zone);
  const requestedModes = options.pvc.spec?.accessModes ?? [];
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: {
      name: options.pvName,
      labels: { [regionLabels[0]]: region, [zoneLabels[0]]: zone },
      annotations: { "kubernetes.io/createdby": "aws-ebs-dynamic-provisioner" },
    },
    spec: {
      accessModes: requestedModes.length > 0 ? [...requestedModes] : ["ReadWriteOnce"],
      awsElasticBlockStore: { volumeID: ebsVolumeID(zone, diskId), fsType: parameters.fsType },
      capacity: { storage: capacity },
      ...(options.mountOptions.length > 0 ? { mountOptions: [...options.mountOptions] } : {}),
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            {
              matchExpressions: [
                { key: zoneLabels[0], operator: "In", values: [zone] },
                { key: regionLabels[0], operator: "In", values: [region] },
              ],
            },
          ],
        },
      },
      persistentVolumeReclaimPolicy: options.reclaimPolicy,
      volumeMode: options.pvc.spec?.volumeMode ?? "Filesystem",
    },
  };
}

/** Reads the storage class's parameters; their keys are matched without regard to case. */
function readParameters(parameters: Readonly<Record<string, string>>): EbsParameters {
  let type = defaultType;
  let fsType = defaultFsType;
  let zones: readonly string[] | undefined;
  const tags: Record<string, string> = {};
  for (const [name, value] of Object.entries(parameters)) {
    switch (name.toLowerCase()) {
      case "type":
        type = value;
        break;
      case "fstype":
      case "csi.storage.k8s.io/fstype":
        fsType = value;
        break;
      case "zone":
        zones = [value];
        break;
      case "zones":
        zones = value.split(",").map((zone) => zone.trim());
        break;
      case "iopspergb":
      case "encrypted":
      case "kmskeyid":
        tags[`${awsEbsPluginName}/${name.toLowerCase()}`] = value;
        break;
      default:
        throw new EbsVolumeError(
          `invalid option "${name}" for volume plugin ${awsEbsPluginName}: remove it from the StorageClass`,
        );
    }
  }
  return { type, fsType, zones, tags };
}
