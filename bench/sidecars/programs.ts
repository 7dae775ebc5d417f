/** The programs that are measured: `longshore run sidecars` as it is built, the libraries alone, and the reference sidecars. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Running sidecars: one process, or several together. */
export interface Program {
  /** CPU time used so far, in milliseconds; the kernel counts in hundredths of a second. */
  cpuMs(): number;
  /** Memory of all its processes now, in MiB. */
  residentMb(): number;
  stop(): Promise<void>;
}

/** How sidecars are run. */
export interface Contender {
  readonly name: string;
  /** @param lifted without limits of requests, 100 workers each */
  start(at: { readonly kubeconfig: string; readonly socket: string }, lifted: boolean): Program;
}

/** Ours. @param attacherAlone only the attacher, as a process of its own */
export function ours(repository: string, attacherAlone: boolean): Contender {
  return {
    name: "longshore",
    start({ kubeconfig, socket }, lifted) {
      const program = join(repository, "packages/cli/bin/longshore.js");
      const flags = (process.env.LONGSHORE_BENCH_NODE_FLAGS ?? "").split(" ").filter(Boolean);
      const verb = attacherAlone ? "attacher" : "sidecars";
      const allWorkers = ["--worker-threads=100", ...(attacherAlone ? [] : ["--workers=100"])];
      const workers = lifted ? allWorkers : [];
      const args = ["run", verb, `--kubeconfig=${kubeconfig}`, `--csi-address=${socket}`, ...workers];
      const log = process.env.LONGSHORE_BENCH_LOG === undefined ? "ignore" : "inherit";
      return together([
        spawn(process.execPath, [...flags, program, ...args], { stdio: ["ignore", log, log] }),
      ]);
    },
  };
}

/** The libraries alone, see `bare.ts`. */
export const bare: Contender = {
  name: "libraries alone",
  start({ kubeconfig, socket }) {
    const script = fileURLToPath(new URL("./bare.mjs", import.meta.url));
    const args = [`--kubeconfig=${kubeconfig}`, `--csi-address=${socket}`];
    return together([
      spawn(process.execPath, [script, ...args], { stdio: ["ignore", "inherit", "inherit"] }),
    ]);
  },
};

const referencePrograms = {
  "csi-attacher": "--worker-threads=100",
  "csi-provisioner": "--worker-threads=100",
  "csi-resizer": "--workers=100",
} as const;

/** Those of the reference, from a directory with its binaries. @param attacherAlone only that */
export function reference(directory: string, attacherAlone: boolean): Contender {
  return {
    name: "reference",
    start({ kubeconfig, socket }, lifted) {
      const limits = lifted ? ["--kube-api-qps=10000", "--kube-api-burst=10000"] : [];
      return together(
        Object.entries(referencePrograms)
          .filter(
            ([name]) => existsSync(join(directory, name)) && (!attacherAlone || name === "csi-attacher"),
          )
          .map(([name, workers]) =>
            spawn(
              join(directory, name),
              [
                `--kubeconfig=${kubeconfig}`,
                `--csi-address=${socket}`,
                ...limits,
                ...(lifted ? [workers] : []),
              ],
              { stdio: "ignore" },
            ),
          ),
      );
    },
  };
}

function together(children: readonly ChildProcess[]): Program {
  const pids = children.map(({ pid }) => pid as number);
  return {
    cpuMs: () => sum(pids.map(cpuMsOf)),
    residentMb: () => sum(pids.map(residentMbOf)),
    async stop() {
      for (const child of children) {
        if (child.exitCode !== null || child.signalCode !== null) {
          throw new Error(`a sidecar ended by itself with ${child.exitCode ?? child.signalCode}`);
        }
        child.kill("SIGTERM");
        await once(child, "exit");
      }
    },
  };
}

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

function residentMbOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
}

/** CPU time that a process has used, in milliseconds; the kernel counts in hundredths of a second. */
export function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Whether the directory has binaries of the reference. */
export function hasReference(directory: string | undefined): directory is string {
  return directory !== undefined && readdirSync(directory).some((name) => name in referencePrograms);
}
