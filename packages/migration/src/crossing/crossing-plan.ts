/**
 * The plan of a crossing: its steps with what each changes, asks for and leaves, and what the preflight finds. It is made of
 * the steps and the findings of a run itself. Source: docs/behaviour/migration-controllers.md C1.
 */
import { type KubeClient, resources } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import { type CrossingObservation, observe } from "./crossing-observation.ts";
import type { CrossingOptions } from "./crossing-options.ts";
import {
  type NodeStep,
  nodeSteps,
  nodesInOrder,
  nodesToCross,
  stepsAfterNodes,
  stepsBeforeNodes,
} from "./crossing-steps.ts";
import { type CrossingDirection, type CrossingSubject, gateValuesFor } from "./crossing-subject.ts";
import { type Finding, findingWords } from "./finding.ts";
import { leftByDrain, nameOf } from "./pod-facts.ts";
import { preflightFindings } from "./preflight-findings.ts";

/** One step. */
export interface PlanStep {
  readonly name: string;
  readonly nodeName?: string;
  /** What holds before it begins. */
  readonly before: string;
  /** Exactly what it changes, one change each; empty for a step that only waits. */
  readonly changes: readonly string[];
  /** What holds once it is done. */
  readonly after: string;
}

/** The plan of one plugin in one cluster. */
export interface CrossingPlan {
  readonly version: 1;
  /** UID of the namespace kube-system. */
  readonly clusterId: string;
  /** In-tree name. */
  readonly plugin: string;
  readonly direction: CrossingDirection;
  /** RFC 3339. */
  readonly madeAt: string;
  readonly steps: readonly PlanStep[];
  /** Blockers first, PodDisruptionBudgets among them. */
  readonly findings: readonly Finding[];
}

/** The plan cannot be used with this cluster, or is none. */
export class PlanError extends Error {
  override readonly name = "PlanError";
}

type PlanOptions = Pick<CrossingOptions, "subject" | "direction" | "force">;

/** Reads the cluster and makes the plan; changes nothing. @throws PlanError for a cluster without kube-system, and what the client throws */
export async function planCrossing(
  env: { readonly clock: Pick<Clock, "now">; readonly kube: KubeClient },
  options: PlanOptions,
  signal: AbortSignal,
): Promise<CrossingPlan> {
  const system = await env.kube.get(resources.namespaces, { name: "kube-system" }, { signal });
  if (system === undefined) {
    throw new PlanError(
      "Namespace kube-system is not there, and its metadata.uid is what names a cluster: create it",
    );
  }
  return crossingPlanOf(options, await observe(env, signal), system.metadata.uid);
}

/** The plan for what was observed. */
export function crossingPlanOf(
  { subject, direction, force = false }: PlanOptions,
  seen: CrossingObservation,
  clusterId: string,
): CrossingPlan {
  const nodes = nodesInOrder(nodesToCross(subject, direction, seen), direction);
  const whole = (name: keyof typeof wholeTexts): PlanStep => {
    const changes = name === "objects clean" ? [] : gateChanges("the control plane", subject, direction);
    return { name, ...wholeTexts[name], changes };
  };
  const drained = podsByNode(seen);
  const steps = [
    ...stepsBeforeNodes(direction).map(whole),
    ...nodes.flatMap((nodeName) =>
      nodeSteps.map((name): PlanStep => {
        const changes = changesOf(name, nodeName, { subject, direction }, drained.get(nodeName) ?? []);
        return { name, nodeName, ...nodeTexts[name], changes };
      }),
    ),
    ...stepsAfterNodes(direction).map(whole),
  ];
  const findings = preflightFindings(subject, direction, seen, { force });
  return {
    version: 1,
    clusterId,
    plugin: subject.inTreeName,
    direction,
    madeAt: seen.now.toISOString(),
    steps,
    findings,
  };
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

/** The pods that a drain takes, by node, in the order of their names. */
function podsByNode({ pods }: CrossingObservation): ReadonlyMap<string, readonly string[]> {
  const byNode = new Map<string, string[]>();
  for (const pod of pods) {
    const nodeName = pod.spec?.nodeName;
    if (nodeName === undefined || leftByDrain(pod) !== undefined) continue;
    const names = byNode.get(nodeName);
    if (names === undefined) byNode.set(nodeName, [nameOf(pod)]);
    else names.push(nameOf(pod));
  }
  for (const names of byNode.values()) names.sort();
  return byNode;
}

/** The plan that a file holds. @throws PlanError when the value is not a plan of version 1 */
export function readPlan(value: unknown): CrossingPlan {
  const plan = (value ?? {}) as Partial<Record<keyof CrossingPlan, unknown>>;
  const isText = (["clusterId", "plugin", "direction", "madeAt"] as const).every(
    (field) => typeof plan[field] === "string",
  );
  const isList = (items: unknown, ...fields: readonly string[]) =>
    Array.isArray(items) &&
    items.every((item) =>
      fields.every((field) => typeof (item as Record<string, unknown> | null)?.[field] === "string"),
    );
  const hasSteps =
    isList(plan.steps, "name") &&
    (plan.steps as readonly { readonly changes?: unknown }[]).every(({ changes }) => Array.isArray(changes));
  const hasFindings = isList(plan.findings, "severity", "object", "reason", "remedy");
  if (plan.version === 1 && isText && hasSteps && hasFindings) return value as CrossingPlan;
  throw new PlanError("it is not a plan of version 1: write a new one with `longshore plan`");
}

/**
 * What of the plan is no longer so, one sentence each; empty when it is as it was.
 * @throws PlanError when the plan is of another cluster, plugin or direction
 */
export function staleParts(plan: CrossingPlan, now: CrossingPlan): readonly string[] {
  for (const field of ["clusterId", "plugin", "direction"] as const) {
    if (plan[field] === now[field]) continue;
    throw new PlanError(
      `the plan's ${field} is "${plan[field]}", and here it is "${now[field]}": make a plan of this cluster`,
    );
  }
  return [
    ...difference(linesOf(plan), linesOf(now)).map((line) => `no longer: ${line}`),
    ...difference(linesOf(now), linesOf(plan)).map((line) => `new: ${line}`),
  ];
}

function linesOf({ steps, findings }: CrossingPlan): string[] {
  return [
    ...steps.flatMap(({ name, nodeName, changes }) => {
      const step = nodeName === undefined ? name : `${nodeName}: ${name}`;
      return [`step ${step}`, ...changes.map((change) => `in step ${step}: ${change}`)];
    }),
    ...findings.map((finding) => `${finding.severity} ${findingWords(finding)}`),
  ];
}

function difference(lines: readonly string[], others: readonly string[]): string[] {
  const known = new Set(others);
  return lines.filter((line) => !known.has(line));
}
