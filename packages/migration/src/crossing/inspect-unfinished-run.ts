/**
 * What a run leaves when it does not come to its end: which nodes it keeps cordoned and which gates are set. On
 * request it uncordons the nodes that pods may safely run on.
 */
import type { CSINode, KubeClient, Node, Stored } from "@longshore/kube";
import { resources } from "@longshore/kube";
import { isCordonedForCrossing, uncordon } from "./cordon.ts";
import { type CrossingSubject, gateValuesFor } from "./crossing-subject.ts";
import { csiNodeLacks } from "./node-state.ts";
import type { GateValues, Platform } from "./platform.ts";

/** By which code the plugin's volumes are served, as the gates say. */
export type Served = "csi" | "in-tree" | "unknown";

/** What a run has left. */
export interface UnfinishedRun {
  readonly controlPlane: Served;
  readonly nodes: readonly {
    readonly name: string;
    readonly served: Served;
    /** Cordoned by a crossing, and left so. */
    readonly cordoned: boolean;
    /** Uncordoned by this call. */
    readonly uncordoned: boolean;
    /** Why it was not uncordoned although that was requested. */
    readonly kept?: string;
  }[];
}

/** What the look needs. */
export interface UnfinishedRunEnv {
  readonly kube: KubeClient;
  readonly platform: Platform;
}

/** Lists what is left; with `uncordon` it uncordons the nodes that are safe. @throws the API server's errors */
export async function inspectUnfinishedRun(
  env: UnfinishedRunEnv,
  subject: CrossingSubject,
  options: { readonly uncordon: boolean },
  signal: AbortSignal,
): Promise<UnfinishedRun> {
  const [controlPlane, nodes] = await Promise.all([
    env.platform.controlPlaneGates(signal),
    env.kube.list(resources.nodes, { signal }),
  ]);
  const left: UnfinishedRun["nodes"][number][] = [];
  for (const node of nodes.items) left.push(await inspectNode(env, subject, node, options, signal));
  return { controlPlane: servedBy(subject, controlPlane), nodes: left };
}

async function inspectNode(
  { kube, platform }: UnfinishedRunEnv,
  subject: CrossingSubject,
  node: Stored<Node>,
  options: { readonly uncordon: boolean },
  signal: AbortSignal,
): Promise<UnfinishedRun["nodes"][number]> {
  const { name } = node.metadata;
  const running = await platform.nodeGates(name, signal);
  const facts = { name, served: servedBy(subject, running) };
  if (!isCordonedForCrossing(node)) return { ...facts, cordoned: false, uncordoned: false };
  if (!options.uncordon) return { ...facts, cordoned: true, uncordoned: false };
  const configured =
    platform.configuredNodeGates === undefined ? running : await platform.configuredNodeGates(name, signal);
  const csiNode = await kube.get(resources.csiNodes, { name }, { signal });
  const kept = whyKeptCordoned(subject, { running, configured, csiNode });
  if (kept !== undefined) return { ...facts, cordoned: true, uncordoned: false, kept };
  await uncordon(kube, name, signal);
  return { ...facts, cordoned: false, uncordoned: true };
}

/**
 * Why no pod may come to the node yet, or undefined when one may: its agent, the agent's next start and its CSINode
 * must agree on the path of the plugin's volumes, or one would be attached by a path and mounted by the other.
 */
export function whyKeptCordoned(
  subject: CrossingSubject,
  node: {
    readonly running: GateValues | undefined;
    readonly configured: GateValues | undefined;
    readonly csiNode: CSINode | undefined;
  },
): string | undefined {
  const served = servedBy(subject, node.running);
  if (served === "unknown") return "its agent does not say which feature gates it runs with";
  if (servedBy(subject, node.configured) !== served)
    return "its agent is about to run with other feature gates";
  const lack = csiNodeLacks(subject, served === "csi" ? "migrate" : "rollback", node.csiNode);
  return lack === undefined ? undefined : `it waits for ${lack}`;
}

function servedBy(subject: CrossingSubject, gates: GateValues | undefined): Served {
  if (gates === undefined) return "unknown";
  const wanted = Object.entries(gateValuesFor(subject, "migrate"));
  return wanted.every(([name, value]) => gates[name] === value) ? "csi" : "in-tree";
}
