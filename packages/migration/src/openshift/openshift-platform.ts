/**
 * OpenShift as the platform of a crossing: the FeatureGate says which gates the whole cluster has; its operators restart the control
 * plane, and the machine-config operator drains and restarts the nodes, one after the other. It takes a release whose attach/detach
 * controller decides for each node alone, so that the order of restarts does not matter. Source: docs/behaviour/migration-controllers.md B2, B3.
 */
import { isAlreadyExists, type KubeClient, type Stored, updateWithRetry } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import { globalMigrationGate } from "@longshore/translation";
import type { Finding } from "../crossing/finding.ts";
import type { GateValues, Platform } from "../crossing/platform.ts";
import { gatesWait, waitFor } from "../crossing/waits.ts";
import { includesGates, readNodeGates } from "../platforms/observed-gates.ts";
import { clusterOperatorName, clusterOperators, recordedRevisions } from "./cluster-operator.ts";
import { type FeatureGate, featureGateObjects, selectionOf, singletonName } from "./feature-gate.ts";
import { isOperandRolledOut, isPoolDegraded, machineConfigPools, operandKinds } from "./operands.ts";
import { renderedMigrationGates } from "./render-gates.ts";

/** What the platform needs. */
export interface OpenShiftPlatformEnv {
  readonly clock: Clock;
  readonly kube: KubeClient;
}

const pollMs = 5000;
const ref = { name: singletonName };
const ownSet = "CustomNoUpgrade";

/** Makes the platform. */
export function createOpenShiftPlatform({ clock, kube }: OpenShiftPlatformEnv): Platform {
  const selected = async (signal: AbortSignal): Promise<GateValues> =>
    gatesSelected(await kube.get(featureGateObjects, ref, { signal }));
  return {
    name: "openshift",
    rollsNodes: true,
    async controlPlaneGates(signal) {
      const gates = await selected(signal);
      return (await laggingOperand(kube, gates, signal)) === undefined ? gates : undefined;
    },
    nodeGates: (nodeName, signal) => readNodeGates(kube, nodeName, signal),
    configuredNodeGates: (_nodeName, signal) => selected(signal),
    async setControlPlaneGates(values, signal, onWaiting) {
      await select(kube, values, signal);
      for (;;) {
        const lagging = await laggingOperand(kube, values, signal);
        if (lagging === undefined) return;
        onWaiting?.(waitFor(lagging, singletonName, "to run with the feature gates of the FeatureGate"));
        await clock.sleep(pollMs, signal);
      }
    },
    async setNodeGates(nodeName, values, signal, onWaiting) {
      await select(kube, values, signal);
      while (!includesGates(await readNodeGates(kube, nodeName, signal), values)) {
        onWaiting?.((await degradedWait(kube, signal)) ?? gatesWait(nodeName, values));
        await clock.sleep(pollMs, signal);
      }
    },
    findings: (signal) => findingsOf(kube, signal),
  };
}

function gatesSelected(featureGate: FeatureGate | undefined): GateValues {
  const { enabled, disabled } = selectionOf(featureGate);
  return Object.fromEntries([
    ...enabled.map((gate) => [gate, true] as const),
    ...disabled.map((gate) => [gate, false] as const),
  ]);
}

/** Selects these values beside the others of the set `CustomNoUpgrade`. */
async function select(kube: KubeClient, values: GateValues, signal: AbortSignal): Promise<void> {
  const change = (current: Stored<FeatureGate>) => {
    const before = gatesSelected(current);
    return includesGates(before, values) ? undefined : { ...current, spec: specOf({ ...before, ...values }) };
  };
  for (;;) {
    if ((await updateWithRetry(kube, featureGateObjects, ref, change, { signal })) !== undefined) return;
    try {
      await kube.create(featureGateObjects, { metadata: ref, spec: specOf(values) }, { signal });
      return;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }
}

function specOf(values: GateValues): NonNullable<FeatureGate["spec"]> {
  const named = (wanted: boolean) =>
    Object.entries(values)
      .filter(([, value]) => value === wanted)
      .map(([gate]) => gate)
      .sort();
  return { featureSet: ownSet, customNoUpgrade: { enabled: named(true), disabled: named(false) } };
}

/** The kind of the first operand that does not run with the values yet. */
async function laggingOperand(
  kube: KubeClient,
  values: GateValues,
  signal: AbortSignal,
): Promise<string | undefined> {
  // An operator renders only what differs from the release's default, which for the master gate is on.
  const wanted = Object.entries(values).filter(([gate]) => gate !== globalMigrationGate);
  const includesAll = (has: (gate: string) => boolean) =>
    wanted.every(([gate, value]) => has(gate) === value);
  const clusterOperator = await kube.get(clusterOperators, { name: clusterOperatorName }, { signal });
  const revisions = clusterOperator === undefined ? {} : recordedRevisions(clusterOperator);
  for (const kind of operandKinds) {
    const operand = await kube.get(kind.resource, ref, { signal });
    const rendered = renderedMigrationGates(operand, kind);
    const revised = revisions[kind.component]?.gates;
    const isRolledOut =
      operand !== undefined &&
      includesAll((gate) => rendered.includes(gate)) &&
      // The latest revision may have other gates than the operand. Without the operator's record, what is observed counts.
      (revised === undefined || includesAll((gate) => revised.includes(`${gate}=true`))) &&
      isOperandRolledOut(operand, rendered, undefined);
    if (!isRolledOut) return kind.resource.kind;
  }
  return undefined;
}

async function degradedWait(kube: KubeClient, signal: AbortSignal) {
  const { items } = await kube.list(machineConfigPools, { signal });
  const degraded = items.find(isPoolDegraded);
  return degraded === undefined
    ? undefined
    : waitFor(
        machineConfigPools.kind,
        degraded.metadata.name,
        "is degraded (status.conditions): a machine of it could not be configured",
      );
}

async function findingsOf(kube: KubeClient, signal: AbortSignal): Promise<readonly Finding[]> {
  const featureGate = await kube.get(featureGateObjects, ref, { signal });
  const { featureSet } = selectionOf(featureGate);
  const object = `FeatureGate ${singletonName}`;
  const field = "spec.featureSet";
  const pools = (await kube.list(machineConfigPools, { signal })).items.filter(isPoolDegraded);
  const degraded = pools.map(
    ({ metadata }): Finding => ({
      severity: "blocker",
      object: `MachineConfigPool ${metadata.name}`,
      field: "status.conditions[Degraded]",
      reason: "a machine of it could not be configured, so that no further one will be",
      remedy: "see in the logs of the machine-config operator why, and correct it",
    }),
  );
  if (featureSet === ownSet) return degraded;
  const change: Finding =
    featureSet === ""
      ? {
          severity: "warning",
          object,
          field,
          reason: `it is to become ${ownSet}, which does not allow upgrades, and cannot be taken back`,
          remedy: "go on only in a cluster that needs no upgrade before the release that migrates by default",
        }
      : {
          severity: "blocker",
          object,
          field,
          reason: `it is ${featureSet}, whose gates are not chosen one by one`,
          remedy: "see whether that set migrates the plugin already",
        };
  return [change, ...degraded];
}
