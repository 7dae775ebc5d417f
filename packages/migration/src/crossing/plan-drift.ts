/** Where a cluster is no longer as a plan says. Pure. */

import { findingWords } from "./finding.ts";
import { type CrossingPlan, PlanError } from "./plan-document.ts";

/** @throws PlanError when the plan is of another cluster, plugin or direction */
export function requireSameCrossing(
  plan: CrossingPlan,
  here: Pick<CrossingPlan, "clusterId" | "plugin" | "direction">,
): void {
  for (const field of ["clusterId", "plugin", "direction"] as const) {
    if (plan[field] === here[field]) continue;
    throw new PlanError(
      `the plan's ${field} is "${plan[field]}", and here it is "${here[field]}": make a plan of this cluster`,
    );
  }
}

/**
 * What of the plan is no longer so, one sentence each; empty when it is as it was.
 * @param nodesDone nodes that a run of this plan has carried across: that they need no crossing any more is as planned
 * @throws PlanError when the plan is of another cluster, plugin or direction
 */
export function staleParts(
  plan: CrossingPlan,
  now: CrossingPlan,
  nodesDone: readonly string[] = [],
): readonly string[] {
  requireSameCrossing(plan, now);
  const toCross = new Set(now.nodes.map(({ name }) => name));
  const crossed = new Set(nodesDone.filter((name) => !toCross.has(name)));
  const left = linesOf({
    ...plan,
    nodes: plan.nodes.filter(({ name }) => !crossed.has(name)),
    steps: plan.steps.filter(({ nodeName }) => nodeName === undefined || !crossed.has(nodeName)),
  });
  return [
    ...difference(left, linesOf(now)).map((line) => `no longer: ${line}`),
    ...difference(linesOf(now), left).map((line) => `new: ${line}`),
  ];
}

/**
 * Why the plan must not be run in the cluster as it is, one sentence each that names object and field; empty when it may. Pods come
 * and go by themselves, so that which of them a drain takes is no reason; a finding that blocks is one, and is reported by the preflight.
 * @param now a plan of the same cluster as it is now @param isBegun a run has followed this plan before: nodes may have crossed since
 * @throws PlanError when the plan is of another cluster, plugin or direction
 */
export function planDrift(
  plan: CrossingPlan,
  now: CrossingPlan,
  uids: ReadonlyMap<string, string>,
  isBegun: boolean,
): readonly string[] {
  requireSameCrossing(plan, now);
  const planned = new Set(plan.nodes.map(({ name }) => name));
  const toCross = new Set(now.nodes.map(({ name }) => name));
  const gone = plan.nodes.flatMap(({ name, uid }) => {
    const found = uids.get(name);
    if (found === uid) return [];
    return [`Node ${name}: metadata.uid is ${uid} in the plan, and ${found ?? "there is no such node"} now`];
  });
  const crossed = plan.nodes
    .filter(({ name, uid }) => !isBegun && uids.get(name) === uid && !toCross.has(name))
    .map(
      ({ name }) =>
        `CSINode ${name}: metadata.annotations: the node is to cross in the plan, and has crossed now`,
    );
  const others = now.nodes
    .filter(({ name }) => !planned.has(name))
    .map(({ name }) => `Node ${name}: it is to cross, and is not in the plan`);
  const rolled =
    plan.nodesRolledBy === now.nodesRolledBy
      ? []
      : [`nodesRolledBy: ${plan.nodesRolledBy} in the plan, and ${now.nodesRolledBy} on this platform`];
  return [...rolled, ...gone, ...crossed, ...others, ...otherChanges(plan, now)];
}

/** Changes of the whole cluster and of agents that this version would make in another way, as after an upgrade of Longshore. */
function otherChanges(plan: CrossingPlan, now: CrossingPlan): string[] {
  const changesOf = ({ steps }: CrossingPlan) =>
    new Map(
      steps
        .filter(({ name }) => name !== "drain")
        .map(({ name, nodeName = "", changes }) => [`${nodeName} ${name}`.trim(), changes.join("; ")]),
    );
  const planned = changesOf(plan);
  return [...changesOf(now)].flatMap(([step, changes]) => {
    const before = planned.get(step);
    if (before === undefined || before === changes) return [];
    return [`step ${step}: changes: "${before}" in the plan, and "${changes}" now`];
  });
}

function linesOf({ steps, findings, nodes, maxUnavailable }: CrossingPlan): string[] {
  return [
    `at most ${maxUnavailable} at a time`,
    ...nodes.map(({ name, uid }) => `Node ${name} with metadata.uid ${uid}`),
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
