/**
 * `vol_data.json`: what the CSI plugin remembers of a volume on disk, so that it can be unpublished
 * and unstaged after a restart from this file alone. Source: docs/behaviour/csi-plugin.md 9.2.
 */
import { type Host, HostError } from "@longshore/runtime";

/** The file's name; it lies in the parent of the mount directory. */
export const volDataFileName = "vol_data.json";

/** The file's content; the pod's file has all keys, the staging file only handle and driver. */
export interface VolData {
  readonly specVolID?: string;
  readonly volumeHandle: string;
  readonly driverName: string;
  readonly nodeName?: string;
  readonly attachmentID?: string;
  readonly volumeLifecycleMode?: "Persistent" | "Ephemeral";
}

/** The file is there but cannot be understood. */
export class VolDataError extends Error {
  override readonly name = "VolDataError";
}

/** Writes the file into `directory`, all or nothing. */
export function writeVolData(host: Host, directory: string, data: VolData): Promise<void> {
  return host.writeFileAtomic(`${directory}/${volDataFileName}`, `${JSON.stringify(data)}\n`);
}

/** Reads the file of `directory`; undefined when there is none. @throws VolDataError when it is damaged */
export async function readVolData(host: Host, directory: string): Promise<VolData | undefined> {
  const path = `${directory}/${volDataFileName}`;
  const text = await host.readFile(path);
  return text === undefined ? undefined : parseVolData(text, path);
}

/** Whether there is a file; a damaged one counts, too: an earlier call may have staged what it described. */
export function hasVolData(host: Host, directory: string): Promise<boolean> {
  return readVolData(host, directory).then(
    (data) => data !== undefined,
    () => true,
  );
}

/** Parses the file's text; `path` is for the error. @throws VolDataError */
export function parseVolData(text: string, path: string): VolData {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new VolDataError(`${path} is not JSON: remove it once nothing is mounted beside it`, { cause });
  }
  const data = value as Partial<VolData> | null;
  if (typeof data?.volumeHandle !== "string" || typeof data.driverName !== "string") {
    throw new VolDataError(
      `${path} lacks volumeHandle or driverName: remove it once nothing is mounted beside it`,
    );
  }
  return data as VolData;
}

/** The driver said that it is done, but the path is still mounted. */
export class StillMountedError extends Error {
  override readonly name = "StillMountedError";
}

/** Like {@link removeMountDirectory}, after an unmount that must have worked. @throws StillMountedError */
export async function removeUnmountedDirectory(host: Host, mountPath: string): Promise<void> {
  if (await host.isMountPoint(mountPath)) {
    throw new StillMountedError(`${mountPath} is still mounted although the driver unmounted it`);
  }
  await removeMountDirectory(host, mountPath);
}

/**
 * Removes a mount directory that is no longer mounted, the data file next to it and their common
 * parent. When the directory is still a mount point, nothing is removed.
 * Source: docs/behaviour/csi-plugin.md 8.3, `removeMountDir`.
 */
export async function removeMountDirectory(host: Host, mountPath: string): Promise<void> {
  if (await host.isMountPoint(mountPath)) return;
  const parent = mountPath.slice(0, mountPath.lastIndexOf("/"));
  await removePathOrDirectory(host, mountPath);
  // After the mount directory: a crash between the two leaves the file, which still says what to clean up.
  await host.removeFile(`${parent}/${volDataFileName}`);
  await host.removeDirectory(parent);
}

async function removePathOrDirectory(host: Host, path: string): Promise<void> {
  const stat = await host.stat(path);
  if (stat === undefined) return;
  if (stat.kind === "directory") await host.removeDirectory(path);
  else if (stat.kind === "file" && stat.sizeBytes === 0) await host.removeFile(path);
  else throw new HostError("removeMountDirectory", path, "ENOTEMPTY");
}
