/** What volumes of `kubernetes.io/portworx-volume` are called, and how they are made. They have no zones. */
import { checkClaim, classParameters, oneOf, refuseBlock } from "../disk/class-parameters.ts";
import { type DiskDescription, type DiskNames, unreadableName } from "../disk/disk-description.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";

const pluginName = "kubernetes.io/portworx-volume";
const label = "Portworx";
const accessModes = ["ReadWriteOnce", "ReadWriteMany"];
const maximumCopies = 3;

/** The label in which the provider keeps the file system that a class asks for. */
export const formatTag = "fs";

const form = { field: "volumeID", expected: "the number of a volume" };

const names: DiskNames = {
  ...form,
  diskIdOf(volumeID) {
    if (!/^\d+$/.test(volumeID)) throw unreadableName(form, volumeID);
    return volumeID;
  },
  volumeNameOf: ({ id }) => id,
  directoryOf: (volumeID) => volumeID,
  volumeNameIn: (directory) => directory,
};

/** Portworx. `portworx-plugin.ts` mounts them. */
export const portworxVolume: DiskDescription<"portworxVolume"> = {
  pluginName,
  provider: "portworx-volume",
  sourceField: "portworxVolume",
  label,
  withoutCloud: 'services "portworx-service" not found',
  readSource: ({ volumeID, fsType = "" }) => ({ volumeName: volumeID, fsType }),
  sourceNamed: (volumeID) => ({ portworxVolume: { volumeID } }),
  names,
  attached: { by: "node", credentialsOf: async () => undefined },
  provisioning: {
    createdBy: "portworx-volume-dynamic-provisioner",
    plan(options) {
      checkClaim(options, label, accessModes);
      refuseBlock(options, pluginName);
      // The provider keeps what it does not know as a label, so no parameter is refused.
      const asked = options.parameters;
      const known = Object.keys(asked).map((name) => name.toLowerCase().replace("csi.storage.k8s.io/", ""));
      const parameters: Readonly<Partial<Record<string, string>>> = classParameters(pluginName, asked, known);
      const { fs, fstype = fs, ...others } = parameters;
      checkCopies(others.repl);
      // What the volume is formatted with is the provider's to know: the PersistentVolume does not say it, as upstream.
      const format = fstype === undefined ? {} : { [formatTag]: oneOf("fs", fstype, ["ext4", "xfs"]) };
      return {
        name: options.pvName,
        type: "",
        tags: { ...(others as Record<string, string>), ...format },
        zoneCount: 0,
        accessModes,
        sourceOf: ({ id }) => ({ portworxVolume: { volumeID: id } }),
      };
    },
  },
  expansion: "online",
};

function checkCopies(repl: string | undefined): void {
  if (repl === undefined) return;
  const copies = Number(repl);
  if (Number.isInteger(copies) && copies >= 1 && copies <= maximumCopies) return;
  throw new InTreeVolumeError(
    `repl "${repl}" of the StorageClass: a volume has 1 to ${maximumCopies} copies: correct it`,
  );
}
