/**
 * The graceful shutdown of a node: its pods end, the critical ones last, and their volumes are unmounted, before its agent
 * ends. Source: docs/behaviour/node-agent.md 14. The rules for the node are in `decide-node-shutdown-step.ts`, those for a
 * pod in `decide-pod-step.ts`.
 */
import {
  type Informer,
  isPodTerminal,
  keyOf,
  type Node,
  type Pod,
  type Source,
  type Stored,
  settled,
  source,
  startController,
} from "@longshore/kube";
import type { Clock, RuntimeEnv } from "@longshore/runtime";
import type { NodeVolumes } from "@longshore/volumes";
import {
  decideNodeShutdownStep,
  type NodeShutdownObservation,
  type NodeShutdownStep,
  type ShutdownPeriods,
  type ShutdownPhase,
} from "./decide-node-shutdown-step.ts";
import type { PodShutdown } from "./decide-pod-step.ts";

/** There is one node: the key is the same always. */
const key = "shutdown";

/** How far the shutdown of the node has come, for those whose work it changes. */
export class NodeShutdown {
  readonly #clock: Clock;
  #phase: ShutdownPhase | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Undefined: the node does not shut down. */
  get phase(): ShutdownPhase | undefined {
    return this.#phase;
  }

  enter(phase: ShutdownPhase): void {
    this.#phase = phase;
  }

  /** What it means to a pod, as of now. */
  forPods(): PodShutdown | undefined {
    if (this.#phase === undefined) return undefined;
    const { group, endsMs } = this.#phase;
    return { group, leftMs: Math.max(0, endsMs - this.#clock.monotonicMs()) };
  }
}

/** What the shutdown works with. */
export interface NodeShutdownOptions {
  readonly shutdown: NodeShutdown;
  readonly periods: ShutdownPeriods;
  readonly pods: Informer<Pod>;
  readonly volumes: Pick<NodeVolumes, "podVolumesGone">;
  /** The Node as it was stored or read last. */
  readonly node: () => Stored<Node> | undefined;
  /** The turn of the next group of pods has come. */
  readonly onPhase: () => void;
}

/**
 * Shuts the node down; resolves when all pods have ended and the Node says so, or when the time is over: also where the
 * pods have never become known. What is left then runs on until the machine ends.
 */
export async function shutDownNode(env: RuntimeEnv, options: NodeShutdownOptions): Promise<void> {
  const { pods, volumes, periods } = options;
  env.logger.info("node is shutting down", { withinMs: periods.totalMs });
  const finished = new AbortController();
  const podsLeft = () =>
    pods.list().filter((pod) => !isPodTerminal(pod) || !volumes.podVolumesGone(pod.metadata.uid));
  const controller = startShutdownController(env, options, podsLeft, () => finished.abort());
  controller.wake(key);
  await env.clock.sleep(periods.totalMs, finished.signal).catch(() => {});
  await controller.stop();
  if (finished.signal.aborted) return;
  env.logger.warn("the time to shut down is over: what is left ends with the machine", {
    pods: podsLeft().map(keyOf),
  });
}

function startShutdownController(
  env: RuntimeEnv,
  { shutdown, periods, pods, node, onPhase }: NodeShutdownOptions,
  podsLeft: () => readonly Stored<Pod>[],
  onFinished: () => void,
) {
  return startController<NodeShutdownObservation, NodeShutdownStep>(env, {
    name: "kubelet-shutdown",
    sources: [anyPod(pods)],
    caches: [pods],
    observe: () => {
      const { phase } = shutdown;
      return { periods, phase, nowMs: env.clock.monotonicMs(), left: podsLeft(), node: node() };
    },
    decide: decideNodeShutdownStep,
    actions: {
      endPods({ phase }, observed) {
        env.logger.info("pods end", { group: phase.group, left: observed.left.length });
        shutdown.enter(phase);
        onPhase();
        return { observed: { ...observed, phase } };
      },
      wait: ({ ms }) => ({ requeueAfterMs: ms }),
      finish() {
        onFinished();
        return settled;
      },
    },
  });
}

/** Wakes it when any pod of the node has changed. */
function anyPod(pods: Informer<Pod>): Source {
  return source((wake) => {
    const onPod = () => wake(key);
    return pods.onChange({ added: onPod, updated: onPod, deleted: onPod });
  });
}
