/**
 * OpenShift's readers of the FeatureGate in one operator: it gives each component the gates of the selected set and reports
 * on a ClusterOperator. It installs no driver and drains no node. Source: docs/behaviour/migration-controllers.md B6.
 */
import {
  type ControllerEnv,
  controllerScope,
  createEventRecorder,
  forResource,
  type Informer,
  startController,
  watches,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { type ClusterOperator, clusterOperatorName, clusterOperators } from "./cluster-operator.ts";
import {
  decideFeatureGateStep,
  type FeatureGateObservation,
  type FeatureGateStep,
} from "./decide-feature-gate-step.ts";
import { type FeatureGate, featureGateObjects, singletonName } from "./feature-gate.ts";
import { featureGateActions } from "./feature-gate-actions.ts";
import type { FeatureGateOptions } from "./gates-of-selection.ts";
import {
  type KubeletConfig,
  kubeletConfigs,
  type MachineConfigPool,
  machineConfigPools,
  type Operand,
  type OperandKind,
  operandKinds,
} from "./operands.ts";
import { kubeletConfigName } from "./render-gates.ts";

/** Name of the operator, in metrics and events. */
export const operatorName = "feature_gate_operator";

/** What the operator is given. */
export interface FeatureGateOperatorArgs extends FeatureGateOptions {
  /** All is looked at again after this time, in milliseconds; never when left out. */
  readonly resyncMs?: number;
}

/** One pass may read CSINodes in pages. */
const passTimeoutMs = 300_000;

/** Starts the operator; it works in the background until it is stopped. */
export function startFeatureGateOperator(given: ControllerEnv, args: FeatureGateOperatorArgs): Component {
  const { resyncMs, ...options } = args;
  const { scope, env } = controllerScope(given, "FeatureGate operator");
  const { informers } = env;
  const caches: Caches = {
    featureGates: informers.of(featureGateObjects),
    clusterOperators: informers.of(clusterOperators),
    operands: operandKinds.map((kind) => ({ kind, cache: informers.of(kind.resource) })),
    kubeletConfigs: informers.of(kubeletConfigs),
    pools: informers.of(machineConfigPools),
  };
  const events = createEventRecorder(env, { component: operatorName });
  // There is one thing to decide, whatever changed; the queue makes one pass of many changes.
  const all = () => [singletonName];
  const named = (name: string) => (object: { readonly metadata: { readonly name: string } }) =>
    object.metadata.name === name ? [singletonName] : [];
  const controller = startController<FeatureGateObservation, FeatureGateStep>(env, {
    name: operatorName,
    workers: 1,
    passTimeoutMs,
    ...(resyncMs === undefined ? {} : { resyncMs }),
    sources: [
      forResource(caches.featureGates, { keys: named(singletonName) }),
      watches(caches.clusterOperators, named(clusterOperatorName)),
      ...caches.operands.map(({ cache }) => watches(cache, named(singletonName))),
      watches(caches.kubeletConfigs, named(kubeletConfigName)),
      watches(caches.pools, all),
    ],
    observe: () => observe(caches, options),
    decide: decideFeatureGateStep,
    actions: featureGateActions({ ...env, events }),
  });
  // A cluster without a FeatureGate has the empty set: that is to be reported, too.
  controller.wake(singletonName);
  scope.own(events, controller);
  return scope;
}

interface Caches {
  readonly featureGates: Informer<FeatureGate>;
  readonly clusterOperators: Informer<ClusterOperator>;
  readonly operands: readonly { readonly kind: OperandKind; readonly cache: Informer<Operand> }[];
  readonly kubeletConfigs: Informer<KubeletConfig>;
  readonly pools: Informer<MachineConfigPool>;
}

function observe(caches: Caches, options: FeatureGateOptions): FeatureGateObservation {
  const operands = caches.operands.flatMap(({ kind, cache }) => {
    const operand = cache.get(singletonName);
    return operand === undefined ? [] : [[kind.component, operand] as const];
  });
  return {
    options,
    featureGate: caches.featureGates.get(singletonName),
    clusterOperator: caches.clusterOperators.get(clusterOperatorName),
    operands: Object.fromEntries(operands),
    kubeletConfig: caches.kubeletConfigs.get(kubeletConfigName),
    pools: caches.pools.list(),
  };
}
