/**
 * Runs pods as programs inside this process: the form for the in-process cluster, for scenario
 * tests and for simulation. A program is a function, found by the container's first argument; it
 * sees its volumes through the node's Host. Like real pods, these outlive the node agent.
 */
import { StoppedError } from "@longshore/runtime";
import {
  expandVariables,
  mountVariable,
  type PodRuntime,
  type PodSandbox,
  type PodState,
} from "./pod-runtime.ts";

/** A program: runs until it is done or `signal` aborts; returns its exit code. */
export type Program = (run: ProgramRun) => Promise<number>;

/** What a program is given. */
export interface ProgramRun {
  readonly sandbox: PodSandbox;
  readonly args: readonly string[];
  /** Directory of a volume on the node. */
  readonly env: Readonly<Record<string, string>>;
  /** Aborts when the pod has to end. */
  readonly signal: AbortSignal;
}

interface Running {
  readonly controller: AbortController;
  readonly done: Promise<void>;
  state: PodState;
}

/** The pods of one node. Keep one per node for as long as the node is powered. */
export function createProgramPodRuntime(programs: Readonly<Record<string, Program>>): PodRuntime & {
  /** Power loss: every program is dropped where it is. */
  losePower(): void;
} {
  const pods = new Map<string, Running>();

  const start = (sandbox: PodSandbox): Running => {
    const env: Record<string, string> = {};
    for (const mount of sandbox.mounts) env[mountVariable(mount.volumeName)] = mount.hostPath;
    Object.assign(env, sandbox.env);
    const [name = "", ...args] = sandbox.argv.map((part) => expandVariables(part, env));
    const controller = new AbortController();
    const program = programs[name] ?? (async () => 127);
    const running: Running = {
      controller,
      state: { kind: "running" },
      done: (async () => program({ sandbox, args, env, signal: controller.signal }))()
        .catch(() => (controller.signal.aborted ? 143 : 1))
        .then((exitCode) => {
          running.state = { kind: "ended", exitCode };
        }),
    };
    return running;
  };

  return {
    async ensureRunning(sandbox) {
      if (pods.get(sandbox.podUID)?.state.kind === "running") return;
      pods.set(sandbox.podUID, start(sandbox));
    },
    async state(podUID) {
      return pods.get(podUID)?.state ?? { kind: "absent" };
    },
    async terminate(podUID) {
      const running = pods.get(podUID);
      if (running === undefined) return;
      running.controller.abort(new StoppedError());
      await running.done;
      pods.delete(podUID);
    },
    async list() {
      return [...pods.keys()];
    },
    async podsWithRunningContainers() {
      return new Set([...pods].filter(([, p]) => p.state.kind === "running").map(([uid]) => uid));
    },
    losePower() {
      for (const running of pods.values()) running.controller.abort(new StoppedError());
      pods.clear();
    },
  };
}
