/**
 * Which Flexvolume drivers are installed: what lies in the driver directory. Looking runs nothing. Source:
 * docs/behaviour/flexvolume.md 1, 2.3 and 2.5.
 *
 * Invariants
 *  - Names that begin with a dot are not seen, wherever they are.
 *  - A link is followed only to what lies in the driver directory, along names without a dot at their beginning.
 *  - The work is bounded, whatever lies there.
 */
import { posix } from "node:path";
import { type FileStat, type Host, HostError } from "@longshore/runtime";
import { namesOfDirectory, problemOfName } from "./flexvolume-names.ts";

/** A driver as it lies in the directory. */
export interface InstalledDriver {
  readonly pluginName: string;
  /** Path of its program. */
  readonly executable: string;
  /** Differs after each change of the driver. */
  readonly fingerprint: string;
  /** Why it cannot be run; undefined: nothing is known against it. */
  readonly problem: string | undefined;
}

/** What a look has found. */
export interface DriverDirectoryLook {
  /** By the name of the driver's directory. */
  readonly drivers: ReadonlyMap<string, InstalledDriver>;
  /** The directories that a watch has to be on, the driver directory first. */
  readonly directories: readonly string[];
}

/** Most entries of one driver that are looked at, and how deep. */
const entriesMax = 1000;
const depthMax = 8;

/** Looks at the driver directory, which is made when it is missing. @throws HostError when it cannot be read */
export async function lookAtDriverDirectory(host: Host, root: string): Promise<DriverDirectoryLook> {
  let names = await host.readDirectory(root);
  if (names === undefined) {
    await host.makeDirectory(root);
    names = (await host.readDirectory(root)) ?? [];
  }
  const drivers = new Map<string, InstalledDriver>();
  const directories = [root];
  for (const name of names.filter(isVisible)) {
    const look = await lookAtDriver(host, root, name);
    directories.push(...look.directories);
    if (look.driver !== undefined) drivers.set(name, look.driver);
  }
  return { drivers, directories };
}

const isVisible = (name: string): boolean => !name.startsWith(".");

interface DriverLook {
  /** Undefined: no driver, or none yet. */
  readonly driver: InstalledDriver | undefined;
  readonly directories: readonly string[];
}

async function lookAtDriver(host: Host, root: string, name: string): Promise<DriverLook> {
  const directory = await followed(host, root, `${root}/${name}`);
  if (directory?.stat.kind !== "directory") return { driver: undefined, directories: [] };
  const { pluginName, executable: program } = namesOfDirectory(name);
  const executable = `${root}/${name}/${program}`;
  const found = { directories: [] as string[], entries: [] as string[] };
  try {
    await collect(host, directory.path, depthMax, found);
    const target = await followed(host, root, `${directory.path}/${program}`);
    const isThere = target !== undefined || (await host.stat(`${directory.path}/${program}`)) !== undefined;
    if (!isThere) return { driver: undefined, directories: found.directories };
    const problem = problemOfName(pluginName) ?? problemOfProgram(target?.stat);
    const fingerprint = [...found.entries, contentOf(target?.stat)].join("\n");
    return { driver: { pluginName, executable, fingerprint, problem }, directories: found.directories };
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    const problem = `its directory cannot be read (${error.code}): correct its mode and owner`;
    const driver = { pluginName, executable, fingerprint: error.code, problem };
    return { driver, directories: [directory.path] };
  }
}

function problemOfProgram(stat: FileStat | undefined): string | undefined {
  if (stat === undefined) return "its program is a link out of the driver directory: install the file itself";
  if (stat.kind !== "file") return "its program is not a file: install one";
  return (stat.mode & 0o111) === 0 ? "its program cannot be executed: make its mode 0755" : undefined;
}

const contentOf = (stat: FileStat | undefined): string =>
  stat === undefined ? "" : `${stat.inode} ${stat.version} ${stat.sizeBytes} ${stat.mode}`;

/** Directories and entries below a driver's directory. What an entry holds is not looked at: drivers may log there. */
async function collect(
  host: Host,
  directory: string,
  depth: number,
  found: { readonly directories: string[]; readonly entries: string[] },
): Promise<void> {
  found.directories.push(directory);
  for (const name of ((await host.readDirectory(directory)) ?? []).filter(isVisible)) {
    if (found.entries.length >= entriesMax) return;
    const path = `${directory}/${name}`;
    const stat = await host.stat(path);
    found.entries.push(`${path} ${stat?.inode}`);
    if (stat?.kind === "directory" && depth > 0) await collect(host, path, depth - 1, found);
  }
}

/** What a path leads to; undefined: nothing, or something that is not to be followed. */
async function followed(
  host: Host,
  root: string,
  path: string,
): Promise<{ readonly path: string; readonly stat: FileStat } | undefined> {
  const stat = await host.stat(path);
  if (stat?.kind !== "symlink") return stat === undefined ? undefined : { path, stat };
  const target = posix.resolve(posix.dirname(path), (await host.readLink(path)) ?? ".");
  if (!target.startsWith(`${root}/`)) return undefined;
  const parts = target.slice(root.length + 1).split("/");
  if (!parts.every(isVisible)) return undefined;
  // Of what is on the way nothing may be a link, nor may the target: else it could lead out.
  let at = root;
  for (const part of parts) {
    at = `${at}/${part}`;
    if ((await host.stat(at))?.kind === "symlink") return undefined;
  }
  const targetStat = await host.stat(target);
  return targetStat === undefined ? undefined : { path: target, stat: targetStat };
}
