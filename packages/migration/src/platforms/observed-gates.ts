/**
 * Which gates a cluster's components run with, as far as its API shows it: a node by the migrated-plugins annotation of its CSINode,
 * the control plane by the command lines of its pods or by what is published for it. Source: docs/behaviour/migration-controllers.md C1.
 */
import { type CSINode, type KubeClient, type Pod, resources, type Stored } from "@longshore/kube";
import { parseFeatureGates } from "@longshore/runtime";
import { globalMigrationGate, migrationGates } from "@longshore/translation";
import { migratedPluginsOf } from "../crossing/node-state.ts";
import type { GateValues } from "../crossing/platform.ts";
import { isReady } from "../crossing/pod-facts.ts";
import { commandGates } from "./feature-gate-files.ts";

/** The ConfigMap in which a control plane, or who runs it, says with which feature gates it runs, under the key. */
export const controlPlaneGatesMap = {
  namespace: "kube-system",
  name: "longshore-control-plane",
  key: "feature-gates",
} as const;

/** The gates that a node's agent runs with, as its CSINode shows them; undefined without one. */
export function nodeGatesOf(csiNode: CSINode | undefined): GateValues | undefined {
  if (csiNode === undefined) return undefined;
  const listed = migratedPluginsOf(csiNode);
  const gates = migrationGates.map(({ gate, inTreeName }) => [gate, listed.includes(inTreeName)] as const);
  // A node that lists none may have the master gate, or not.
  return Object.fromEntries(listed.length > 0 ? [[globalMigrationGate, true], ...gates] : gates);
}

/** Reads {@link nodeGatesOf}. */
export async function readNodeGates(
  kube: KubeClient,
  name: string,
  signal: AbortSignal,
): Promise<GateValues | undefined> {
  return nodeGatesOf(await kube.get(resources.csiNodes, { name }, { signal }));
}

/** The gates that the control plane is published to run with. */
export async function readPublishedGates(
  kube: KubeClient,
  signal: AbortSignal,
): Promise<GateValues | undefined> {
  const map = await kube.get(resources.configMaps, controlPlaneGatesMap, { signal });
  const text = map?.data?.[controlPlaneGatesMap.key];
  return text === undefined ? undefined : parseFeatureGates(text);
}

/** The pods of a component of the control plane, as kubeadm labels them. */
export async function controlPlanePods(
  kube: KubeClient,
  component: string,
  signal: AbortSignal,
): Promise<readonly Stored<Pod>[]> {
  const labelSelector = `component=${component},tier=control-plane`;
  return (await kube.list(resources.pods, { namespace: "kube-system", labelSelector, signal })).items;
}

/** The gates that all of the pods run with; undefined when there is none, or one is not ready. */
export function gatesOfPods(pods: readonly Stored<Pod>[]): GateValues | undefined {
  const [first, ...others] = pods.map(gatesOfPod);
  if (first === undefined || others.includes(undefined)) return undefined;
  return Object.fromEntries(
    Object.entries(first).filter(([gate, value]) => others.every((gates) => gates?.[gate] === value)),
  );
}

function gatesOfPod(pod: Stored<Pod>): GateValues | undefined {
  if (!isReady(pod) || pod.metadata.deletionTimestamp !== undefined) return undefined;
  const { command = [], args = [] } = pod.spec?.containers[0] ?? {};
  return commandGates([...command, ...args]);
}

/** Whether the values contain all that is wanted. */
export function includesGates(values: GateValues | undefined, wanted: GateValues): boolean {
  return values !== undefined && Object.entries(wanted).every(([gate, value]) => values[gate] === value);
}

/** `A=true,B=false`. */
export const gatesText = (values: GateValues): string =>
  Object.entries(values)
    .map(([gate, value]) => `${gate}=${value}`)
    .join(",");
