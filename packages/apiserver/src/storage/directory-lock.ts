/**
 * Keeps two servers from one directory: a lock file that names its process by id and start time,
 * so that the lock of a killed process is known to be void even when its id is in use again.
 */
import { linkSync, readFileSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StoreError } from "./store.ts";

/** Takes the lock and gives the way to release it. @throws StoreError when a living process holds it */
export function takeDirectoryLock(directory: string): () => void {
  const lock = join(directory, "lock");
  const own = `${lock}.${process.pid}`;
  const content = `${process.pid} ${startTimeOf(process.pid) ?? ""}`;
  writeFileSync(own, content, { mode: 0o600 });
  try {
    for (let attempt = 0; attempt < 5; attempt++) {
      try {
        linkSync(own, lock);
        return () => {
          if (readText(lock) === content) unlinkSync(lock);
        };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
      const holder = readText(lock);
      if (holder === undefined) continue;
      const [pid = "", started = ""] = holder.split(" ");
      if (holder === content || isAlive(Number(pid), started)) {
        throw new StoreError(
          `the data directory ${directory} is in use by process ${pid}: stop that process or choose another directory`,
        );
      }
      // Moved away first, so that of two who find it void only one removes it.
      const voided = `${lock}.void.${process.pid}`;
      renameSync(lock, voided);
      unlinkSync(voided);
    }
  } finally {
    unlinkSync(own);
  }
  throw new StoreError(`the lock of the data directory ${directory} cannot be taken: remove ${lock}`);
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function isAlive(pid: number, started: string): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
  }
  const now = startTimeOf(pid);
  return now === undefined || started === "" || now === started;
}

/** Start of a process in clock ticks since boot (field 22 of its stat); undefined where there is no /proc. */
function startTimeOf(pid: number): string | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}
