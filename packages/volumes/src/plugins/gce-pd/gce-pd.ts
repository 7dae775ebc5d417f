/** The in-tree volume plugin `kubernetes.io/gce-pd`: persistent disks of one zone, or of two in a region. */
import {
  checkClaim,
  classFsType,
  classParameters,
  generatedVolumeName,
  oneOf,
  parameterZones,
} from "../disk/class-parameters.ts";
import { type DiskDescription, type DiskNames, unreadableName } from "../disk/disk-description.ts";

const pluginName = "kubernetes.io/gce-pd";
const label = "GCE PD";
const accessModes = ["ReadWriteOnce", "ReadOnlyMany"];
const defaultType = "pd-standard";

/** Longest name of a disk. */
const maximumNameLength = 63;

/** What an instance can have beside its boot disk. Source: upstream volume/gcepd, getVolumeLimits. */
const limit = 127;
const smallLimit = 15;
const smallTypes = ["f1-micro", "g1-small", "e2-micro", "e2-small", "e2-medium"];

const form = { field: "pdName", expected: "the name of a disk: lower-case letters, digits and -" };

const names: DiskNames = {
  ...form,
  diskIdOf(pdName) {
    if (!/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/.test(pdName)) throw unreadableName(form, pdName);
    return pdName;
  },
  volumeNameOf: ({ id }) => id,
  directoryOf: (pdName) => pdName,
  volumeNameIn: (directory) => (directory.includes("/") ? undefined : directory),
};

/** Google Compute Engine persistent disk. */
export const gcePd: DiskDescription<"gcePersistentDisk"> = {
  pluginName,
  provider: "gce-pd",
  sourceField: "gcePersistentDisk",
  label,
  withoutCloud: "failed to get GCE GCECloudProvider with error <nil>",
  readSource: ({ pdName, fsType = "", partition = 0 }) => ({ volumeName: pdName, fsType, partition }),
  sourceNamed: (pdName) => ({ gcePersistentDisk: { pdName } }),
  names,
  attached: {
    by: "controller",
    readOnly: true,
    // A link by the disk's name, made by udev: disk/by-id/google-<name>-part<n>.
    partitionOf: (device, partition) => `${device}-part${partition}`,
  },
  provisioning: {
    createdBy: "gce-pd-dynamic-provisioner",
    plan(options) {
      checkClaim(options, label, accessModes);
      const known = ["type", "zone", "zones", "fstype", "replication-type"] as const;
      const {
        type = defaultType,
        fstype,
        ...others
      } = classParameters(pluginName, options.parameters, known);
      const replication = others["replication-type"] ?? "none";
      const fsType = classFsType(options, fstype);
      return {
        name: generatedVolumeName(options, maximumNameLength),
        type,
        tags: {},
        zoneCount: oneOf("replication-type", replication, ["none", "regional-pd"]) === "none" ? 1 : 2,
        zones: parameterZones(others),
        accessModes,
        sourceOf: ({ id }) => ({
          gcePersistentDisk: { pdName: id, ...(fsType !== undefined && { fsType }) },
        }),
      };
    },
  },
  expansion: "online",
  limits: {
    key: "attachable-volumes-gce-pd",
    ofInstanceType: (type) => (smallTypes.includes(type) ? smallLimit : limit),
  },
};
