/**
 * Which disk an in-tree name means, for comparison alone: all spellings of one disk have one key. A provider lists a disk in
 * its own spelling, a PersistentVolume in that of its author. No other name is made of a key: the hash of a VolumeAttachment's name is
 * that of the volume's own spelling. Pure. Source: docs/behaviour/controllers.md A6.
 */
import type { PersistentVolume, Volume } from "@longshore/kube";
import { splitUniqueName, type UniqueVolumeName } from "../framework/unique-volume-name.ts";

/** What names a disk: the spec of a PersistentVolume, or a volume of a pod. */
export type DiskSource = NonNullable<PersistentVolume["spec"]> | Volume;

/** How the names of a plugin are compared. */
interface Spelling {
  /** The plugin's name of the disk; undefined: the source is another plugin's. */
  nameOf(spec: DiskSource): string | undefined;
  /** Left out: there is one spelling. */
  keyOf?(volumeName: string): string;
}

/** Pool of an RBD volume that names none. Source: API reference, RBDPersistentVolumeSource. */
const defaultPool = "rbd";

/** The plugins whose disks the controller attaches. What the node attaches for itself (RBD) it only records. */
const spellings: Readonly<Record<string, Spelling>> = {
  "kubernetes.io/aws-ebs": {
    nameOf: (spec) => spec.awsElasticBlockStore?.volumeID,
    // aws://<zone>/vol-1 and vol-1.
    keyOf: (volumeID) => volumeID.replace(/^aws:\/\/[^/]*\//, ""),
  },
  "kubernetes.io/azure-disk": {
    nameOf: (spec) => spec.azureDisk?.diskURI,
    // The provider ignores letter case, and lists groups in another than they were made in.
    keyOf: (diskURI) => diskURI.toLowerCase(),
  },
  "kubernetes.io/cinder": { nameOf: (spec) => spec.cinder?.volumeID },
  "kubernetes.io/gce-pd": { nameOf: (spec) => spec.gcePersistentDisk?.pdName },
  "kubernetes.io/rbd": {
    nameOf: ({ rbd }) => (rbd == null ? undefined : `${rbd.pool || defaultPool}:${rbd.image}`),
  },
  "kubernetes.io/vsphere-volume": {
    nameOf: (spec) => spec.vsphereVolume?.volumePath,
    // [datastore] path and [datastore]path.
    keyOf: (volumePath) => volumePath.replace(/^(\[[^\]]*\]) +/, "$1"),
  },
};

/** The key of a unique name; undefined: it is not that of an in-tree disk that the controller attaches. */
export function keyOfInTreeName(uniqueName: UniqueVolumeName): string | undefined {
  const slash = uniqueName.indexOf("/", uniqueName.indexOf("/") + 1);
  // Most names are those of CSI volumes, or none.
  const spelling = slash < 0 ? undefined : spellings[uniqueName.slice(0, slash)];
  if (spelling === undefined) return undefined;
  const { pluginName, volumeName } = splitUniqueName(uniqueName);
  return keyOf(pluginName, spelling, volumeName);
}

/**
 * The keys of the disk of a PersistentVolume, or of a volume of a pod: one, or
 * none where it is not an in-tree disk that the controller attaches.
 */
export function inTreeNameKeysOf({ spec }: { readonly spec?: DiskSource | undefined }): readonly string[] {
  if (spec === undefined) return [];
  const keys: string[] = [];
  for (const pluginName in spellings) {
    const spelling = spellings[pluginName] as Spelling;
    const name = spelling.nameOf(spec);
    if (name != null) keys.push(keyOf(pluginName, spelling, name));
  }
  return keys;
}

function keyOf(pluginName: string, spelling: Spelling, volumeName: string): string {
  return `${pluginName}/${spelling.keyOf?.(volumeName) ?? volumeName}`;
}
