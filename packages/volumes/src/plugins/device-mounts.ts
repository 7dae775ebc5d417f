/**
 * What plugins of disks and of local devices do on the host with a device and the mounts of it.
 *
 * Invariants
 *  - A device that holds a file system is never formatted.
 *  - A directory is removed only when nothing is mounted there and it is empty.
 *  - Each step may be repeated after a crash at any point: what is there already is left alone.
 */
import { dirname, resolve } from "node:path/posix";
import { type Host, HostError, type Mount } from "@longshore/runtime";
import { FilesystemMismatchError, UncertainProgressError } from "../framework/node-error-kind.ts";
import { setVolumeOwnership } from "../framework/set-volume-ownership.ts";
import type { VolumeHost } from "../framework/volume-host.ts";
import type { MounterArgs } from "../framework/volume-plugin.ts";
import { formatOrCheck } from "./format-or-check.ts";
import { InTreeVolumeError } from "./in-tree-volume-error.ts";

/** The file system that a device gets where the volume names none. */
export const defaultFsType = "ext4";

/** Links that one path may lead through. Source: path_resolution(7), which allows 40. */
const maximumLinks = 8;

/** What is to be mounted. */
export interface DeviceMount {
  readonly volumeName: string;
  readonly device: string;
  /** Empty: {@link defaultFsType}. */
  readonly fsType: string;
  readonly readOnly: boolean;
  readonly flags: readonly string[];
}

/** Mounts the device at the directory; formats it before where it is blank. Idempotent. */
export async function mountFormatted(host: Host, target: string, mount: DeviceMount): Promise<void> {
  if (await host.isMountPoint(target)) return;
  const fsType = mount.fsType === "" ? defaultFsType : mount.fsType;
  await host.makeDirectory(target);
  try {
    if (!mount.readOnly) await formatOrCheck(host, mount.device, fsType);
    const { flags, readOnly } = mount;
    await host.mountDevice(mount.device, target, { fsType, flags: [...flags], readOnly });
  } catch (error) {
    await removeIfNotMounted(host, target);
    throw await explained(host, mount, fsType, error);
  }
}

/** One sentence for what a user can correct: the device has gone, or the type of the file system is wrong. */
async function explained(host: Host, mount: DeviceMount, fsType: string, error: unknown): Promise<unknown> {
  if (!(error instanceof HostError)) return error;
  const { volumeName, device } = mount;
  const says = (problem: string) =>
    new InTreeVolumeError(`volume ${volumeName}: ${problem}`, { cause: error });
  if ((await host.stat(device)) === undefined) {
    return says(
      `device ${device} has gone: the volume was detached, and is mounted once it is attached again`,
    );
  }
  if (error.operation === "format") {
    return says(`this node cannot make a file system of fsType "${fsType}": correct the volume's fsType`);
  }
  const present = await host.fileSystemOf(device).catch(() => undefined);
  if (error.operation !== "mountDevice" || present === fsType) return error;
  if (present === undefined) return says("it is to be read and holds no file system: write to it first");
  return new FilesystemMismatchError(
    `volume ${volumeName}: it holds ${present} and its fsType is "${fsType}": set fsType to ${present}`,
    { cause: error },
  );
}

/** Binds a mounted directory for a pod. Idempotent. */
export async function bindForPod(
  host: Host,
  source: string,
  target: string,
  { volumeName, readOnly }: { readonly volumeName: string; readonly readOnly: boolean },
): Promise<void> {
  if (await host.isMountPoint(target)) return;
  await host.makeDirectory(target);
  try {
    await refuseLostDevice(host, source, volumeName);
    if (!readOnly) await refuseReadOnly(host, source, volumeName);
    await host.bindMount(source, target, { readOnly });
  } catch (error) {
    await removeIfNotMounted(host, target);
    throw error;
  }
}

const endPods = "end all pods of this node that use it, so that it is checked and mounted again";

/** A mount outlives its device. @throws InTreeVolumeError when what is mounted at the path has lost its device */
export async function refuseLostDevice(host: Host, path: string, volumeName: string): Promise<void> {
  const device = (await topMount(host, path))?.source;
  if (device?.startsWith("/dev/") !== true || (await host.stat(device)) !== undefined) return;
  throw new InTreeVolumeError(
    `volume ${volumeName}: its device ${device} has gone while it was mounted on this node: ${endPods}`,
  );
}

/** The kernel makes a file system read-only when it finds errors in it. Source: ext4(5), errors=remount-ro. */
async function refuseReadOnly(host: Host, source: string, volumeName: string): Promise<void> {
  if ((await topMount(host, source))?.readOnly !== true) return;
  throw new InTreeVolumeError(
    `volume ${volumeName}: its file system has become read-only, as at an error in it: ${endPods}`,
  );
}

async function topMount(host: Host, path: string): Promise<Mount | undefined> {
  return (await host.listMounts(path)).findLast(({ target }) => target === path);
}

/** Gives the files of a mounted volume to the group that the pod wants. */
export async function giveToGroup(
  volumeHost: VolumeHost,
  path: string,
  volumeName: string,
  { fsGroup, fsGroupChangePolicy }: MounterArgs,
): Promise<void> {
  if (fsGroup === undefined) return;
  try {
    const onlyOnRootMismatch = fsGroupChangePolicy === "OnRootMismatch";
    await setVolumeOwnership(volumeHost, path, fsGroup, { onlyOnRootMismatch });
  } catch (cause) {
    // It is mounted already: it has to be unmounted before it is forgotten.
    throw new UncertainProgressError(
      `the files of volume ${volumeName} could not be given to the pod's fsGroup`,
      { cause },
    );
  }
}

/** Unmounts as often as something is mounted there, then removes the empty directory. */
export async function unmountAndRemove(host: Host, path: string): Promise<void> {
  while (await host.isMountPoint(path)) await host.unmount(path);
  await host.removeDirectory(path);
}

/** Where a path leads: a provider's name of a device is a link to it. Source: upstream findDiskPath and its EvalSymlinks. */
export async function resolvedLink(host: Host, path: string): Promise<string> {
  let place = path;
  for (let links = 0; links < maximumLinks; links++) {
    const target = await host.readLink(place);
    if (target === undefined) return place;
    place = resolve(dirname(place), target);
  }
  throw new InTreeVolumeError(
    `${path}: more than ${maximumLinks} links follow each other: detach the volume`,
  );
}

/** Removes the directory unless something is mounted there. */
export async function removeIfNotMounted(host: Host, path: string): Promise<void> {
  if (!(await host.isMountPoint(path))) await host.removeDirectory(path).catch(() => {});
}
