/**
 * The mappings of a block volume on the node's disk: in the volume's directory of mappings a file for each pod, on which
 * the device is bound, and in the pod's directory of devices a link to that file.
 * Source: docs/behaviour/csi-plugin.md 10, docs/behaviour/node-agent.md 7.4.
 *
 *     <plugin's directory>/<global map path>/<podUID>            the device, bound on a file
 *     <root>/pods/<podUID>/volumeDevices/<plugin>/<volume>  ──►  that file
 *
 * Invariant: the link is there before anything is done for the pod, and goes after all of it is undone. After a crash it
 * names every pod that may have the device.
 */
import type { Host } from "@longshore/runtime";
import {
  nodeErrorKind,
  TransientOperationError,
  UncertainProgressError,
} from "../../../framework/node-error-kind.ts";
import { kubeletPaths } from "../../../framework/volume-host.ts";
import type { BlockVolume, BlockVolumePlugin } from "../../../framework/volume-plugin.ts";
import type { VolumeSpec } from "../../../framework/volume-spec.ts";
import { VolumeOperationError, type VolumePlaces } from "./volume-places.ts";

/** One pod's mapping of a volume. */
export interface DeviceMap {
  /** The volume's directory of mappings. */
  readonly globalMapPath: string;
  /** The file in it that the pod's device is bound on. */
  readonly file: string;
  /** The pod's directory of devices. */
  readonly directory: string;
  /** The link in it; its path is what the pod's container is given. */
  readonly link: string;
}

/** The paths of a pod's mapping. */
export function deviceMapOf(volume: BlockVolume, spec: VolumeSpec, podUID: string): DeviceMap {
  const globalMapPath = volume.getGlobalMapPath(spec);
  const { directory, name } = volume.getPodDeviceMapPath();
  return { globalMapPath, file: `${globalMapPath}/${podUID}`, directory, link: `${directory}/${name}` };
}

/**
 * Makes the directories and the link, which leads nowhere yet. A link to another place is replaced.
 * @throws TransientOperationError nothing is asked of a driver before that has succeeded
 */
export async function prepareMap(
  host: Host,
  { globalMapPath, file, directory, link }: DeviceMap,
): Promise<void> {
  try {
    await host.makeDirectory(globalMapPath);
    await host.makeDirectory(directory);
    const target = await host.readLink(link);
    if (target === file) return;
    if (target !== undefined) await host.removeFile(link);
    await host.symlink(file, link);
  } catch (cause) {
    throw new TransientOperationError(`${link} cannot be made`, { cause });
  }
}

/** Binds the device on the pod's file. What else is bound there, as before a crash, is taken away first. */
export async function bindDevice(
  host: Host,
  { file }: DeviceMap,
  device: string,
  readOnly: boolean,
): Promise<void> {
  if ((await host.stat(device)) === undefined) {
    throw new VolumeOperationError(`device ${device} does not exist: the driver or provider named it`);
  }
  await unbind(host, file);
  await host.writeFileAtomic(file, "");
  await host.bindMount(device, file, { readOnly });
}

async function unbind(host: Host, file: string): Promise<void> {
  while (await host.isMountPoint(file)) await host.unmount(file);
  await host.removeFile(file);
}

/** Unmaps the volume from the pod, knowing no more than its link's name. Idempotent. */
export async function unmapByName(
  { host, rootDir }: VolumePlaces,
  plugin: BlockVolumePlugin,
  { podUID, volumeName }: { readonly podUID: string; readonly volumeName: string },
  signal: AbortSignal,
): Promise<void> {
  const unmapper = await plugin.newBlockVolumeUnmapper(volumeName, podUID);
  const { directory, name } = unmapper.getPodDeviceMapPath();
  const link = `${directory}/${name}`;
  const file = await host.readLink(link);
  if (file !== undefined) {
    const devices = kubeletPaths.pluginDevicesDir(rootDir, plugin.pluginName);
    if (!file.startsWith(`${devices}/`) || !file.endsWith(`/${podUID}`)) {
      throw new VolumeOperationError(
        `${link} leads to ${file}, which is no mapping below ${devices}: remove it by hand`,
      );
    }
    await unbind(host, file);
  }
  await unmapper.unmapPodDevice?.(signal);
  await host.removeFile(link);
}

/** A block volume's device, by what is remembered of it. */
export interface NamedDevice {
  readonly volumeName: string;
  /** The directory of mappings. */
  readonly path: string;
  /** Empty where it is not known. */
  readonly devicePath: string;
}

/**
 * Tears a device down that no pod has, and removes its directory of mappings. Idempotent.
 * @throws VolumeOperationError while a pod has it
 */
export async function tearDownByName(
  host: Host,
  plugin: BlockVolumePlugin,
  { volumeName, path, devicePath }: NamedDevice,
  signal: AbortSignal,
): Promise<void> {
  await requireNoMaps(host, path);
  const unmapper = await plugin.newBlockVolumeUnmapper(volumeName, "");
  await unmapper.tearDownDevice?.(path, devicePath, signal);
  await host.removeTree(path);
}

async function requireNoMaps(host: Host, globalMapPath: string): Promise<void> {
  for (const podUID of (await host.readDirectory(globalMapPath)) ?? []) {
    if (!(await host.isMountPoint(`${globalMapPath}/${podUID}`))) continue;
    throw new VolumeOperationError(`${globalMapPath} is still mapped for pod ${podUID}: that must go first`);
  }
}

/**
 * The error of a failed mapping as the state takes it. One that says that nothing was mapped holds only once nothing of
 * the mapping is left on disk: otherwise it becomes an {@link UncertainProgressError}, and the mapping is undone when the
 * pod has gone.
 *
 * @param mayBeMapped an earlier attempt may have mapped it
 */
export async function checkedMapError(
  host: Host,
  map: DeviceMap,
  error: unknown,
  mayBeMapped: boolean,
): Promise<unknown> {
  const kind = nodeErrorKind(error);
  if (kind === "uncertain" || (kind === "transient" && mayBeMapped)) return error;
  try {
    await unbind(host, map.file);
    await host.removeFile(map.link);
    return error;
  } catch (cause) {
    return new UncertainProgressError(`${map.link} may be mapped nevertheless: ${String(error)}`, { cause });
  }
}
