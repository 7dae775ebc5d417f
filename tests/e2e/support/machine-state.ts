/** What a test may leave behind on the machine, listed before and after. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Loop devices, mounts, sockets and processes that have to do with a directory. */
export interface MachineState {
  readonly loopDevices: readonly string[];
  readonly mounts: readonly string[];
  readonly sockets: readonly string[];
  readonly processes: readonly string[];
}

/** Everything on this machine that names `dir`. */
export function machineStateBelow(dir: string): MachineState {
  return {
    loopDevices: loopDevices(dir),
    mounts: mounts(dir),
    sockets: sockets(dir),
    processes: processes(dir),
  };
}

/** A machine that holds nothing of the directory. */
export const nothing: MachineState = { loopDevices: [], mounts: [], sockets: [], processes: [] };

function loopDevices(dir: string): string[] {
  if (process.platform !== "linux") return [];
  const text = execFileSync("losetup", ["--list", "--noheadings", "--output", "NAME,BACK-FILE"], {
    encoding: "utf8",
  });
  return text.split("\n").filter((line) => line.includes(dir));
}

function mounts(dir: string): string[] {
  if (process.platform !== "linux") return [];
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(` ${dir}`));
}

/** Unix sockets that a process listens on, by path. */
function sockets(dir: string): string[] {
  if (process.platform !== "linux") return [];
  const paths = readFileSync("/proc/net/unix", "utf8").matchAll(/ (\/.*)$/gm);
  return [...new Set([...paths].map(([, path]) => path ?? ""))].filter((path) => path.startsWith(dir)).sort();
}

function processes(dir: string): string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return [];
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      const cwd = readlinkSync(`/proc/${pid}/cwd`);
      return command.includes(dir) || cwd.startsWith(dir) ? [`${pid} ${command}`] : [];
    } catch {
      return []; // It has just ended.
    }
  });
}
