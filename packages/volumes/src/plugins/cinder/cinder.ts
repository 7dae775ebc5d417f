/** The in-tree volume plugin `kubernetes.io/cinder`: volumes of OpenStack, by UUID. */

import { defaultFsType } from "../device-mounts.ts";
import { checkClaim, classFsType, classParameters, generatedVolumeName } from "../disk/class-parameters.ts";
import { type DiskDescription, type DiskNames, unreadableName } from "../disk/disk-description.ts";

const pluginName = "kubernetes.io/cinder";
const label = "Cinder";
const accessModes = ["ReadWriteOnce"];

/** High on purpose: what a machine can have depends on its virtual bus. Source: upstream volume/util/attach_limit.go. */
const limit = 256;

const form = { field: "volumeID", expected: "the UUID of a volume" };

const names: DiskNames = {
  ...form,
  diskIdOf(volumeID) {
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(volumeID)) throw unreadableName(form, volumeID);
    return volumeID;
  },
  volumeNameOf: ({ id }) => id,
  directoryOf: (volumeID) => volumeID,
  volumeNameIn: (directory) => (directory.includes("/") ? undefined : directory),
};

/** OpenStack Cinder. */
export const cinder: DiskDescription<"cinder"> = {
  pluginName,
  provider: "cinder",
  sourceField: "cinder",
  label,
  withoutCloud: "OpenStack cloud provider was not initialized properly",
  readSource: ({ volumeID, fsType = "" }) => ({ volumeName: volumeID, fsType }),
  sourceNamed: (volumeID) => ({ cinder: { volumeID } }),
  names,
  attached: { by: "controller" },
  provisioning: {
    createdBy: "cinder-dynamic-provisioner",
    plan(options) {
      checkClaim(options, label, accessModes);
      const known = ["type", "availability", "fstype"] as const;
      const parameters = classParameters(pluginName, options.parameters, known);
      const { type = "", availability, fstype = defaultFsType } = parameters;
      const fsType = classFsType(options, fstype);
      return {
        name: generatedVolumeName(options),
        type,
        tags: {},
        zoneCount: 1,
        fixedZone: availability === "" ? undefined : availability,
        sourceOf: ({ id }) => ({ cinder: { volumeID: id, ...(fsType !== undefined && { fsType }) } }),
      };
    },
  },
  expansion: "offline",
  limits: { key: "attachable-volumes-cinder", ofInstanceType: () => limit },
};
