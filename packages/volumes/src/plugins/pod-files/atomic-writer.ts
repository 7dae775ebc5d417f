/**
 * Writes the files of a volume so that a reader sees all of the old ones or all of the new ones.
 * Source: docs/behaviour/pod-volumes.md 4; upstream pkg/volume/util/atomic_writer.go.
 *
 *     settings.yaml -> ..data/settings.yaml        what containers open
 *     ..data        -> ..2026_11_23_18_00_00.12    the files in force; replaced by one rename
 *     ..2026_11_23_18_00_00.12/settings.yaml
 *
 * Invariants
 *  - A file below `..data` never changes: other content is in another directory.
 *  - After a crash at any step the files in force are the old or the new ones, and the next write removes what is left over.
 *  - Nothing is written outside the volume's directory: no path is absolute or has `..` in it.
 */
import { type Clock, type Host, invariant, type Random } from "@longshore/runtime";
import { type Payload, PayloadError, type PayloadFile } from "./payload.ts";

/** What the writer works with. */
export interface AtomicWriterEnv {
  readonly clock: Clock;
  readonly random: Random;
  readonly host: Host;
}

/** Where and for which group it writes. */
export interface AtomicWrite {
  /** The volume's directory, which is there. */
  readonly directory: string;
  readonly payload: Payload;
  /** The group that the files are given to, before they come into force. */
  readonly fsGroup: number | undefined;
}

const dataLink = "..data";
const nextDataLink = "..data_tmp";
/** What giving a file to a group adds. Source: docs/behaviour/volume-plugins.md 6. */
const groupReads = 0o440;
const pathMax = 4096;
const nameMax = 255;
/** Of the directories with files; containers of any user read them. */
const directoryMode = 0o755;

/** Brings the files of the directory to the payload. Does nothing where they are that already. @throws PayloadError for a path that may not be */
export async function writeFiles(env: AtomicWriterEnv, write: AtomicWrite): Promise<void> {
  const { host } = env;
  const { directory, payload } = write;
  for (const path of payload.keys()) requireInside(path);
  const current = await host.readLink(`${directory}/${dataLink}`);
  if (current === undefined || !(await holds(host, `${directory}/${current}`, write))) {
    await replace(env, write);
  }
  await showFiles(host, directory, payload);
  await removeLeftovers(host, directory, payload);
}

/** Names the files that are in force: others have another name. */
export function contentInForce(host: Host, directory: string): Promise<string | undefined> {
  return host.readLink(`${directory}/${dataLink}`);
}

/** Why a path may not be that of a file, and when. */
const refusals: readonly (readonly [
  why: string,
  when: (path: string, names: readonly string[]) => boolean,
])[] = [
  ["must be relative", (path) => path.startsWith("/")],
  ['must not contain ".."', (_path, names) => names.includes("..")],
  ['must not start with ".."', (path) => path.startsWith("..")],
  ["must have no empty name in it", (_path, names) => names.some((name) => name === "" || name === ".")],
  ["must have no NUL in it", (path) => path.includes("\0")],
  ["is too long", (path, names) => path.length > pathMax || names.some(({ length }) => length > nameMax)],
];

/** @throws PayloadError for a path that leads out of the volume, or into the writer's own names */
function requireInside(path: string): void {
  const names = path.split("/");
  const refusal = refusals.find(([, when]) => when(path, names));
  if (refusal !== undefined) throw new PayloadError(`path "${path}" of a volume's file ${refusal[0]}`);
}

/** Whether the directory holds exactly these files. Bytes that are no text count as others: they cannot be compared. */
async function holds(host: Host, directory: string, { payload, fsGroup }: AtomicWrite): Promise<boolean> {
  const present = await filesBelow(host, directory);
  if (present.length !== payload.size) return false;
  for (const path of present) {
    const file = payload.get(path);
    if (file === undefined || !(await isSame(host, `${directory}/${path}`, file, fsGroup))) return false;
  }
  return true;
}

async function isSame(
  host: Host,
  path: string,
  { data, mode }: PayloadFile,
  fsGroup: number | undefined,
): Promise<boolean> {
  const stat = await host.stat(path);
  // Where the host may change groups, the group may read as well.
  const modes = fsGroup === undefined ? [mode] : [mode, mode | groupReads];
  if (stat?.kind !== "file" || !modes.includes(stat.mode)) return false;
  return typeof data === "string" && (await host.readFile(path)) === data;
}

async function filesBelow(host: Host, directory: string, prefix = ""): Promise<readonly string[]> {
  const found: string[] = [];
  for (const name of (await host.readDirectory(`${directory}${prefix}`)) ?? []) {
    const path = `${prefix}/${name}`;
    const stat = await host.stat(`${directory}${path}`);
    if (stat?.kind === "directory") found.push(...(await filesBelow(host, directory, path)));
    else found.push(path.slice(1));
  }
  return found;
}

async function replace(env: AtomicWriterEnv, { directory, payload, fsGroup }: AtomicWrite): Promise<void> {
  const { host } = env;
  const name = await freeName(env, directory);
  await host.makeDirectory(`${directory}/${name}`, directoryMode);
  for (const [path, { data, mode }] of payload) {
    const slash = path.lastIndexOf("/");
    if (slash > 0) await host.makeDirectory(`${directory}/${name}/${path.slice(0, slash)}`, directoryMode);
    await host.writeFileAtomic(`${directory}/${name}/${path}`, data, { mode });
  }
  if (fsGroup !== undefined) await host.chownTree(`${directory}/${name}`, fsGroup, { readOnly: true });
  await host.removeFile(`${directory}/${nextDataLink}`);
  await host.symlink(name, `${directory}/${nextDataLink}`);
  await host.rename(`${directory}/${nextDataLink}`, `${directory}/${dataLink}`);
}

/** `..YYYY_MM_DD_hh_mm_ss.N`, a name that is not taken. */
async function freeName({ clock, random, host }: AtomicWriterEnv, directory: string): Promise<string> {
  const seconds = clock.now().toISOString().slice(0, 19).replaceAll(/[-T:]/g, "_");
  for (let attempt = 0; attempt < 100; attempt++) {
    const name = `..${seconds}.${random.below(2 ** 31, "name of a volume's files")}`;
    if ((await host.stat(`${directory}/${name}`)) === undefined) return name;
  }
  invariant(false, `${directory} has no free name`);
}

/** The links under which containers find the files: one for each first name. */
async function showFiles(host: Host, directory: string, payload: Payload): Promise<void> {
  for (const name of firstNames(payload)) {
    if ((await host.stat(`${directory}/${name}`)) === undefined) {
      await host.symlink(`${dataLink}/${name}`, `${directory}/${name}`);
    }
  }
}

/** Links of files that are not any more, and directories that no reader can be sent to. */
async function removeLeftovers(host: Host, directory: string, payload: Payload): Promise<void> {
  const shown = firstNames(payload);
  const current = await host.readLink(`${directory}/${dataLink}`);
  for (const name of (await host.readDirectory(directory)) ?? []) {
    if (shown.has(name) || name === dataLink || name === current) continue;
    const path = `${directory}/${name}`;
    const stat = await host.stat(path);
    if (stat?.kind === "directory") await host.removeTree(path);
    else await host.removeFile(path);
  }
}

function firstNames(payload: Payload): ReadonlySet<string> {
  return new Set([...payload.keys()].map((path) => path.split("/", 1)[0] ?? path));
}
