/**
 * The volume plugin interfaces. A plugin implements `VolumePlugin` and as many of the capability
 * interfaces as it has; the plugin manager finds capabilities by structural test (the type guards
 * below). Source: docs/behaviour/volume-plugins.md 2.
 *
 * Every method may fail; every method that does I/O takes a signal.
 */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "@longshore/kube";
import type { VolumeHost } from "./volume-host.ts";
import type { VolumeSpec } from "./volume-spec.ts";

/** What every plugin has. */
export interface VolumePlugin {
  /** Called exactly once, before any other method. */
  init(host: VolumeHost): Promise<void>;
  /** A qualified name with exactly one slash, e.g. `kubernetes.io/aws-ebs`. */
  readonly pluginName: string;
  /** The plugin's own name of the volume, e.g. `<driver>^<handle>`; the second half of the unique name. */
  getVolumeName(spec: VolumeSpec): string;
  canSupport(spec: VolumeSpec): boolean;
  newMounter(spec: VolumeSpec, pod: Pod): Promise<Mounter>;
  newUnmounter(volumeName: string, podUID: string): Promise<Unmounter>;
  /** Rebuilds a spec that is good for unmounting, from what lies on disk. */
  constructVolumeSpec(volumeName: string, mountPath: string): Promise<VolumeSpec>;
  supportsMountOption(): boolean;
}

/** Has volumes that are attached to a node before it mounts them. */
export interface AttachableVolumePlugin extends DeviceMountableVolumePlugin {
  newAttacher(): Attacher;
  canAttach(spec: VolumeSpec): Promise<boolean>;
}

/**
 * How the controller attaches by calls of the plugin, which in-tree plugins have. The CSI plugin has none: its volumes are
 * attached by VolumeAttachments, which the controller itself creates and deletes.
 */
export interface InTreeAttachableVolumePlugin extends AttachableVolumePlugin {
  newAttacher(): InTreeAttacher;
  newDetacher(): Detacher;
}

/** How the node mounts a device once for all pods. */
export interface DeviceMountableVolumePlugin extends VolumePlugin {
  newDeviceMounter(): DeviceMounter;
  newDeviceUnmounter(): DeviceUnmounter;
  canDeviceMount(spec: VolumeSpec): Promise<boolean>;
}

/** How the persistent-volume controller makes volumes. */
export interface ProvisionableVolumePlugin extends VolumePlugin {
  newProvisioner(options: VolumeOptions): Provisioner;
}

/** How the persistent-volume controller deletes volumes. */
export interface DeletableVolumePlugin extends VolumePlugin {
  newDeleter(spec: VolumeSpec): Deleter;
}

/** How the expand controller grows volumes. */
export interface ExpandableVolumePlugin extends VolumePlugin {
  /** Grows the device; returns its new size in bytes. */
  expandVolumeDevice(
    spec: VolumeSpec,
    newSizeBytes: bigint,
    oldSizeBytes: bigint,
    signal: AbortSignal,
  ): Promise<bigint>;
  requiresFSResize(): boolean;
}

/** What is to grow on the node, and where it is. */
export interface NodeExpandOptions {
  readonly spec: VolumeSpec;
  readonly devicePath: string;
  /** The global mount; empty where the volume has none. */
  readonly deviceMountPath: string;
  /** Where the file system is mounted: the global mount when staged, the pod's directory when published. */
  readonly path: string;
  readonly phase: "staged" | "published";
  readonly newSizeBytes: bigint;
}

/** Grows what is on a volume, once the volume itself has grown. */
export interface NodeExpandableVolumePlugin extends VolumePlugin {
  /**
   * Idempotent. @returns false: only once the volume is published
   * @throws FailedPreconditionError when it cannot grow as it is used now
   */
  nodeExpand(options: NodeExpandOptions, signal: AbortSignal): Promise<boolean>;
}

/** An attachment as the provider knows it. */
export interface ListedAttachment {
  /** The plugin's own name of the volume. */
  readonly volumeName: string;
  readonly nodeName: string;
  readonly devicePath: string;
}

/** Can say what is attached, so that an attach that was in flight when a controller died is found again. */
export interface AttachmentListingVolumePlugin extends VolumePlugin {
  listAttachments(signal: AbortSignal): Promise<readonly ListedAttachment[]>;
}

/** What a new volume is to be like. */
export interface VolumeOptions {
  readonly reclaimPolicy: "Delete" | "Retain" | "Recycle";
  readonly mountOptions: readonly string[];
  readonly pvName: string;
  readonly pvc: PersistentVolumeClaim;
  readonly clusterName: string;
  readonly cloudTags: Readonly<Record<string, string>>;
  readonly parameters: Readonly<Record<string, string>>;
}

/** Topology terms of a storage class. */
export type AllowedTopologies = readonly {
  readonly matchLabelExpressions?: readonly { readonly key: string; readonly values: readonly string[] }[];
}[];

export interface Provisioner {
  /** Makes the volume and returns a PV that is not stored yet. Idempotent by `pvName`. */
  provision(
    selectedNode: { readonly name: string; readonly labels: Readonly<Record<string, string>> } | undefined,
    allowedTopologies: AllowedTopologies,
    signal: AbortSignal,
  ): Promise<PersistentVolume>;
}

export interface Deleter {
  /** Resolves when the volume is gone; a volume already gone is fine. */
  delete(signal: AbortSignal): Promise<void>;
}

/** Ownership and size requested for a mount. */
export interface MounterArgs {
  readonly fsGroup?: number;
  readonly fsGroupChangePolicy?: "OnRootMismatch" | "Always";
}

export interface Mounter {
  /** The volume's directory in the pod. */
  getPath(): string;
  readonly readOnly: boolean;
  /** Mounts at `getPath()`. Idempotent: may be called again on a mounted volume. */
  setUp(args: MounterArgs, signal: AbortSignal): Promise<void>;
}

export interface Unmounter {
  getPath(): string;
  /** Works knowing only volume name and pod UID. Idempotent. */
  tearDown(signal: AbortSignal): Promise<void>;
}

export interface DeviceMounter {
  /** The global mount shared by all pods of a node. */
  getDeviceMountPath(spec: VolumeSpec): string;
  mountDevice(
    spec: VolumeSpec,
    devicePath: string,
    deviceMountPath: string,
    signal: AbortSignal,
  ): Promise<void>;
}

export interface Attacher extends DeviceMounter {
  /** For each spec, by plugin volume name, whether it is still attached. */
  volumesAreAttached(
    specs: readonly VolumeSpec[],
    nodeName: string,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<VolumeSpec, boolean>>;
  /** On the node: waits until the device is usable; returns its path (for CSI: the attachment's name). */
  waitForAttach(spec: VolumeSpec, devicePath: string, signal: AbortSignal): Promise<string>;
}

export interface InTreeAttacher extends Attacher {
  /** Attaches and returns the device path (empty where the plugin has none). Idempotent. */
  attach(spec: VolumeSpec, nodeName: string, signal: AbortSignal): Promise<string>;
}

export interface DeviceUnmounter {
  unmountDevice(deviceMountPath: string, signal: AbortSignal): Promise<void>;
}

export interface Detacher extends DeviceUnmounter {
  /** `volumeName` is the plugin's own name (`getVolumeName`), not the unique name. Idempotent. */
  detach(volumeName: string, nodeName: string, signal: AbortSignal): Promise<void>;
}

const has = (plugin: VolumePlugin, method: string): boolean =>
  typeof (plugin as unknown as Record<string, unknown>)[method] === "function";

/** Whether the plugin has volumes that are attached. */
export const isAttachable = (p: VolumePlugin): p is AttachableVolumePlugin => has(p, "newAttacher");
/** Whether the plugin attaches and detaches by calls of its own. */
export const isInTreeAttachable = (p: VolumePlugin): p is InTreeAttachableVolumePlugin =>
  isAttachable(p) && has(p, "newDetacher");
/** Whether the plugin mounts a device once for all pods of a node. */
export const isDeviceMountable = (p: VolumePlugin): p is DeviceMountableVolumePlugin =>
  has(p, "newDeviceMounter");
/** Whether the plugin makes volumes. */
export const isProvisionable = (p: VolumePlugin): p is ProvisionableVolumePlugin => has(p, "newProvisioner");
/** Whether the plugin deletes volumes. */
export const isDeletable = (p: VolumePlugin): p is DeletableVolumePlugin => has(p, "newDeleter");
/** Whether the plugin grows volumes from the controller. */
export const isExpandable = (p: VolumePlugin): p is ExpandableVolumePlugin => has(p, "expandVolumeDevice");
/** Whether the plugin grows file systems on the node. */
export const isNodeExpandable = (p: VolumePlugin): p is NodeExpandableVolumePlugin => has(p, "nodeExpand");
/** Whether the plugin can list what its provider has attached. */
export const listsAttachments = (p: VolumePlugin): p is AttachmentListingVolumePlugin =>
  has(p, "listAttachments");
