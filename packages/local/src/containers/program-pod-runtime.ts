/**
 * Runs containers as programs inside this process: the form for the in-process cluster, for scenario
 * tests and for simulation. A program is a function, found by the container's first argument; it
 * sees its volumes through the node's Host. Like real pods, these outlive the node agent.
 */
import { type Clock, StoppedError } from "@longshore/runtime";
import {
  type ContainerConfig,
  type ContainerState,
  expandVariables,
  mountVariable,
  notRunning,
  type PodRuntime,
  withoutPast,
} from "./pod-runtime.ts";

/** A program: runs until it is done or `signal` aborts; returns its exit code. */
export type Program = (run: ProgramRun) => Promise<number>;

/** What a program is given. */
export interface ProgramRun {
  readonly sandbox: ContainerConfig;
  readonly args: readonly string[];
  /** Directory of a volume on the node. */
  readonly env: Readonly<Record<string, string>>;
  /** Aborts when the container has to end. */
  readonly signal: AbortSignal;
}

interface Running {
  readonly config: ContainerConfig;
  readonly controller: AbortController;
  readonly done: Promise<void>;
  state: ContainerState;
}

/** The pods of one node. Keep one per node for as long as the node is powered. */
export function createProgramPodRuntime(
  clock: Pick<Clock, "now">,
  programs: Readonly<Record<string, Program>>,
): PodRuntime & {
  /** Power loss: every program is dropped where it is. */
  losePower(): void;
} {
  const pods = new Map<string, Map<string, Running>>();
  const listeners = new Set<(podUID: string) => void>();

  const start = (config: ContainerConfig, before: Running | undefined): Running => {
    const controller = new AbortController();
    const { attempt, quickRestarts } = config;
    const previous = before?.state.kind === "ended" ? before.state : undefined;
    const run = {
      attempt,
      quickRestarts,
      startedAt: clock.now().toISOString(),
      ...(previous === undefined ? {} : { previous: withoutPast(previous) }),
    };
    const running: Running = {
      config,
      controller,
      state: { kind: "running", ...run },
      done: runProgram(programs, config, config.argv, controller.signal).then((exitCode) => {
        running.state = { kind: "ended", ...run, exitCode, finishedAt: clock.now().toISOString() };
        for (const listener of listeners) listener(config.podUID);
      }),
    };
    return running;
  };
  const end = async (running: Running | undefined) => {
    running?.controller.abort(new StoppedError());
    await running?.done;
  };

  return {
    // Programs of this process have no user of their own.
    user: { uid: 0, gid: 0, mayChange: true },
    async startContainer(config) {
      const containers = pods.get(config.podUID) ?? new Map<string, Running>();
      pods.set(config.podUID, containers);
      const before = containers.get(config.containerName);
      if (before !== undefined && before.state.attempt >= config.attempt) return;
      containers.set(config.containerName, start(config, before));
    },
    async state(podUID) {
      return new Map([...(pods.get(podUID) ?? [])].map(([name, { state }]) => [name, state]));
    },
    async stopContainer(podUID, containerName) {
      await end(pods.get(podUID)?.get(containerName));
    },
    async terminate(podUID) {
      await Promise.all([...(pods.get(podUID)?.values() ?? [])].map(end));
      pods.delete(podUID);
    },
    async exec(request) {
      const running = pods.get(request.podUID)?.get(request.containerName);
      if (running?.state.kind !== "running") throw notRunning(request);
      return {
        async write() {},
        endInput() {},
        stdout: nothing(),
        stderr: nothing(),
        exitCode: runProgram(programs, running.config, request.argv, request.signal),
      };
    },
    async attachInput() {
      return undefined;
    },
    onEnd(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async list() {
      return [...pods.keys()];
    },
    async podsWithRunningContainers() {
      const runs = (containers: Map<string, Running>) =>
        [...containers.values()].some(({ state }) => state.kind === "running");
      return new Set([...pods].filter(([, containers]) => runs(containers)).map(([uid]) => uid));
    },
    losePower() {
      for (const containers of pods.values()) {
        for (const { controller } of containers.values()) controller.abort(new StoppedError());
      }
      pods.clear();
    },
  };
}

async function runProgram(
  programs: Readonly<Record<string, Program>>,
  config: ContainerConfig,
  argv: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const env: Record<string, string> = {};
  for (const mount of config.mounts) env[mountVariable(mount.volumeName)] = mount.hostPath;
  Object.assign(env, config.env);
  const [name = "", ...args] = argv.map((part) => expandVariables(part, env));
  const program = programs[name] ?? (async () => 127);
  try {
    return await program({ sandbox: config, args, env, signal });
  } catch {
    return signal.aborted ? 143 : 1;
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
