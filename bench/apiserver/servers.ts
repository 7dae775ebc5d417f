/** The servers that are measured: ours as a user starts it, and the real pair. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { startControlPlane } from "../../tests/kubernetes/support/control-plane.ts";
import type { Target } from "./raw-http.ts";

/** A running server. */
export interface Server {
  readonly name: string;
  readonly target: Target;
  /** From the start of the process until it was ready. */
  readonly readyMs: number;
  /** Memory of its processes now, in MiB. */
  residentMb(): number;
  /** The most memory that its processes have had, in MiB. */
  peakMb(): number;
  /** CPU time that its processes have used, in milliseconds. */
  cpuMs(): number;
  stop(): Promise<void>;
}

/** Starts `longshore run apiserver` with an empty data directory, or with one that is there. */
export async function startOurs(repository: string, dataDir?: string): Promise<Server> {
  const own = mkdtempSync(join(tmpdir(), "longshore-bench-"));
  const kubeconfig = join(own, "kubeconfig");
  const program = join(repository, "packages/cli/bin/longshore.js");
  const flags = (process.env.LONGSHORE_BENCH_NODE_FLAGS ?? "").split(" ").filter(Boolean);
  const begun = performance.now();
  const child = spawn(
    process.execPath,
    [
      ...flags,
      program,
      "run",
      "apiserver",
      "--data-dir",
      dataDir ?? join(own, "data"),
      "--secure-port",
      "0",
      "--kubeconfig-out",
      kubeconfig,
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  await untilServing(child);
  const readyMs = performance.now() - begun;
  const config = JSON.parse(readFileSync(kubeconfig, "utf8"));
  const { server, "certificate-authority-data": ca } = config.clusters[0].cluster;
  const url = new URL(server);
  return {
    name: "longshore",
    readyMs,
    target: {
      host: url.hostname,
      port: Number(url.port),
      ca: Buffer.from(ca, "base64").toString(),
      token: config.users[0].user.token,
    },
    residentMb: () => memoryMbOf(child.pid as number, "VmRSS"),
    peakMb: () => memoryMbOf(child.pid as number, "VmHWM"),
    cpuMs: () => cpuMsOf(child.pid as number),
    async stop() {
      if (child.exitCode === null) {
        child.kill("SIGTERM");
        await once(child, "exit");
      }
      rmSync(own, { recursive: true });
    },
  };
}

async function untilServing(child: ChildProcess): Promise<void> {
  let said = "";
  for await (const text of child.stdout ?? []) {
    said += text;
    if (said.includes("serving at")) {
      child.stdout?.on("data", () => {});
      return;
    }
  }
  throw new Error(`longshore run apiserver ended before it served: ${said}`);
}

/** Starts etcd and kube-apiserver from `KUBEBUILDER_ASSETS`. */
export async function startReal(): Promise<Server> {
  const begun = performance.now();
  const plane = await startControlPlane();
  const readyMs = performance.now() - begun;
  const url = new URL(plane.url);
  const pids = pidsOf(plane.directory);
  return {
    name: "kube-apiserver and etcd",
    readyMs,
    target: {
      host: url.hostname,
      port: Number(url.port),
      ca: readFileSync(plane.caPath, "utf8"),
      token: plane.adminToken,
    },
    residentMb: () => pids.reduce((sum, pid) => sum + memoryMbOf(pid, "VmRSS"), 0),
    peakMb: () => pids.reduce((sum, pid) => sum + memoryMbOf(pid, "VmHWM"), 0),
    cpuMs: () => pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0),
    stop: () => plane.stop(),
  };
}

/** The processes whose arguments name `directory`. */
function pidsOf(directory: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(directory);
      } catch {
        return false; // It has ended meanwhile.
      }
    });
}

function memoryMbOf(pid: number, field: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024;
}

/** User and system time; the kernel counts them in hundredths of a second. */
function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
