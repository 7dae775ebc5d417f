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
  startController,
} from "@longshore/kube";
import type { Component, RuntimeEnv } from "@longshore/runtime";
import type { NodeVolumes } from "@longshore/volumes";
import {
  decideNodeReportStep,
  type NodeObservation,
  type NodeReportStep,
} from "./decide-node-report-step.ts";
import type { NodeIdentity } from "./node-object.ts";

/** The status is looked at this often even when nothing seems to have changed. */
const statusPeriodMs = 10_000;
/** There is one node: the key is the same always. */
const key = "status";

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
}

/**
 * Starts the reporter: at once, then every ten seconds and when woken, it makes the Node where there is none, posts the
 * status where it differs or is five minutes old, and hands the `volumesInUse` of the stored Node to `volumes`.
 */
export function startNodeReporter(
  env: RuntimeEnv & { readonly kube: KubeClient },
  { identity, volumes }: NodeReporterOptions,
): NodeReporter {
  const ref = { name: identity.nodeName };
  let stored: Stored<Node> | undefined;
  const onStored = (node: Stored<Node> | undefined) => {
    stored = node;
  };
  const controller = startController<NodeObservation, NodeReportStep>(env, {
    name: "kubelet-status",
    sources: [],
    async observe(_key, { signal }) {
      const node = await env.kube.get(resources.nodes, ref, { signal });
      return { identity, node, volumes: volumes.status(), now: env.clock.now(), isPosted: false };
    },
    decide: decideNodeReportStep,
    actions: reporterActions(env.kube, volumes, onStored),
  });
  controller.wake(key);
  return { wake: () => controller.wake(key), stored: () => stored, stop: () => controller.stop() };
}

function reporterActions(
  kube: KubeClient,
  volumes: Pick<NodeVolumes, "markReportedInUse">,
  onStored: (node: Stored<Node> | undefined) => void,
): Actions<NodeObservation, NodeReportStep> {
  return {
    async createNode({ node }, _observed, { signal }) {
      await kube.create(resources.nodes, node, { signal }).catch((error) => {
        if (!isAlreadyExists(error)) throw error;
      });
      return observeAgain;
    },
    async registerNode({ node }, _observed, { signal }) {
      await kube.update(resources.nodes, node, { signal }).catch((error) => {
        if (!isConflict(error) && !isNotFound(error)) throw error;
      });
      return observeAgain;
    },
    async postStatus({ status }, observed, { signal }) {
      const ref = { name: observed.identity.nodeName };
      const patch = { type: "merge", body: { status } } as const;
      const node = await kube.patch(resources.nodes, ref, patch, { subresource: "status", signal });
      return { observed: { ...observed, node, isPosted: true } };
    },
    markReportedInUse({ volumesInUse }, { node }) {
      onStored(node);
      volumes.markReportedInUse(volumesInUse);
      return { requeueAfterMs: statusPeriodMs };
    },
  };
}
