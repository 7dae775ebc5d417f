/**
 * The directories of a disk plugin that belong to the whole node: `<plugin>/mounts` with the global mounts, and
 * `<plugin>/volumeDevices` with the mappings of block volumes. Each volume has one in each, named by it.
 *
 * Where the name of a directory says too little, `<plugin>/volumes` keeps a file of the same name with the volume's
 * name in it: upstream takes the directory's name for the volume's then, so that the node reports a wrong volume in use
 * after a restart (docs/behaviour/volume-plugins.md 2).
 */
import type { Host } from "@longshore/runtime";
import { kubeletPaths } from "../../framework/volume-host.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";
import { type DiskDescription, type DiskNames, unreadableName } from "./disk-description.ts";

type Named = Pick<DiskDescription, "pluginName" | "names">;

/** The directory below which all global mounts of the plugin lie. */
export function globalMountsDirectory(root: string, { pluginName }: Named): string {
  return kubeletPaths.pluginMountsDir(root, pluginName);
}

/** The global mount of a volume. @throws InTreeVolumeError for a name that would leave the directory */
export function globalMountPath(root: string, plugin: Named, volumeName: string): string {
  const directory = plugin.names.directoryOf(volumeName);
  return below(globalMountsDirectory(root, plugin), directory, plugin.names, volumeName);
}

/** The volume whose global mount the path is, or undefined when it is none. */
export async function volumeNameOfGlobalMount(
  host: Host,
  root: string,
  plugin: Named,
  path: string,
): Promise<string | undefined> {
  const directory = relativeTo(globalMountsDirectory(root, plugin), path);
  if (directory === undefined) return undefined;
  if (plugin.names.volumeNameIn !== undefined) return plugin.names.volumeNameIn(directory);
  return await host.readFile(recordPath(root, plugin, directory));
}

/** The directory below which all mappings of the plugin's block volumes lie. */
export function globalMapsDirectory(root: string, { pluginName }: Named): string {
  return kubeletPaths.pluginDevicesDir(root, pluginName);
}

/** The directory of a block volume's mappings. @throws InTreeVolumeError for a name that would leave the directory */
export function globalMapPath(root: string, plugin: Named, volumeName: string): string {
  const { directoryOf } = plugin.names.mapped ?? plugin.names;
  return below(globalMapsDirectory(root, plugin), directoryOf(volumeName), plugin.names, volumeName);
}

/** The block volume whose mappings the directory holds, or undefined when it is none. */
export function volumeNameOfGlobalMap(root: string, plugin: Named, path: string): string | undefined {
  const directory = relativeTo(globalMapsDirectory(root, plugin), path);
  return directory === undefined
    ? undefined
    : (plugin.names.mapped ?? plugin.names).volumeNameIn?.(directory);
}

/** Keeps the volume's name where its directory does not say it. @throws InTreeVolumeError when another volume has it */
export async function recordGlobalMount(
  host: Host,
  root: string,
  plugin: Named,
  volumeName: string,
): Promise<void> {
  if (plugin.names.volumeNameIn !== undefined) return;
  const path = recordPath(root, plugin, plugin.names.directoryOf(volumeName));
  const recorded = await host.readFile(path);
  if (recorded === volumeName) return;
  if (recorded !== undefined && (await host.isMountPoint(globalMountPath(root, plugin, volumeName)))) {
    throw new InTreeVolumeError(
      `volume ${volumeName}: its global mount is in use by volume ${recorded}, whose name has the same hash: end the pods of one of them on this node`,
    );
  }
  await host.makeDirectory(recordsDirectory(root, plugin));
  await host.writeFileAtomic(path, volumeName);
}

/** Forgets the name of a volume whose global mount is gone. */
export async function forgetGlobalMount(
  host: Host,
  root: string,
  plugin: Named,
  path: string,
): Promise<void> {
  const directory = relativeTo(globalMountsDirectory(root, plugin), path);
  if (directory === undefined || plugin.names.volumeNameIn !== undefined) return;
  await host.removeFile(recordPath(root, plugin, directory));
}

function recordsDirectory(root: string, { pluginName }: Named): string {
  return `${kubeletPaths.pluginDir(root, pluginName)}/volumes`;
}

function recordPath(root: string, plugin: Named, directory: string): string {
  return `${recordsDirectory(root, plugin)}/${directory}`;
}

function below(parent: string, relative: string, names: DiskNames, volumeName: string): string {
  if (relative.includes("\0") || relative.split("/").some((part) => ["", ".", ".."].includes(part))) {
    throw unreadableName(names, volumeName);
  }
  return `${parent}/${relative}`;
}

function relativeTo(parent: string, path: string): string | undefined {
  return path.startsWith(`${parent}/`) ? path.slice(parent.length + 1) : undefined;
}
