/** Whether what is at a path of the node is what the volume asks for. Source: docs/behaviour/pod-volumes.md 7. */
import { type FileKind, type Host, HostError } from "@longshore/runtime";
import { statAtEnd } from "../../framework/stat-at-end.ts";

/** The path of a hostPath volume is not as the volume says; names path and type. */
export class HostPathError extends Error {
  override readonly name = "HostPathError";
}

/** core/v1 HostPathType: what has to be there, and how it is named in errors. */
const wanted: Readonly<Record<string, readonly [kind: FileKind, what: string]>> = {
  Directory: ["directory", "a directory"],
  DirectoryOrCreate: ["directory", "a directory"],
  File: ["file", "a file"],
  FileOrCreate: ["file", "a file"],
  Socket: ["socket", "a socket"],
  CharDevice: ["charDevice", "a character device"],
  BlockDevice: ["blockDevice", "a block device"],
};

/** As 1.20 creates it. */
const directoryMode = 0o755;

/**
 * Checks the path, and creates what the type lets be created. Without a type a missing path becomes a directory, as
 * container runtimes make it.
 *
 * @throws HostPathError when something else is there, or nothing; or for a type or path that may not be
 */
export async function prepareHostPath(host: Host, path: string, type: string): Promise<void> {
  requireSafe(path);
  const want = wanted[type];
  if (type !== "" && want === undefined) {
    throw new HostPathError(
      `hostPath ${path}: type "${type}" is not known: use ${Object.keys(wanted).join(", ")}`,
    );
  }
  const stat = (await statAtEnd(host, path)) ?? (await created(host, path, type));
  if (want === undefined || stat?.kind === want[0]) return;
  throw new HostPathError(
    stat === undefined
      ? `hostPath ${path} (type ${type}) does not exist on this node: create it`
      : `hostPath ${path} is not ${want[1]}, as type ${type} demands`,
  );
}

function requireSafe(path: string): void {
  if (path.startsWith("/") && !path.split("/").includes("..")) return;
  throw new HostPathError(`hostPath "${path}" must be absolute, without ".."`);
}

async function created(host: Host, path: string, type: string) {
  try {
    if (type === "" || type === "DirectoryOrCreate") await host.makeDirectory(path, directoryMode);
    // Appending nothing makes the file, and leaves one that has come meanwhile as it is.
    if (type === "FileOrCreate") await host.appendFileDurable(path, "");
  } catch (cause) {
    if (cause instanceof HostError) throw new HostPathError(`hostPath ${path} cannot be created`, { cause });
    throw cause;
  }
  return statAtEnd(host, path);
}
