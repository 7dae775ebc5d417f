/**
 * Runs each pod as a child process below a shim, in a mount namespace and root of its own where the
 * machine permits it (root on Linux); elsewhere the container gets its volumes' paths in the
 * environment. Real form of {@link PodRuntime}.
 *
 * State lies in `<stateDir>/<podUID>/`: `sandbox.json` (what was asked), `state.json` (pids with
 * start times), `exit.json` (how it ended). A new node agent reads it and goes on.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Clock, Host } from "@longshore/runtime";
import { childEnvironment } from "../programs/child-environment.ts";
import { isAlive, type ProcessIdentity, signalProcess } from "../programs/process-identity.ts";
import type { PodRuntime, PodSandbox, PodState } from "./pod-runtime.ts";
import type { ShimFile } from "./pod-shim.ts";

/** What the runtime needs. */
export interface ProcessPodRuntimeEnv {
  readonly clock: Clock;
  readonly host: Host;
}

/** Options of {@link createProcessPodRuntime}. */
export interface ProcessPodRuntimeOptions {
  /** Directory of the pods' state; made when missing. */
  readonly stateDir: string;
}

interface ShimState {
  readonly shim: ProcessIdentity;
  /** The shim has taken the pod for itself and makes its root; the container has not begun. */
  readonly starting?: true;
  /** Absent when the container had ended before it could be looked at. */
  readonly container?: ProcessIdentity;
}

const pollMs = 20;
const startTimeoutMs = 20_000;

/** Makes the runtime; does nothing until it is asked to. */
export function createProcessPodRuntime(
  env: ProcessPodRuntimeEnv,
  options: ProcessPodRuntimeOptions,
): PodRuntime {
  const { clock, host } = env;
  const dirOf = (podUID: string) => `${options.stateDir}/${podUID}`;
  const isolated = host.form === "kernel";

  const readRecord = async <T>(podUID: string, name: string): Promise<T | undefined> => {
    const text = await host.readFile(`${dirOf(podUID)}/${name}`);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  };

  const state = async (podUID: string): Promise<PodState> => {
    const shim = await readRecord<ShimState>(podUID, "state.json");
    if (shim?.container !== undefined && isAlive(shim.container)) return { kind: "running" };
    // Looked at before the record, which a shim writes as the last thing it does.
    const hasShim = shim !== undefined && isAlive(shim.shim);
    const exit = await readRecord<{ exitCode: number }>(podUID, "exit.json");
    if (exit !== undefined) return { kind: "ended", exitCode: exit.exitCode };
    if (shim === undefined || (hasShim && shim.starting === true)) return { kind: "absent" };
    // A live shim is about to write how the container ended. Without a shim the exit code is lost: 255.
    return hasShim ? { kind: "running" } : { kind: "ended", exitCode: 255 };
  };

  const isStarting = async (podUID: string): Promise<boolean> => {
    const shim = await readRecord<ShimState>(podUID, "state.json");
    return shim?.starting === true && isAlive(shim.shim);
  };

  const waitFor = async (holds: () => Promise<boolean>, limitMs: number, signal: AbortSignal) => {
    const untilMs = clock.monotonicMs() + limitMs;
    while (!(await holds())) {
      if (clock.monotonicMs() > untilMs) return false;
      await clock.sleep(pollMs, signal);
    }
    return true;
  };

  return {
    async ensureRunning(sandbox: PodSandbox, signal: AbortSignal): Promise<void> {
      if ((await state(sandbox.podUID)).kind === "running") return;
      const dir = dirOf(sandbox.podUID);
      const file: ShimFile = { sandbox, isolated };
      await host.makeDirectory(dir);
      // A shim of an earlier agent, or of an earlier attempt, may be about to start the container.
      if (!(await isStarting(sandbox.podUID))) {
        if ((await state(sandbox.podUID)).kind === "ended") {
          // This one first: a crash before the other leaves the pod ended, with its exit code.
          await host.removeFile(`${dir}/state.json`);
          await host.removeFile(`${dir}/exit.json`);
        }
        await host.writeFileAtomic(`${dir}/sandbox.json`, JSON.stringify(file));
        spawnShim(isolated, `${dir}/sandbox.json`);
      }
      const started = async () => (await state(sandbox.podUID)).kind !== "absent";
      if (!(await waitFor(started, startTimeoutMs, signal))) {
        throw new Error(`pod ${sandbox.namespace}/${sandbox.podName}: its container did not start`);
      }
    },

    state,

    async terminate(podUID: string, graceMs: number, signal: AbortSignal): Promise<void> {
      // No shim that has not yet begun will begin now; one that has, comes to its container, or not.
      await host.removeFile(`${dirOf(podUID)}/sandbox.json`);
      const begun = async () => !(await isStarting(podUID));
      if (!(await waitFor(begun, startTimeoutMs, signal))) {
        throw new Error(`pod ${podUID}: the making of its root does not end`);
      }
      const shim = await readRecord<ShimState>(podUID, "state.json");
      if (shim !== undefined) {
        const { container } = shim;
        const processes = container === undefined ? [shim.shim] : [container, shim.shim];
        const gone = async () => !processes.some(isAlive);
        // As with any container, only its first process is asked; the others end with it, by its shim.
        const hasShim = isAlive(shim.shim);
        const asked = container !== undefined && signalProcess(container, "SIGTERM");
        if (!(await waitFor(gone, graceMs, signal))) {
          if (container !== undefined) signalProcess(container, "SIGKILL", true);
          signalProcess(shim.shim, "SIGKILL");
          if (!(await waitFor(gone, startTimeoutMs, signal))) {
            throw new Error(
              `pod ${podUID}: its processes ${processes.map((p) => p.pid).join(", ")} do not end`,
            );
          }
        }
        if (asked && !hasShim) endGroup(container);
      }
      await host.removeTree(dirOf(podUID));
    },

    async list(): Promise<readonly string[]> {
      return (await host.readDirectory(options.stateDir)) ?? [];
    },

    async podsWithRunningContainers(): Promise<ReadonlySet<string>> {
      const running = new Set<string>();
      for (const podUID of (await host.readDirectory(options.stateDir)) ?? []) {
        // A pod that was asked to start counts from then on: its shim may be binding its volumes already.
        if ((await state(podUID)).kind !== "ended") running.add(podUID);
      }
      return running;
    },
  };
}

/** Ends what a container without a shim has left behind. */
function endGroup(container: ProcessIdentity): void {
  try {
    process.kill(-container.pid, "SIGKILL");
  } catch {
    // Nothing was left.
  }
}

/** Starts the shim so that it outlives this process; its own failures show as a pod that does not start. */
function spawnShim(isolated: boolean, sandboxFile: string): void {
  const shim = fileURLToPath(new URL("./pod-shim.js", import.meta.url));
  const command = [process.execPath, shim, sandboxFile];
  // Slave, so that what the node unmounts later is let go here too (a private namespace would
  // keep other pods' file systems, and with them their loop devices, alive).
  const argv = isolated ? ["unshare", "--mount", "--propagation", "slave", ...command] : command;
  const [program = "", ...args] = argv;
  const child = spawn(program, args, {
    env: childEnvironment(),
    detached: true,
    stdio: "ignore",
    cwd: "/",
  });
  child.on("error", () => {});
  child.unref();
}
