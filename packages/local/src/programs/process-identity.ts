/**
 * Processes are known by pid and start time, since a pid alone may have been given to another
 * program by the time it is looked at. Real form only: reads the machine's process table.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { childEnvironment } from "./child-environment.ts";

/** A process, for good. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in a form that only needs to be compared. */
  readonly startedAt: string;
}

/** The identity of the process that has this pid now, or undefined when none (or only a zombie) has. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  if (process.platform !== "linux") return identifyByPs(pid);
  const fields = statFields(pid);
  const state = fields?.[0];
  const startedAt = fields?.[19];
  if (startedAt === undefined || state === "Z" || state === "X") return undefined;
  return { pid, startedAt: `${startedAt}@${bootId()}` };
}

/** The identity of this process. */
export function identifyThisProcess(): ProcessIdentity | undefined {
  return identifyProcess(process.pid);
}

let boot: string | undefined;

/** The kernel counts from its own start: after the machine was started again a time may be another process's. */
function bootId(): string {
  try {
    boot ??= readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    boot = "";
  }
  return boot;
}

/** True while that very process runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identifyProcess(identity.pid)?.startedAt === identity.startedAt;
}

/** How long the process has run, in milliseconds; undefined on machines other than Linux. */
export function processAgeMs({ startedAt }: ProcessIdentity): number | undefined {
  if (process.platform !== "linux") return undefined;
  const [upSeconds] = readFileSync("/proc/uptime", "utf8").split(" ");
  return Math.max(0, (Number(upSeconds) - Number(startedAt) / ticksPerSecond) * 1000);
}

/** Resolution of the times in /proc/PID/stat. Source: proc(5); the value of every Linux that Node runs on. */
const ticksPerSecond = 100;

/** Sends a signal to that very process (and, with `group`, to its process group); false when it is gone. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals, group = false): boolean {
  if (!isAlive(identity)) return false;
  try {
    process.kill(group ? -identity.pid : identity.pid, signal);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}

/** True while anything but zombies is in the process group. */
export function isGroupAlive(groupId: number): boolean {
  try {
    process.kill(-groupId, 0);
  } catch {
    return false;
  }
  if (process.platform !== "linux") return true;
  // A machine whose init takes its time keeps zombies, which do nothing any more.
  return readdirSync("/proc").some((name) => {
    if (!/^[0-9]+$/.test(name)) return false;
    const [state, , group] = statFields(Number(name)) ?? [];
    return group === String(groupId) && state !== "Z" && state !== "X";
  });
}

/** The fields of /proc/<pid>/stat from the state on. */
function statFields(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the command in parentheses and may itself hold blanks and parentheses.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}

function identifyByPs(pid: number): ProcessIdentity | undefined {
  try {
    const startedAt = execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], {
      encoding: "utf8",
      env: childEnvironment(),
    }).trim();
    return startedAt === "" ? undefined : { pid, startedAt };
  } catch {
    return undefined;
  }
}
