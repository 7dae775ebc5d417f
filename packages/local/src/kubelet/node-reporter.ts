/**
 * Registers the Node and keeps its status fresh. Source: docs/behaviour/node-agent.md 8. The rules are in
 * `decide-node-report-step.ts`.
 */
import {
  type Actions,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubeClient,
  type Node,
  observeAgain,
  resources,
  type Stored,
  settled,
  startController,
} from "@longshore/kube";
import type { Clock, Component, RuntimeEnv } from "@longshore/runtime";
import type { NodeVolumes } from "@longshore/volumes";
import {
  decideNodeReportStep,
  type NodeObservation,
  type NodeReportStep,
  nodeCurrentMs,
} from "./decide-node-report-step.ts";
import type { NodeIdentity } from "./node-object.ts";

/** The status is looked at this often even when nothing seems to have changed. */
const statusPeriodMs = 10_000;
/** There is one node: the key is the same always. */
const key = "status";

/** The Node that an agent has registered was deleted. */
class NodeGoneError extends Error {
  override readonly name = "NodeGoneError";
}

/** What the reporter works with. */
export interface NodeReporterOptions {
  readonly identity: NodeIdentity;
  readonly volumes: Pick<NodeVolumes, "status" | "markReportedInUse">;
}

/** The running reporter. */
export interface NodeReporter extends Component {
  /** Looks at the status at once: it may have changed. */
  wake(): void;
  /** The Node as a pass has read or written it last; undefined before the first. */
  stored(): Stored<Node> | undefined;
  /** Resolves once the Node that the agent has registered is gone: the agent has to be started again. */
  readonly failed: Promise<Error>;
}

/**
 * Starts the reporter: at once, then every ten seconds and when woken, it makes the Node where there is none (once it is known what is
 * mounted), posts the status where it differs or is five minutes old, and hands the `volumesInUse` of the stored Node to `volumes`. When
 * it is woken soon after it has read or written the Node, it reads it again only if more than `volumesInUse` has changed.
 */
export function startNodeReporter(
  env: RuntimeEnv & { readonly kube: KubeClient },
  { identity, volumes }: NodeReporterOptions,
): NodeReporter {
  const ref = { name: identity.nodeName };
  const known = new KnownNode(env.clock);
  let fail: (error: Error) => void = () => {};
  const failed = new Promise<Error>((resolve) => {
    fail = resolve;
  });
  const controller = startController<NodeObservation, NodeReportStep>(env, {
    name: "kubelet-status",
    sources: [],
    async observe(_key, { signal }) {
      const recent = known.current;
      const node = recent ?? (await env.kube.get(resources.nodes, ref, { signal }));
      const isLive = recent === undefined;
      if (isLive) known.set(node);
      const { registeredUid } = known;
      const now = env.clock.now();
      return { identity, node, isLive, volumes: volumes.status(), now, registeredUid, isPosted: false };
    },
    decide: decideNodeReportStep,
    actions: reporterActions(env.kube, volumes, known, fail),
  });
  controller.wake(key);
  return {
    wake: () => controller.wake(key),
    stored: () => known.last,
    failed,
    stop: () => controller.stop(),
  };
}

/** The Node as it was read or written last. */
class KnownNode {
  readonly #clock: Clock;
  #node: Stored<Node> | undefined;
  #untilMs = 0;
  #registeredUid: string | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get last(): Stored<Node> | undefined {
    return this.#node;
  }

  /** Undefined: it is to be read. */
  get current(): Stored<Node> | undefined {
    return this.#clock.monotonicMs() < this.#untilMs ? this.#node : undefined;
  }

  /** Of the first Node that was read or written. */
  get registeredUid(): string | undefined {
    return this.#registeredUid;
  }

  set(node: Stored<Node> | undefined): void {
    this.#node = node;
    this.#registeredUid ??= node?.metadata.uid;
    this.#untilMs = this.#clock.monotonicMs() + nodeCurrentMs;
  }

  /** It is about to be written: until the answer is there, nothing is known of it. */
  doubt(): void {
    this.#untilMs = 0;
  }
}

function reporterActions(
  kube: KubeClient,
  volumes: Pick<NodeVolumes, "markReportedInUse">,
  known: KnownNode,
  fail: (error: Error) => void,
): Actions<NodeObservation, NodeReportStep> {
  const post = async (status: object, observed: NodeObservation, signal: AbortSignal) => {
    const ref = { name: observed.identity.nodeName };
    const patch = { type: "merge", body: { status } } as const;
    known.doubt();
    const node = await kube.patch(resources.nodes, ref, patch, { subresource: "status", signal });
    known.set(node);
    const { registeredUid } = known;
    return { observed: { ...observed, node, isLive: true, isPosted: true, registeredUid } };
  };
  return {
    endAgent(_step, { identity }) {
      fail(
        new NodeGoneError(
          `Node ${identity.nodeName} was deleted while its agent runs: it has to start again`,
        ),
      );
      return settled;
    },
    // A change of what is mounted wakes it.
    waitForVolumes: () => ({ requeueAfterMs: statusPeriodMs }),
    readNode() {
      known.doubt();
      return observeAgain;
    },
    async createNode({ node }, _observed, { signal }) {
      known.doubt();
      await kube.create(resources.nodes, node, { signal }).catch((error) => {
        if (!isAlreadyExists(error)) throw error;
      });
      return observeAgain;
    },
    async registerNode({ node }, _observed, { signal }) {
      known.doubt();
      await kube.update(resources.nodes, node, { signal }).catch((error) => {
        if (!isConflict(error) && !isNotFound(error)) throw error;
      });
      return observeAgain;
    },
    postStatus: ({ status }, observed, { signal }) => post(status, observed, signal),
    postVolumesInUse: ({ volumesInUse }, observed, { signal }) => post({ volumesInUse }, observed, signal),
    markReportedInUse({ volumesInUse }) {
      volumes.markReportedInUse(volumesInUse);
      return { requeueAfterMs: statusPeriodMs };
    },
  };
}
