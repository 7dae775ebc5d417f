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
  /** Called exactly once, before any other method. A plugin that fails is left out; the others are not affected. */
  init(host: VolumeHost): Promise<void>;
  /** A qualified name with exactly one slash, e.g. `kubernetes.io/aws-ebs`. */
  readonly pluginName: string;
  /** The plugin's own name of the volume, e.g. `<driver>^<handle>`; the second half of the unique name. */
  getVolumeName(spec: VolumeSpec): string;
  /** Whether the volume is the plugin's, by the kind of its source alone; of all plugins at most one may say so. */
  canSupport(spec: VolumeSpec): boolean;
  /** A mounter of the volume for one pod. Mounts nothing yet. */
  newMounter(spec: VolumeSpec, pod: Pod): Promise<Mounter>;
  /** An unmounter of a pod's directory. `volumeName` is the spec's name, which names the directory (`specName`). */
  newUnmounter(volumeName: string, podUID: string): Promise<Unmounter>;
  /**
   * Rebuilds a spec that is good for unmounting only, from what lies on disk; fails where that does not say enough.
   *
   * @param volumeName the spec's name, as for {@link newUnmounter}
   * @param mountPath the volume's directory in the pod
   */
  constructVolumeSpec(volumeName: string, mountPath: string): Promise<VolumeSpec>;
  /** Whether the `mountOptions` of a StorageClass may be given to its volumes. */
  supportsMountOption(): boolean;
  /** Whether the volume is set up again when labels or annotations of its pod change; left out: none is. */
  requiresRemount?(spec: VolumeSpec): boolean;
  /** Whether the file system of a mounted volume may be measured; left out: that of a volume with a global mount may. */
  supportsMetrics?(): boolean;
}

/** Has volumes that are attached to a node before it mounts them. */
export interface AttachableVolumePlugin extends DeviceMountableVolumePlugin {
  /** Calls no provider. What it throws means that nothing was asked of one. */
  newAttacher(): Attacher;
  /** Whether this volume is attached at all: a CSI driver can do without (`CSIDriver.spec.attachRequired`). */
  canAttach(spec: VolumeSpec): Promise<boolean>;
}

/**
 * How the controller attaches by calls of the plugin, which in-tree plugins have. The CSI plugin has none: its volumes are
 * attached by VolumeAttachments, which the controller itself creates and deletes.
 */
export interface InTreeAttachableVolumePlugin extends AttachableVolumePlugin {
  newAttacher(): InTreeAttacher;
  /** Calls no provider, like {@link newAttacher}. */
  newDetacher(): Detacher;
}

/** How the node mounts a device once for all pods. */
export interface DeviceMountableVolumePlugin extends VolumePlugin {
  /** Mounts nothing yet. */
  newDeviceMounter(): DeviceMounter;
  /** Unmounts nothing yet. */
  newDeviceUnmounter(): DeviceUnmounter;
  /** Whether this volume has a mount that pods share: an inline CSI volume has none. */
  canDeviceMount(spec: VolumeSpec): Promise<boolean>;
}

/** How the persistent-volume controller makes volumes. */
export interface ProvisionableVolumePlugin extends VolumePlugin {
  /** A provisioner of one volume. Makes nothing yet. */
  newProvisioner(options: VolumeOptions): Provisioner;
}

/** How the persistent-volume controller deletes volumes. */
export interface DeletableVolumePlugin extends VolumePlugin {
  /** A deleter of one volume. Deletes nothing yet. */
  newDeleter(spec: VolumeSpec): Deleter;
}

/** How the expand controller grows volumes. */
export interface ExpandableVolumePlugin extends VolumePlugin {
  /** Grows the device to at least `newSizeBytes`; returns its size then, in bytes. Idempotent. */
  expandVolumeDevice(
    spec: VolumeSpec,
    newSizeBytes: bigint,
    oldSizeBytes: bigint,
    signal: AbortSignal,
  ): Promise<bigint>;
  /** Whether the file system on it has to grow on the node afterwards. */
  requiresFSResize(): boolean;
}

/** What is to grow on the node, and where it is. */
export interface NodeExpandOptions {
  readonly spec: VolumeSpec;
  /** What {@link Attacher.waitForAttach} returned; empty for a volume that is not attached. */
  readonly devicePath: string;
  /** The global mount; empty where the volume has none. */
  readonly deviceMountPath: string;
  /**
   * Where the file system is mounted: the global mount when staged, the pod's directory when published; of a block volume
   * its link in the pod's directory of devices.
   */
  readonly path: string;
  readonly phase: "staged" | "published";
  readonly newSizeBytes: bigint;
  /** What the claim has had so far; undefined: unknown. */
  readonly oldSizeBytes?: bigint;
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
  /** The device on the node. */
  readonly devicePath: string;
}

/** Can say what is attached, so that an attach that was in flight when a controller died is found again. */
export interface AttachmentListingVolumePlugin extends VolumePlugin {
  /** Every volume of the plugin that is attached to a node the provider knows; empty where there is no provider. */
  listAttachments(signal: AbortSignal): Promise<readonly ListedAttachment[]>;
}

/** What a new volume is to be like. */
export interface VolumeOptions {
  readonly reclaimPolicy: "Delete" | "Retain" | "Recycle";
  /** Of the StorageClass. */
  readonly mountOptions: readonly string[];
  /** The name of the PV; the same for each call on behalf of one claim. */
  readonly pvName: string;
  /** The claim that asks for the volume: its size and access modes. */
  readonly pvc: PersistentVolumeClaim;
  readonly clusterName: string;
  /** Kept with the disk, where the provider has tags. */
  readonly cloudTags: Readonly<Record<string, string>>;
  /** Of the StorageClass. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Topology terms of a storage class. */
export type AllowedTopologies = readonly {
  readonly matchLabelExpressions?: readonly { readonly key: string; readonly values: readonly string[] }[];
}[];

/** Makes one volume. The provisioning controller calls it, again and again until the PV is stored. */
export interface Provisioner {
  /**
   * Refuses what `provision` would refuse before it makes anything: by class, claim, secrets and zones. It changes nothing at
   * the provider, so a refusal of a claim whose making has not begun is certain to leave no disk behind.
   */
  check(
    selectedNode: SelectedNode | undefined,
    allowedTopologies: AllowedTopologies,
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Makes the volume and returns a PV that is not stored yet. Idempotent by `pvName`: a second call finds the disk of
   * the first. An error may leave a disk behind, which the next call finds.
   *
   * @param selectedNode the node that the scheduler has chosen; undefined where the volume does not wait for one
   * @param allowedTopologies of the StorageClass; empty: everywhere
   */
  provision(
    selectedNode: SelectedNode | undefined,
    allowedTopologies: AllowedTopologies,
    signal: AbortSignal,
  ): Promise<PersistentVolume>;
}

/** The node that the scheduler has chosen. */
export interface SelectedNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Deletes one volume. The deletion controller calls it for a released PV, and retries with growing delays. */
export interface Deleter {
  /**
   * Resolves when the volume is gone; a volume already gone is fine.
   *
   * @throws DeletedVolumeInUseError while it is attached: it is tried again, and the PV does not become Failed
   */
  delete(signal: AbortSignal): Promise<void>;
}

/** Ownership requested for a mount. */
export interface MounterArgs {
  /** The group that the volume's files are given to, by its number. */
  readonly fsGroup?: number;
  /** `OnRootMismatch`: not where the volume's root is the group's already. Default `Always`: at every mount. */
  readonly fsGroupChangePolicy?: "OnRootMismatch" | "Always";
  /** The SELinux label under which the pod's containers see the files, `user:role:type:level`. */
  readonly seLinuxLabel?: string;
  /** It is mounted for the pod already, for certain: whatever fails now takes nothing back. */
  readonly isMounted?: boolean;
}

/**
 * Mounts one volume for one pod. The volume manager calls it after the device is mounted, where the volume has one, and
 * never twice at a time for one directory.
 */
export interface Mounter {
  /** Where the pod finds the volume: an absolute path below the kubelet root. */
  getPath(): string;
  /** Whether the pod's mount refuses writes. */
  readonly readOnly: boolean;
  /**
   * Whether the node gives the files to the pod's SELinux label once they are mounted; default no. Source:
   * docs/behaviour/volume-plugins.md 2.
   */
  readonly supportsSELinux?: boolean;
  /**
   * Mounts at `getPath()`, and gives the files to `fsGroup`. Idempotent: may be called again on a mounted volume.
   *
   * @throws TransientOperationError when it could not begin, UncertainProgressError when it may have mounted; any other
   * error says that nothing was mounted. The outermost error counts, so these are never wrapped.
   */
  setUp(args: MounterArgs, signal: AbortSignal): Promise<void>;
  /**
   * After {@link setUp} has succeeded: in how many milliseconds the mounted volume is to be set up again; undefined:
   * never. Left out by plugins whose volumes stay as they were mounted.
   */
  setUpAgainMs?(): number | undefined;
}

/**
 * Unmounts one volume from one pod. The volume manager calls it once the pod neither wants the volume nor may have a
 * container that uses it; and so for what an earlier agent has left.
 */
export interface Unmounter {
  /** What `getPath` of the {@link Mounter} says. */
  getPath(): string;
  /** Unmounts and removes the directory. Works knowing only volume name and pod UID. Idempotent. */
  tearDown(signal: AbortSignal): Promise<void>;
}

/** Mounts the device of a volume once for all pods of the node (CSI: stages it), before the first of them mounts it. */
export interface DeviceMounter {
  /** The global mount shared by all pods of a node: an absolute path below the kubelet root. */
  getDeviceMountPath(spec: VolumeSpec): string;
  /**
   * Mounts at `deviceMountPath`. Idempotent. A device that holds a file system is never formatted.
   *
   * @param devicePath what {@link Attacher.waitForAttach} returned; empty for a volume that is not attached
   * @param args those of the first pod that is to use it
   * @throws as {@link Mounter.setUp}
   */
  mountDevice(
    spec: VolumeSpec,
    devicePath: string,
    deviceMountPath: string,
    signal: AbortSignal,
    args?: MounterArgs,
  ): Promise<void>;
}

/**
 * Attaches volumes to nodes. The attach/detach controller calls `attach` (of in-tree plugins) and `volumesAreAttached`; of attaches and detaches
 * it has at most one under way for a disk, or for a disk and node where several nodes may have the disk. The volume manager
 * of the node calls the rest.
 */
export interface Attacher extends DeviceMounter {
  /**
   * On the node: `waitForAttach` itself attaches, and the unmount of the device (or its teardown) detaches. From its first
   * attempt on the volume may be attached.
   */
  readonly attachesOnNode?: boolean;
  /** Whether each is still attached to the node, by the spec that was given. An answer can be older than an attach. */
  volumesAreAttached(
    specs: readonly VolumeSpec[],
    nodeName: string,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<VolumeSpec, boolean>>;
  /**
   * On the node: waits until the device is usable; returns its path (for CSI: the attachment's name, empty where the
   * driver needs no attach). Has no deadline of its own.
   *
   * @param devicePath what the controller has reported in the Node's `status.volumesAttached`
   * @param pod that waits for the volume: the secret of an inline volume is in its namespace
   */
  waitForAttach(spec: VolumeSpec, devicePath: string, signal: AbortSignal, pod?: Pod): Promise<string>;
}

/** Attaches by calls to the provider. */
export interface InTreeAttacher extends Attacher {
  /**
   * Attaches and returns the device path (empty where the plugin has none). Idempotent.
   *
   * @throws DanglingAttachError when another node has the volume. After any other error it may be attached nevertheless.
   */
  attach(spec: VolumeSpec, nodeName: string, signal: AbortSignal): Promise<string>;
}

/** Unmounts the device of a volume (CSI: unstages it), once no pod of the node has it mounted, and before it is detached. */
export interface DeviceUnmounter {
  /** Unmounts and removes the directory; needs the path alone. Idempotent: fine when nothing is mounted there. */
  unmountDevice(deviceMountPath: string, signal: AbortSignal): Promise<void>;
}

/** Detaches volumes from nodes. The attach/detach controller calls `detach`, the volume manager the rest. */
export interface Detacher extends DeviceUnmounter {
  /**
   * Resolves once the volume is not attached to the node; fine when it was not, or when the node is gone. Idempotent.
   * After an error it may still be attached.
   *
   * @param volumeName the plugin's own name (`getVolumeName`), not the unique name
   */
  detach(volumeName: string, nodeName: string, signal: AbortSignal): Promise<void>;
}

/** The paths of a volume that pods get as a device. */
export interface BlockVolume {
  /**
   * The directory of the node's mappings of the volume: one entry for each pod that has it, named by the pod's UID. It lies
   * below `kubeletPaths.pluginDevicesDir`.
   */
  getGlobalMapPath(spec: VolumeSpec): string;
  /** The directory of the pod's devices of this plugin, and the volume's name in it. */
  getPodDeviceMapPath(): { readonly directory: string; readonly name: string };
}

/** Maps a block volume for one pod. Idempotent; errors as {@link Mounter.setUp}. */
export interface BlockVolumeMapper extends BlockVolume {
  /** Whether the pod's device refuses writes. */
  readonly readOnly: boolean;
  /** Stages the volume; returns the device, empty where it is not known yet. Left out where the attached device is all. */
  setUpDevice?(signal: AbortSignal): Promise<string>;
  /** Publishes the volume for the pod; returns the device. Left out where the attached device is all. */
  mapPodDevice?(signal: AbortSignal): Promise<string>;
  /** What `mapPodDevice` returns is the volume itself: no driver keeps it from writes, so the node does. */
  readonly isPlainDevice?: boolean;
}

/** Unmaps a block volume. Works knowing only volume name and pod UID. Idempotent. */
export interface BlockVolumeUnmapper extends BlockVolume {
  /** Reverses `mapPodDevice`. */
  unmapPodDevice?(signal: AbortSignal): Promise<void>;
  /** Reverses `setUpDevice`, once no pod has the volume. `devicePath` is what that returned, empty where it is not known. */
  tearDownDevice?(globalMapPath: string, devicePath: string, signal: AbortSignal): Promise<void>;
}

/** Has volumes that pods can get as devices (`volumeMode: Block`). */
export interface BlockVolumePlugin extends VolumePlugin {
  /** A mapper of the volume for one pod. Maps nothing yet. */
  newBlockVolumeMapper(spec: VolumeSpec, pod: Pod): Promise<BlockVolumeMapper>;
  /** An unmapper of a pod's device. Unmaps nothing yet. */
  newBlockVolumeUnmapper(volumeName: string, podUID: string): Promise<BlockVolumeUnmapper>;
  /** As {@link VolumePlugin.constructVolumeSpec}, from the entry in the pod's directory of devices. */
  constructBlockVolumeSpec(podUID: string, volumeName: string, mapPath: string): Promise<VolumeSpec>;
}

/** A volume that the plugin has mounted, or has as a device, for the whole node. */
export interface GlobalMount {
  /** Good for unmounting only. */
  readonly spec: VolumeSpec;
  /** Of a block volume its directory of mappings. */
  readonly deviceMountPath: string;
}

/** Can say what it has mounted for the whole node, so that an agent that starts finds what no pod has any more. */
export interface GlobalMountsVolumePlugin extends DeviceMountableVolumePlugin {
  /** From what lies on disk alone. */
  listGlobalMounts(): Promise<readonly GlobalMount[]>;
}

/** Says how many of its volumes a node can have. */
export interface VolumePluginWithAttachLimits extends VolumePlugin {
  /** Limits by resource name, e.g. `attachable-volumes-gce-pd`. @throws when the node belongs to another provider */
  getVolumeLimits(node: { readonly instanceType: string }): Readonly<Record<string, number>>;
  /** The resource name that the volume counts against. */
  volumeLimitKey(spec: VolumeSpec): string;
}

/** Room in a volume that pods have, and whether it is well. */
export interface VolumeStats {
  readonly bytes?: VolumeUsage;
  /** Of a file system that has a number of them. */
  readonly inodes?: VolumeUsage;
  /** Undefined: nothing says so. */
  readonly condition?: { readonly abnormal: boolean; readonly message: string };
}

/** How much there is of something. Of a device only `total` is known: what its pods have written is theirs to say. */
export interface VolumeUsage {
  readonly total: number;
  readonly available?: number;
  readonly used?: number;
}

/** Asks something else than the mounted file system how much room a volume has. */
export interface VolumePluginWithStats extends VolumePlugin {
  /** To measure a volume takes time in proportion to the number of its files. */
  readonly countsFiles?: boolean;
  /**
   * @param where the mount, and the global one (empty: none); of a block volume the pod's device, and the directory of mappings
   * @returns undefined when nothing knows
   */
  getVolumeStats(
    spec: VolumeSpec,
    pod: Pod,
    where: { readonly path: string; readonly deviceMountPath: string },
    signal: AbortSignal,
  ): Promise<VolumeStats | undefined>;
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
/** Whether the plugin has block volumes. */
export const isBlockVolumePlugin = (p: VolumePlugin): p is BlockVolumePlugin =>
  has(p, "newBlockVolumeMapper");
/** Whether the plugin can list what it has mounted for the whole node. */
export const listsGlobalMounts = (p: VolumePlugin): p is GlobalMountsVolumePlugin =>
  has(p, "listGlobalMounts");
/** Whether the plugin says how many of its volumes a node can have. */
export const hasAttachLimits = (p: VolumePlugin): p is VolumePluginWithAttachLimits =>
  has(p, "getVolumeLimits");
/** Whether the plugin says itself how much room its volumes have. */
export const hasVolumeStats = (p: VolumePlugin): p is VolumePluginWithStats => has(p, "getVolumeStats");
/** Whether the plugin can list what its provider has attached. */
export const listsAttachments = (p: VolumePlugin): p is AttachmentListingVolumePlugin =>
  has(p, "listAttachments");
