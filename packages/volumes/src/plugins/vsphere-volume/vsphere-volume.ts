/** The in-tree volume plugin `kubernetes.io/vsphere-volume`: disk files of a datastore, `[datastore] kubevols/x.vmdk`. */

import { defaultFsType } from "../device-mounts.ts";
import {
  checkClaim,
  classFsType,
  classParameters,
  generatedVolumeName,
  oneOf,
} from "../disk/class-parameters.ts";
import { type DiskDescription, type DiskNames, unreadableName } from "../disk/disk-description.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";

const pluginName = "kubernetes.io/vsphere-volume";
const label = "vSphere";
const accessModes = ["ReadWriteOnce"];
const diskFormats = ["thin", "zeroedthick", "eagerzeroedthick"] as const;

/** Four adapters with 15 disks each, without the boot disk. Upstream has no limit for this plugin. */
const limit = 59;

/** A policy of the virtual SAN in the class's own words, in place of one by name. */
const sanSettings = [
  "cachereservation",
  "diskstripes",
  "forceprovisioning",
  "hostfailurestotolerate",
  "iopslimit",
  "objectspacereservation",
] as const;

const form = { field: "volumePath", expected: "[<datastore>] <folder>/<name>.vmdk" };

const names: DiskNames = {
  ...form,
  diskIdOf(volumePath) {
    const climbs = volumePath.split("/").includes("..");
    if (climbs || !/^\[[^[\]/]+\] ?[^[\]]+\.vmdk$/.test(volumePath)) throw unreadableName(form, volumePath);
    return volumePath;
  },
  volumeNameOf: ({ id }) => id,
  directoryOf: (volumePath) => volumePath,
  volumeNameIn: (directory) => directory,
};

/** Virtual disks of VMware vSphere. They cannot grow in-tree. */
export const vsphereVolume: DiskDescription<"vsphereVolume"> = {
  pluginName,
  provider: "vsphere-volume",
  sourceField: "vsphereVolume",
  label,
  withoutCloud: "cloud provider not initialized properly",
  readSource: ({ volumePath, fsType = "" }) => ({ volumeName: volumePath, fsType }),
  sourceNamed: (volumePath) => ({ vsphereVolume: { volumePath } }),
  names,
  attached: { by: "controller" },
  provisioning: {
    createdBy: "vsphere-volume-dynamic-provisioner",
    sizeUnit: "MiB",
    plan(options) {
      checkClaim(options, label, accessModes);
      const known = ["diskformat", "datastore", "storagepolicyname", "fstype", ...sanSettings] as const;
      const parameters = classParameters(pluginName, options.parameters, known);
      const { diskformat, datastore, storagepolicyname, fstype = defaultFsType, ...san } = parameters;
      const fsType = classFsType(options, fstype);
      if (storagepolicyname !== undefined && Object.keys(san).length > 0) {
        throw new InTreeVolumeError(
          `storagePolicyName and ${Object.keys(san).join(", ")} of the StorageClass: a policy is given by its name or by its capabilities: drop one`,
        );
      }
      return {
        name: generatedVolumeName(options),
        type: oneOf("diskformat", diskformat ?? diskFormats[0], diskFormats),
        ...(storagepolicyname !== undefined && {
          storagePolicy: { parameter: "storagePolicyName", name: storagepolicyname },
        }),
        tags: { ...san, ...(datastore !== undefined && { datastore }) },
        zoneCount: 0,
        sourceOf: ({ id }) => ({
          vsphereVolume: {
            volumePath: id,
            ...(fsType !== undefined && { fsType }),
            ...(storagepolicyname !== undefined && { storagePolicyName: storagepolicyname }),
          },
        }),
      };
    },
  },
  limits: { key: "attachable-volumes-vsphere-volume", ofInstanceType: () => limit },
};
