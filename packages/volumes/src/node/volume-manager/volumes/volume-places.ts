/** Where volumes are mounted on the node, and who may mount or unmount there. */
import type { Host } from "@longshore/runtime";
import { diskKeysOf } from "../../../csimigration/disk-keys.ts";
import { mountOptionsOf } from "../../../framework/mount-options.ts";
import { nodeErrorKind, UncertainProgressError } from "../../../framework/node-error-kind.ts";
import type { UniqueVolumeName } from "../../../framework/unique-volume-name.ts";
import { isAttachable, type VolumePlugin } from "../../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../../framework/volume-spec.ts";
import type { ActualDevice, ActualState, ActualVolume } from "../actual-state.ts";
import type { DesiredPod, DesiredState } from "../desired-state.ts";
import type { MountsInFlight } from "./mounts-in-flight.ts";

/** The node's files. */
export interface VolumePlaces {
  readonly host: Host;
  /** The kubelet root directory. */
  readonly rootDir: string;
}

/** An operation cannot go on as things stand. */
export class VolumeOperationError extends Error {
  override readonly name = "VolumeOperationError";
}

/** The key of a pod's mount among the places that are held while something is mounted or unmounted there. */
export function podMountKey({ pluginName }: VolumePlugin, podUID: string, volumeName: string): string {
  return `${podUID} ${pluginName} ${volumeName}`;
}

/**
 * Refuses mount options that the plugin would not use: a volume that is to be mounted with `noexec` must not be mounted without.
 * @throws VolumeOperationError
 */
export function requireMountOptionsUsed(plugin: VolumePlugin, { persistentVolume }: VolumeSpec): void {
  if (persistentVolume === undefined || plugin.supportsMountOption()) return;
  const options = mountOptionsOf(persistentVolume);
  if (options.length === 0) return;
  throw new VolumeOperationError(
    `PersistentVolume ${persistentVolume.metadata?.name}: mount options ${options.join(",")} are not supported by ${plugin.pluginName}: remove spec.mountOptions`,
  );
}

/**
 * Refuses to unmount a device while a pod's directory shares it: that mount would be cut off from it.
 * @throws VolumeOperationError
 */
export async function requireNoOtherMounts(
  { host, rootDir }: VolumePlaces,
  deviceMountPath: string,
): Promise<void> {
  const mounts = await host.listMounts(rootDir);
  const device = mounts.find(({ target }) => target === deviceMountPath);
  const pods = `${rootDir}/pods/`;
  const other = mounts.find(
    ({ source, target }) =>
      target.startsWith(pods) &&
      (source === deviceMountPath || (source.startsWith("/") && source === device?.source)),
  );
  if (other !== undefined) {
    throw new VolumeOperationError(
      `${deviceMountPath} is still mounted at ${other.target}: that must go first`,
    );
  }
}

/**
 * Refuses to let go of an attached device that something has which the mount table does not show, as a container whose mounts are its
 * own: the controller would detach it under a file system that is in use. Source: docs/behaviour/node-agent.md 7.5.
 * @throws VolumeOperationError
 */
export async function requireNotHeld(
  { host }: VolumePlaces,
  plugin: VolumePlugin,
  devicePath: string | undefined,
): Promise<void> {
  const isAttachedHere = isAttachable(plugin) && plugin.newAttacher().attachesOnNode !== true;
  // CSI names an attachment, and no device.
  if (!isAttachedHere || devicePath?.startsWith("/") !== true) return;
  if (!(await host.isDeviceHeld(devicePath))) return;
  throw new VolumeOperationError(
    `${devicePath} is still in use, although nothing here has it mounted: end the process that has it`,
  );
}

/**
 * Refuses to mount a device where another volume is or may be mounted: the path is that of a PersistentVolume's name,
 * and one that was deleted and made again under its name is another volume.
 * @throws VolumeOperationError
 */
export function requireFreePlace(
  actual: Pick<ActualState, "volumes">,
  uniqueName: UniqueVolumeName,
  deviceMountPath: string,
): void {
  for (const other of actual.volumes()) {
    const { state, path } = other.device;
    if (other.uniqueName === uniqueName || path !== deviceMountPath || state === "notMounted") continue;
    throw new VolumeOperationError(
      `${deviceMountPath} is or may be the mount of ${other.uniqueName}: that must go first`,
    );
  }
}

/**
 * Refuses a disk that is or may be in use here as another volume, as it is for a while after a conversion: where no controller attaches
 * the disk, nothing else keeps the one path from beginning before the other has ended. Source: docs/contract.md C1.
 * @throws VolumeOperationError
 */
export function requireFreeDisk(
  {
    actual,
    mounts,
  }: { readonly actual: Pick<ActualState, "volumes">; readonly mounts: Pick<MountsInFlight, "has"> },
  volume: Pick<ActualVolume, "uniqueName" | "spec">,
): void {
  const keys = diskKeysOf(volume);
  if (keys.length === 0) return;
  for (const other of actual.volumes()) {
    if (other.uniqueName === volume.uniqueName) continue;
    const isHere = other.device.state !== "notMounted" || other.pods.size > 0 || mounts.has(other.uniqueName);
    if (!isHere || !diskKeysOf(other).some((key) => keys.includes(key))) continue;
    throw new VolumeOperationError(
      `the disk of ${volume.uniqueName} is or may be in use as ${other.uniqueName}: that must go first`,
    );
  }
}

/**
 * Refuses to mount a volume while it is or may be in use as a device.
 * @throws VolumeOperationError
 */
export function requireNoDevice(actual: { readonly device: ActualDevice } | undefined): void {
  if (actual?.device.block === undefined || actual.device.state === "notMounted") return;
  throw new VolumeOperationError(
    `the volume is or may be in use as a device at ${actual.device.path}: that must go first`,
  );
}

/**
 * Refuses a volume of ReadWriteOncePod alone to a pod while another has it here, or may. A pod that may have it itself is not
 * refused: an agent that starts finds what is mounted uncertain. Source: docs/behaviour/node-agent.md 7.3.
 * @throws VolumeOperationError
 */
export function requireNoOtherPod(
  { actual, desired }: { readonly actual: Pick<ActualState, "get">; readonly desired: DesiredState },
  uniqueName: UniqueVolumeName,
  { pod, spec }: Pick<DesiredPod, "pod" | "spec">,
): void {
  const accessModes = spec.persistentVolume?.spec?.accessModes ?? [];
  if (accessModes.length !== 1 || accessModes[0] !== "ReadWriteOncePod") return;
  const having = actual.get(uniqueName)?.pods ?? new Map<string, unknown>();
  const [other] = having.keys();
  if (other === undefined || having.has(pod.metadata.uid)) return;
  const named = desired.podOf(uniqueName, other)?.pod.metadata;
  const who = named === undefined ? `with UID ${other}` : `${named.namespace}/${named.name}`;
  throw new VolumeOperationError(
    `PersistentVolume ${specName(spec)} has the access mode ReadWriteOncePod and pod ${who} has it on this node: that pod must go first`,
  );
}

/**
 * Refuses to use a volume from one place while its device is or may be at another, as under another PersistentVolume's name.
 * @throws VolumeOperationError
 */
export function requireSamePlace(
  actual: { readonly device: ActualDevice } | undefined,
  devicePath: string,
): void {
  if (actual === undefined || actual.device.state === "notMounted" || actual.device.path === devicePath)
    return;
  throw new VolumeOperationError(
    `the volume is or may be in use at ${actual.device.path}: that must go before it is used at ${devicePath}`,
  );
}

/**
 * The error of a failed mount as the state takes it: one that calls itself final, while the path is a mount point or
 * cannot be looked at, becomes an {@link UncertainProgressError}.
 */
export async function checkedMountError(host: Host, path: string, error: unknown): Promise<unknown> {
  if (nodeErrorKind(error) !== "final") return error;
  try {
    if (!(await host.isMountPoint(path))) return error;
  } catch {
    // What cannot be looked at may be mounted.
  }
  return new UncertainProgressError(`${path} may be mounted nevertheless`, { cause: error });
}
