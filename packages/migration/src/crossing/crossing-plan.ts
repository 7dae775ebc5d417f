/**
 * The plan of a crossing: its steps with what each changes, asks for and leaves, and what the preflight finds. It is made of
 * the steps and the findings of a run itself. Source: docs/behaviour/migration-controllers.md C1.
 */
import { type KubeClient, resources, type Stored, type VolumeAttachment } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import { type CrossingObservation, observe } from "./crossing-observation.ts";
import {
  batchesOf,
  type NodeStep,
  nodeStepsOn,
  nodesInOrder,
  nodesToCross,
  stepsAfterNodes,
  stepsBeforeNodes,
} from "./crossing-steps.ts";
import { type CrossingDirection, type CrossingSubject, gateValuesFor } from "./crossing-subject.ts";
import { volumesLeft } from "./node-state.ts";
import { type CrossingPlan, PlanError, type PlanStep } from "./plan-document.ts";
import { leftByDrain, nameOf } from "./pod-facts.ts";
import { preflightFindings } from "./preflight-findings.ts";

/** What is planned. */
export interface PlanOptions {
  readonly subject: CrossingSubject;
  readonly direction: CrossingDirection;
  /** Evicts pods that no controller brings back. */
  readonly force?: boolean;
  /** Nodes that cross at the same time at most; default 1. */
  readonly maxUnavailable?: number;
  /** The platform itself drains and restarts the nodes. */
  readonly rollsNodes?: boolean;
}

/** Reads the cluster and makes the plan; changes nothing. @throws PlanError for a cluster without kube-system, and what the client throws */
export async function planCrossing(
  env: { readonly clock: Pick<Clock, "now">; readonly kube: KubeClient },
  options: PlanOptions,
  signal: AbortSignal,
): Promise<CrossingPlan> {
  const clusterId = await readClusterId(env.kube, signal);
  return crossingPlanOf(options, await observe(env, signal), clusterId);
}

/** What names a cluster: the UID of its namespace kube-system. @throws PlanError when that is not there */
export async function readClusterId(kube: KubeClient, signal: AbortSignal): Promise<string> {
  const system = await kube.get(resources.namespaces, { name: "kube-system" }, { signal });
  if (system !== undefined) return system.metadata.uid;
  throw new PlanError(
    "Namespace kube-system is not there, and its metadata.uid is what names a cluster: create it",
  );
}

/** The plan for what was observed. */
export function crossingPlanOf(
  options: PlanOptions,
  seen: CrossingObservation,
  clusterId: string,
): CrossingPlan {
  const { subject, direction, force = false, maxUnavailable = 1 } = options;
  const toCross = nodesToCross(subject, direction, seen);
  const nodes = seen.nodes.filter(({ metadata }) => toCross.has(metadata.name));
  const batches = batchesOf(nodesInOrder(nodes, direction), maxUnavailable);
  const whole = (name: keyof typeof wholeTexts): PlanStep => {
    const changes = name === "objects clean" ? [] : gateChanges("the control plane", subject, direction);
    return { name, ...wholeTexts[name], changes, expectedSeconds: expected[name] };
  };
  const before = stepsBeforeNodes(direction).map(whole);
  const after = stepsAfterNodes(direction).map(whole);
  const ofNode = nodeStepsIn(seen, options);
  const steps = batches.map((names, at) => names.map((nodeName) => ofNode(nodeName, at + 1)));
  const uids = new Map(seen.nodes.map(({ metadata }) => [metadata.name, metadata.uid]));
  return {
    version: 1,
    clusterId,
    plugin: subject.inTreeName,
    direction,
    madeAt: seen.now.toISOString(),
    maxUnavailable,
    nodesRolledBy: options.rollsNodes === true ? "platform" : "crossing",
    nodes: batches.flatMap((names, at) =>
      names.map((name) => ({ name, uid: uids.get(name) ?? "", batch: at + 1 })),
    ),
    steps: [...before, ...steps.flat(2), ...after],
    expectedSeconds:
      secondsOf([...before, ...after]) +
      steps.map((nodes) => Math.max(...nodes.map(secondsOf))).reduce((sum, longest) => sum + longest, 0),
    findings: preflightFindings(subject, direction, seen, { force }),
  };
}

const secondsOf = (steps: readonly PlanStep[]): number =>
  steps.reduce((sum, { expectedSeconds }) => sum + expectedSeconds, 0);

/** Estimates, in seconds, of what the API does not say: restarts, and how long a provider takes to detach. */
const expected = {
  "control plane on": 60,
  "control plane off": 60,
  "objects clean": 30,
  cordon: 1,
  "volumes gone": 30,
  flip: 30,
  "CSINode agrees": 10,
  uncordon: 1,
} as const;

/** As Kubernetes has it where a pod does not say, in seconds. */
const defaultGraceSeconds = 30;

/** Makes the steps of a node, in the batch given. */
function nodeStepsIn(
  seen: CrossingObservation,
  options: PlanOptions,
): (nodeName: string, batch: number) => readonly PlanStep[] {
  const drained = podsByNode(seen);
  const nodes = new Map(seen.nodes.map((node) => [node.metadata.name, node]));
  const attachments = attachmentsByNode(seen);
  const durationOf = (name: NodeStep, nodeName: string): number => {
    if (name === "drain") return drained.get(nodeName)?.graceSeconds ?? 0;
    if (name !== "volumes gone") return expected[name];
    const left = volumesLeft(options.subject, nodes.get(nodeName) ?? {}, attachments.get(nodeName) ?? []);
    return left.length === 0 ? 0 : expected[name];
  };
  return (nodeName, batch) =>
    nodeStepsOn(options).map((name) => ({
      name,
      nodeName,
      batch,
      ...nodeTexts[name],
      ...(options.rollsNodes === true && name === "flip" ? { before: "the platform drains the node" } : {}),
      changes: changesOf(name, nodeName, options, drained.get(nodeName)?.names ?? []),
      expectedSeconds: durationOf(name, nodeName),
    }));
}

type Texts = Readonly<Record<"before" | "after", string>>;

const wholeTexts: Readonly<Record<"control plane on" | "control plane off" | "objects clean", Texts>> = {
  "control plane on": { before: "no finding blocks", after: "the control plane runs with the gates" },
  "control plane off": {
    before: "every node has crossed back",
    after: "the control plane runs with the gates",
  },
  "objects clean": {
    before: "the control plane is off",
    after: "no PersistentVolume or claim of the plugin carries a mark of the driver",
  },
};

const nodeTexts: Readonly<Record<NodeStep, Texts>> = {
  cordon: { before: "the nodes before it have crossed", after: "the node gets no new pods" },
  drain: {
    before: "budgets allow each eviction, or come to allow it",
    after: "no pod is left but those of DaemonSets and mirror pods",
  },
  "volumes gone": {
    before: "the node is drained",
    after: "no volume of the plugin is in use or attached there, in either form",
  },
  flip: { before: "the volumes are gone", after: "the node's agent runs with the gates" },
  "CSINode agrees": { before: "the agent runs", after: "the node's CSINode shows the new path" },
  uncordon: {
    before: "its CSINode agrees",
    after: "the node gets pods, unless someone else has cordoned it",
  },
};

function changesOf(
  name: NodeStep,
  nodeName: string,
  { subject, direction }: PlanOptions,
  pods: readonly string[],
): readonly string[] {
  switch (name) {
    case "cordon":
      return [`Node ${nodeName}: spec.unschedulable is set, unless it is already`];
    case "drain":
      return pods.map((pod) => `Pod ${pod}: evicted`);
    case "flip":
      return gateChanges(`the agent of Node ${nodeName}`, subject, direction);
    case "uncordon":
      return [`Node ${nodeName}: spec.unschedulable is removed, if the crossing has set it`];
    case "volumes gone":
    case "CSINode agrees":
      return [];
  }
}

function gateChanges(what: string, subject: CrossingSubject, direction: CrossingDirection): string[] {
  return Object.entries(gateValuesFor(subject, direction)).map(
    ([gate, value]) => `${what}: feature gate ${gate}=${value}, and a restart`,
  );
}

interface Drained {
  readonly names: string[];
  /** The longest time that one of them is given to end. */
  graceSeconds: number;
}

/** The pods that a drain takes, by node, in the order of their names. */
function podsByNode({ pods }: CrossingObservation): ReadonlyMap<string, Drained> {
  const byNode = new Map<string, Drained>();
  for (const pod of pods) {
    const nodeName = pod.spec?.nodeName;
    if (nodeName === undefined || leftByDrain(pod) !== undefined) continue;
    const drained = byNode.get(nodeName) ?? { names: [], graceSeconds: 0 };
    drained.names.push(nameOf(pod));
    const grace = pod.spec?.terminationGracePeriodSeconds ?? defaultGraceSeconds;
    drained.graceSeconds = Math.max(drained.graceSeconds, grace);
    byNode.set(nodeName, drained);
  }
  for (const { names } of byNode.values()) names.sort();
  return byNode;
}

function attachmentsByNode({ attachments }: CrossingObservation) {
  const byNode = new Map<string, Stored<VolumeAttachment>[]>();
  for (const va of attachments) {
    const list = byNode.get(va.spec.nodeName) ?? [];
    list.push(va);
    byNode.set(va.spec.nodeName, list);
  }
  return byNode;
}
