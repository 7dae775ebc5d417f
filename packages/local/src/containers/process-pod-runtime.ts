/**
 * Runs each container as a child process below a shim, in a mount namespace and root of its own where the
 * machine permits it (root on Linux); elsewhere the container gets its volumes' paths in the
 * environment. Real form of {@link PodRuntime}.
 *
 * State lies in `<stateDir>/<podUID>/<container>/`: `sandbox.json` (what was asked), `state.json` (pids with
 * start times), `exit.json` (how it ended). A new node agent reads it and goes on.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Clock, Host } from "@longshore/runtime";
import { childEnvironment } from "../programs/child-environment.ts";
import { isAlive, type ProcessIdentity, signalProcess } from "../programs/process-identity.ts";
import { startExec } from "./container-exec.ts";
import { inputName, openContainerInput } from "./container-input.ts";
import { processUser } from "./container-user.ts";
import {
  type AttachRequest,
  type ContainerConfig,
  type ContainerInput,
  type ContainerState,
  type ExecProcess,
  type ExecRequest,
  type NodeUser,
  notRunning,
  type PodRuntime,
  withoutPast,
} from "./pod-runtime.ts";
import type { ExitRecord, ShimFile } from "./pod-shim.ts";
import { terminalFileText } from "./terminal.ts";

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
  /** The shim has taken the container for itself and makes its root; the container has not begun. */
  readonly starting?: true;
  /** Absent when the container had ended before it could be looked at. */
  readonly container?: ProcessIdentity;
  /** When the container began, ISO 8601. */
  readonly startedAt?: string;
}

const pollMs = 20;
const startTimeoutMs = 20_000;

/** Makes the runtime; does nothing until it is asked to. */
export function createProcessPodRuntime(
  env: ProcessPodRuntimeEnv,
  options: ProcessPodRuntimeOptions,
): PodRuntime {
  return new ProcessPodRuntime(env, options);
}

class ProcessPodRuntime implements PodRuntime {
  readonly user: NodeUser;
  readonly #clock: Clock;
  readonly #host: Host;
  readonly #stateDir: string;
  readonly #isIsolated: boolean;

  constructor({ clock, host }: ProcessPodRuntimeEnv, { stateDir }: ProcessPodRuntimeOptions) {
    this.#clock = clock;
    this.#host = host;
    this.#stateDir = stateDir;
    this.#isIsolated = host.form === "kernel";
    // Where the kernel lets it mount it is root.
    this.user = { ...processUser(), mayChange: this.#isIsolated };
  }

  async startContainer(config: ContainerConfig, signal: AbortSignal): Promise<void> {
    const dir = `${this.#stateDir}/${config.podUID}/${config.containerName}`;
    const before = await this.#stateOf(dir);
    if (before !== undefined && before.attempt >= config.attempt) return;
    await this.#host.makeDirectory(dir);
    // A shim of an earlier agent, or of an earlier attempt, may be about to start the container.
    if (!(await this.#isStarting(dir))) {
      if (before?.kind === "ended") {
        // This one first: a crash before the other leaves the container ended, with its exit code.
        await this.#host.removeFile(`${dir}/state.json`);
        await this.#host.removeFile(`${dir}/exit.json`);
      }
      const isolated = this.#isIsolated && config.mountsOnNode !== true;
      const file: ShimFile = {
        config,
        isolated,
        ...(before?.kind === "ended" ? { previous: withoutPast(before) } : {}),
      };
      await this.#host.writeFileAtomic(`${dir}/sandbox.json`, JSON.stringify(file));
      spawnShim(isolated, `${dir}/sandbox.json`);
    }
    const started = async () => (await this.#stateOf(dir)) !== undefined;
    if (!(await this.#waitFor(started, startTimeoutMs, signal))) {
      const { namespace, podName, containerName } = config;
      throw new Error(`pod ${namespace}/${podName}: its container "${containerName}" did not start`);
    }
  }

  async state(podUID: string): Promise<ReadonlyMap<string, ContainerState>> {
    const states = new Map<string, ContainerState>();
    for (const name of await this.#containersOf(podUID)) {
      const state = await this.#stateOf(`${this.#stateDir}/${podUID}/${name}`);
      if (state !== undefined) states.set(name, state);
    }
    return states;
  }

  async stopContainer(
    podUID: string,
    containerName: string,
    graceMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#end(`${this.#stateDir}/${podUID}/${containerName}`, graceMs, signal);
  }

  async terminate(podUID: string, graceMs: number, signal: AbortSignal): Promise<void> {
    const dirs = (await this.#containersOf(podUID)).map((name) => `${this.#stateDir}/${podUID}/${name}`);
    // No shim that has not yet begun will begin now; one that has, comes to its container, or not.
    for (const dir of dirs) await this.#host.removeFile(`${dir}/sandbox.json`);
    await Promise.all(dirs.map((dir) => this.#end(dir, graceMs, signal)));
    await this.#host.removeTree(`${this.#stateDir}/${podUID}`);
  }

  async exec(request: ExecRequest): Promise<ExecProcess> {
    const dir = `${this.#stateDir}/${request.podUID}/${request.containerName}`;
    const { container } = (await this.#read<ShimState>(dir, "state.json")) ?? {};
    const file = await this.#read<ShimFile>(dir, "sandbox.json");
    if (container === undefined || file === undefined || !isAlive(container)) throw notRunning(request);
    const terminal = `${dir}/terminal`;
    if (request.tty === true) await this.#host.writeFileAtomic(terminal, terminalFileText(), { mode: 0o700 });
    return startExec(file, container, request, terminal);
  }

  async attachInput({ podUID, containerName, signal }: AttachRequest): Promise<ContainerInput | undefined> {
    return openContainerInput(`${this.#stateDir}/${podUID}/${containerName}/${inputName}`, signal);
  }

  async list(): Promise<readonly string[]> {
    return (await this.#host.readDirectory(this.#stateDir)) ?? [];
  }

  async podsWithRunningContainers(): Promise<ReadonlySet<string>> {
    const running = new Set<string>();
    for (const podUID of await this.list()) {
      for (const name of await this.#containersOf(podUID)) {
        // A container that was asked to start counts from then on: its shim may be binding its volumes already.
        const state = await this.#stateOf(`${this.#stateDir}/${podUID}/${name}`);
        if (state?.kind !== "ended") running.add(podUID);
      }
    }
    return running;
  }

  async #containersOf(podUID: string): Promise<readonly string[]> {
    return (await this.#host.readDirectory(`${this.#stateDir}/${podUID}`)) ?? [];
  }

  async #read<T>(dir: string, name: string): Promise<T | undefined> {
    const text = await this.#host.readFile(`${dir}/${name}`);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  async #stateOf(dir: string): Promise<ContainerState | undefined> {
    const shim = await this.#read<ShimState>(dir, "state.json");
    // Before the record of the end, which belongs to the run that the file asks for.
    const file = await this.#read<ShimFile>(dir, "sandbox.json");
    if (shim === undefined && file === undefined) return undefined;
    // An agent that was killed while it ended the pod has taken the file away.
    const { attempt, quickRestarts } = file?.config ?? { attempt: 0, quickRestarts: 0 };
    const previous = file?.previous === undefined ? {} : { previous: file.previous };
    const startedAt = shim?.startedAt ?? this.#clock.now().toISOString();
    const run = { attempt, quickRestarts, startedAt, ...previous };
    if (shim?.container !== undefined && isAlive(shim.container)) return { kind: "running", ...run };
    // Looked at before the record, which a shim writes as the last thing it does.
    const hasShim = shim !== undefined && isAlive(shim.shim);
    const exit = await this.#read<ExitRecord>(dir, "exit.json");
    if (exit !== undefined) return { kind: "ended", ...run, ...exit };
    if (shim === undefined || (hasShim && shim.starting === true)) return undefined;
    // A live shim is about to write how the container ended. Without a shim the exit code is lost: 255.
    if (hasShim) return { kind: "running", ...run };
    return { kind: "ended", ...run, exitCode: 255, finishedAt: startedAt };
  }

  async #isStarting(dir: string): Promise<boolean> {
    const shim = await this.#read<ShimState>(dir, "state.json");
    return shim?.starting === true && isAlive(shim.shim);
  }

  async #waitFor(holds: () => Promise<boolean>, limitMs: number, signal: AbortSignal): Promise<boolean> {
    const untilMs = this.#clock.monotonicMs() + limitMs;
    while (!(await holds())) {
      if (this.#clock.monotonicMs() > untilMs) return false;
      await this.#clock.sleep(pollMs, signal);
    }
    return true;
  }

  /** Ends the container's processes; its records stay. */
  async #end(dir: string, graceMs: number, signal: AbortSignal): Promise<void> {
    const begun = async () => !(await this.#isStarting(dir));
    if (!(await this.#waitFor(begun, startTimeoutMs, signal))) {
      throw new Error(`container in ${dir}: the making of its root does not end`);
    }
    const shim = await this.#read<ShimState>(dir, "state.json");
    if (shim === undefined) return;
    const { container } = shim;
    const processes = container === undefined ? [shim.shim] : [container, shim.shim];
    const gone = async () => !processes.some(isAlive);
    // As with any container, only its first process is asked; the others end with it, by its shim.
    const hasShim = isAlive(shim.shim);
    const asked = container !== undefined && signalProcess(container, "SIGTERM");
    if (!(await this.#waitFor(gone, graceMs, signal))) {
      if (container !== undefined) signalProcess(container, "SIGKILL", true);
      // The shim records how the container has ended; where it does not, it ends too.
      if (!(await this.#waitFor(gone, recordTimeoutMs, signal))) signalProcess(shim.shim, "SIGKILL");
      if (!(await this.#waitFor(gone, startTimeoutMs, signal))) {
        throw new Error(
          `container in ${dir}: its processes ${processes.map((p) => p.pid).join(", ")} do not end`,
        );
      }
    }
    if (asked && !hasShim) endGroup(container);
  }
}

/** How long a shim may take to record the end of a container that was killed, in milliseconds. */
const recordTimeoutMs = 1000;

/** Ends what a container without a shim has left behind. */
function endGroup(container: ProcessIdentity): void {
  try {
    process.kill(-container.pid, "SIGKILL");
  } catch {
    // Nothing was left.
  }
}

/** Starts the shim so that it outlives this process; its own failures show as a container that does not start. */
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
