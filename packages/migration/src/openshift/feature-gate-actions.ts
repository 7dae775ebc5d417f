/** What the steps of {@link decideFeatureGateStep} do: one write or reading each. */
import {
  type Actions,
  type EventRecorder,
  involvedObject,
  isConflict,
  type KubeEnv,
  observeAgain,
  resources,
  type Stored,
  settled,
} from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { migratedPluginsOf } from "../crossing/node-state.ts";
import {
  type ClusterOperator,
  clusterOperatorName,
  clusterOperators,
  relatedObjects,
  timedConditions,
} from "./cluster-operator.ts";
import type { FeatureGateObservation, FeatureGateStep } from "./decide-feature-gate-step.ts";
import { featureGateObjects, singletonName } from "./feature-gate.ts";
import { kubeletConfigs } from "./operands.ts";
import { kubeletConfigName } from "./render-gates.ts";

/** A set that waits for nodes is looked at again after this time, in milliseconds. */
export const nodesAgainMs = 30_000;

/** What the actions work with. */
export interface FeatureGateActionsEnv extends KubeEnv {
  readonly events: EventRecorder;
}

const pageSize = 500;

/** The actions. */
export function featureGateActions(
  env: FeatureGateActionsEnv,
): Actions<FeatureGateObservation, FeatureGateStep> {
  const { kube, events, logger, clock } = env;
  return {
    settle: () => settled,
    waitForNodes: () => ({ requeueAfterMs: nodesAgainMs }),
    async createOperator(_, observed, { signal }) {
      const object = { metadata: { name: clusterOperatorName }, spec: {} };
      const clusterOperator = await kube.create(clusterOperators, object, { signal });
      return { observed: { ...observed, clusterOperator } };
    },
    async listMigratedNodes(_, observed, { signal }) {
      return { observed: { ...observed, migratedNodes: await migratedNodes(env, signal) } };
    },
    async record({ selection, revised }, observed, { signal }) {
      const present = operatorOf(observed);
      const extension = { ...present.status?.extension, admitted: selection, revised };
      const stored = { ...present, status: { ...present.status, extension } };
      const clusterOperator = await kube.updateStatus(clusterOperators, stored, { signal });
      logger.info("feature set in force", { featureSet: selection.featureSet });
      return { observed: { ...observed, clusterOperator } };
    },
    async renderOperand({ kind: { component, resource }, object }, observed, { signal }) {
      const operand = await reported(env, observed, signal, () => kube.update(resource, object, { signal }));
      return { observed: { ...observed, operands: { ...observed.operands, [component]: operand } } };
    },
    async createKubeletConfig({ object }, observed, { signal }) {
      const kubeletConfig = await reported(env, observed, signal, () =>
        kube.create(kubeletConfigs, object, { signal }),
      );
      return { observed: { ...observed, kubeletConfig } };
    },
    async updateKubeletConfig({ object }, observed, { signal }) {
      const kubeletConfig = await reported(env, observed, signal, () =>
        kube.update(kubeletConfigs, object, { signal }),
      );
      return { observed: { ...observed, kubeletConfig } };
    },
    async deleteKubeletConfig({ uid }, observed, { signal }) {
      await reported(env, observed, signal, () =>
        kube.delete(kubeletConfigs, { name: kubeletConfigName }, { uid, signal }),
      );
      return observeAgain;
    },
    async report({ states, refusal }, observed, { signal }) {
      const present = operatorOf(observed);
      const conditions = timedConditions(states, present.status?.conditions ?? [], clock.now());
      const status = { ...present.status, conditions, relatedObjects };
      const clusterOperator = await kube.updateStatus(clusterOperators, { ...present, status }, { signal });
      if (refusal !== undefined) {
        events.event(subjectOf(observed), "Warning", refusal.reason, refusal.message);
      }
      return { observed: { ...observed, clusterOperator } };
    },
  };
}

/** What the operator reports about. */
function subjectOf({ featureGate }: FeatureGateObservation) {
  return involvedObject(featureGateObjects, featureGate ?? { metadata: { name: singletonName } });
}

/**
 * Gates that cannot be written, as while a webhook of the platform is down, are an event of the FeatureGate, too. A conflict is none:
 * fresh state follows at once.
 */
async function reported<T>(
  { events }: FeatureGateActionsEnv,
  observed: FeatureGateObservation,
  signal: AbortSignal,
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!signal.aborted && !isConflict(error)) {
      const message = `${errorChain(error)}: it is tried again`;
      events.event(subjectOf(observed), "Warning", "GatesNotRendered", message);
    }
    throw error;
  }
}

/** The steps that need it come after `createOperator`. */
function operatorOf({ clusterOperator }: FeatureGateObservation): Stored<ClusterOperator> {
  if (clusterOperator === undefined) throw new Error(`ClusterOperator ${clusterOperatorName} is missing`);
  return clusterOperator;
}

/** Read from the API in pages: what was true when a cache was filled must not take gates from a control plane. */
async function migratedNodes({ kube }: KubeEnv, signal: AbortSignal): Promise<readonly string[]> {
  const names: string[] = [];
  let token: string | undefined;
  do {
    const page = { limit: pageSize, ...(token === undefined ? {} : { continue: token }) };
    const listed = await kube.list(resources.csiNodes, { ...page, signal });
    for (const csiNode of listed.items) {
      if (migratedPluginsOf(csiNode).length > 0) names.push(csiNode.metadata.name);
    }
    token = listed.continue;
  } while (token !== undefined);
  return names;
}
