/**
 * Which disk a volume is, whether in-tree code or a CSI driver serves it, for comparison alone. Pure.
 * Source: docs/contract.md C1.
 */
import type { PersistentVolume } from "@longshore/kube";
import { restoreInTreePV } from "@longshore/translation";
import { splitUniqueName, type UniqueVolumeName } from "../framework/unique-volume-name.ts";
import type { VolumeSpec } from "../framework/volume-spec.ts";
import { csiPluginName, parseCsiVolumeName } from "../plugins/csi/csi-names.ts";
import { type DiskSource, inTreeNameKeysOf, keyOfInTreeName } from "./in-tree-name-key.ts";

/** The keys of the disk of a volume; none where no in-tree plugin that attaches disks can have it. */
export function diskKeysOf({
  uniqueName,
  spec,
}: {
  readonly uniqueName: UniqueVolumeName;
  readonly spec: VolumeSpec;
}): readonly string[] {
  const { persistentVolume, volume } = spec;
  const source = isOfCsi(uniqueName)
    ? inTreeSourceOf(uniqueName, persistentVolume)
    : (persistentVolume?.spec ?? volume);
  const keys = inTreeNameKeysOf({ spec: source });
  if (keys.length > 0) return keys;
  // What no controller attaches has the pod in its unique name, and not the disk.
  const portworx = source?.portworxVolume?.volumeID;
  const own =
    portworx === undefined ? keyOfInTreeName(uniqueName) : `kubernetes.io/portworx-volume/${portworx}`;
  return own === undefined ? [] : [own];
}

/** The keys of the in-tree names of a disk, by its CSI name; none where the driver takes over from no in-tree plugin. */
export function inTreeKeysOfCsi(uniqueName: UniqueVolumeName): readonly string[] {
  return isOfCsi(uniqueName) ? inTreeNameKeysOf({ spec: inTreeSourceOf(uniqueName) }) : [];
}

const isOfCsi = (uniqueName: UniqueVolumeName) => uniqueName.startsWith(`${csiPluginName}/`);

/** As what in-tree code had the disk. @param volume has its attributes, by which alone the disk of some drivers is known */
function inTreeSourceOf(
  uniqueName: UniqueVolumeName,
  volume?: Pick<PersistentVolume, "spec">,
): DiskSource | undefined {
  try {
    const { driver, volumeHandle } = parseCsiVolumeName(splitUniqueName(uniqueName).volumeName);
    const csi = { ...volume?.spec?.csi, driver, volumeHandle };
    return (restoreInTreePV({ metadata: { name: "" }, spec: { csi } }).output as PersistentVolume).spec;
  } catch {
    // The driver takes over from no in-tree plugin, or what it needs is not known.
    return undefined;
  }
}
