/**
 * What an in-tree plugin of disks is described by. `disk-plugin.ts` makes the plugin of it, so a provider says only
 * what is its own: names, devices, parameters of its classes.
 */
import type { PersistentVolumeSpec, Pod } from "@longshore/kube";
import type { InTreeSourceName } from "@longshore/translation";
import type { CloudCredentials, CloudProvider, Disk, DiskAttachment } from "../../framework/ports.ts";
import type { VolumeHost } from "../../framework/volume-host.ts";
import type { VolumeOptions } from "../../framework/volume-plugin.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";
import type { SizeUnit } from "./class-parameters.ts";
import { type InTreeSource, inTreeSourceOf } from "./volume-source.ts";

/** What the plugin reads in a volume's source. */
export interface DiskSource {
  /** The plugin's own name of the volume (`getVolumeName`). */
  readonly volumeName: string;
  /** Empty: the default. */
  readonly fsType: string;
  /** 0: the whole disk. */
  readonly partition: number;
  readonly readOnly: boolean;
  /** How the machine is to cache the disk; left out: as the provider does it. */
  readonly caching?: string;
}

/** How the plugin names volumes, disks and the directories of both. */
export interface DiskNames {
  /** The field of the source that holds the name, for errors. */
  readonly field: string;
  /** What a name looks like, for errors. */
  readonly expected: string;
  /** The provider's disk id. @throws InTreeVolumeError for a name that names no disk */
  diskIdOf(volumeName: string): string;
  /** The name that the provisioner gives a volume of this disk. */
  volumeNameOf(disk: Disk): string;
  /** The directory of the global mount, relative to that of all of them. */
  directoryOf(volumeName: string): string;
  /** The reverse of {@link directoryOf}. Left out where it cannot be reversed: a file then records the name. */
  volumeNameIn?(directory: string): string | undefined;
  /** The directory of the node's mappings of a block volume, and its reverse; default those of the global mount. */
  readonly mapped?: {
    directoryOf(volumeName: string): string;
    volumeNameIn(directory: string): string | undefined;
  };
}

/** The attach/detach controller attaches, by a call to the provider. */
export interface AttachedByController {
  readonly by: "controller";
  /** A volume that is only read is attached so, and then to any number of nodes. */
  readonly readOnly?: boolean;
  /** What the node's status says of the device; default its path. */
  reportedDevice?(attachment: DiskAttachment): string;
  /** The path of a reported device on the node; default what was reported. */
  deviceOf?(reported: string, deviceDir: string): string;
  /** The path of a partition; default the device's with the number, a `p` in between after a digit. */
  partitionOf?(device: string, partition: number): string;
}

/** The node attaches before it mounts, and detaches after it has unmounted; the controller does nothing. */
export interface AttachedByNode {
  readonly by: "node";
  /** What proves to the provider that the node may have the volume. @throws InTreeVolumeError */
  credentialsOf(
    spec: VolumeSpec,
    pod: Pod | undefined,
    host: VolumeHost,
    signal: AbortSignal,
  ): Promise<CloudCredentials | undefined>;
}

/** A disk that is to be made, and the PersistentVolume of it. */
export interface DiskPlan {
  /** Makes creation idempotent. */
  readonly name: string;
  readonly type: string;
  /** The storage policy of the disk, and the parameter of the class that names it. */
  readonly storagePolicy?: { readonly parameter: string; readonly name: string };
  readonly tags: Readonly<Record<string, string>>;
  /** In how many zones it is; 0 for a provider without zones. */
  readonly zoneCount: 0 | 1 | 2;
  /** `zone` or `zones` of the storage class; left out where it names none. */
  readonly zones?: readonly string[] | undefined;
  /** The zone, whatever node and topologies say (Cinder's `availability`). */
  readonly fixedZone?: string | undefined;
  /** Where the claim asks for none; default ReadWriteOnce. */
  readonly accessModes?: readonly string[];
  /** Of the PersistentVolume, beside `kubernetes.io/createdby`. */
  annotationsOf?(disk: Disk): Readonly<Record<string, string>>;
  /** The source of the PersistentVolume, once the disk is there. */
  sourceOf(
    disk: Disk,
    signal: AbortSignal,
  ): Partial<PersistentVolumeSpec> | Promise<Partial<PersistentVolumeSpec>>;
}

/** How volumes are made. */
export interface DiskProvisioning {
  /** Value of the annotation `kubernetes.io/createdby`. */
  readonly createdBy: string;
  /** Sizes are whole multiples of it; default GiB. */
  readonly sizeUnit?: SizeUnit;
  /** The region of a zone; default what the provider's instances say. */
  regionOfZone?(zone: string): string;
  /** Reads class and claim. @throws InTreeVolumeError for what the plugin cannot do */
  plan(options: VolumeOptions, host: VolumeHost, signal: AbortSignal): DiskPlan | Promise<DiskPlan>;
}

/** How many disks a node can have. */
export interface DiskLimits {
  /** The resource name, e.g. `attachable-volumes-gce-pd`. */
  readonly key: string;
  ofInstanceType(instanceType: string): number;
}

/** A plugin of disks. */
export interface DiskDescription<F extends InTreeSourceName = InTreeSourceName> {
  /** e.g. `kubernetes.io/aws-ebs` */
  readonly pluginName: string;
  readonly provider: CloudProvider;
  readonly sourceField: F;
  /** What the plugin is called in messages. */
  readonly label: string;
  /** Why nothing can be done where there is no cloud provider. */
  readonly withoutCloud: string;
  readSource(source: InTreeSource<F>): Partial<DiskSource> & Pick<DiskSource, "volumeName">;
  /** A source that is good for unmounting alone. */
  sourceNamed(volumeName: string): Partial<PersistentVolumeSpec>;
  readonly names: DiskNames;
  readonly attached: AttachedByController | AttachedByNode;
  readonly provisioning: DiskProvisioning;
  /** Left out where disks cannot grow. `offline`: only while they are attached nowhere. */
  readonly expansion?: "online" | "offline";
  readonly limits?: DiskLimits;
}

/** Reads the source of a spec. @throws InTreeVolumeError when it is not a source of the plugin */
export function diskSourceOf(description: DiskDescription, spec: VolumeSpec): DiskSource {
  const { source, readOnly } = inTreeSourceOf(spec, description.sourceField);
  return { fsType: "", partition: 0, readOnly, ...description.readSource(source) };
}

/** A spec that is good for unmounting alone. */
export function specNamed(description: DiskDescription, name: string, volumeName: string): VolumeSpec {
  return {
    persistentVolume: { metadata: { name }, spec: description.sourceNamed(volumeName) },
    readOnly: false,
    inlineVolumeSpecForCsiMigration: false,
  };
}

/** The same of a volume that pods get as a device. */
export function blockSpecNamed(description: DiskDescription, name: string, volumeName: string): VolumeSpec {
  const { persistentVolume, ...spec } = specNamed(description, name, volumeName);
  return {
    ...spec,
    persistentVolume: { ...persistentVolume, spec: { ...persistentVolume?.spec, volumeMode: "Block" } },
  };
}

/** The error for a name that names no disk of the plugin. */
export function unreadableName(
  { field, expected }: Pick<DiskNames, "field" | "expected">,
  volumeName: string,
): InTreeVolumeError {
  return new InTreeVolumeError(`${field} "${volumeName}": expected ${expected}`);
}
