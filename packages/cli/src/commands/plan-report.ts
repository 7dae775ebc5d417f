/** A plan for people. */
import { type CrossingPlan, findingWords } from "@longshore/migration";
import { foreignText } from "@longshore/runtime/basics";

/** The plan as text: findings first, then the steps with what each needs, changes and leaves. */
export function planText(plan: CrossingPlan): string {
  const { plugin, direction, clusterId, madeAt, findings, steps, nodes, maxUnavailable } = plan;
  const lines = [
    `${direction} ${plugin} in cluster ${clusterId}, planned at ${madeAt}`,
    `${nodes.length} nodes, at most ${maxUnavailable} at a time; about ${durationWords(plan.expectedSeconds)} where no budget and no provider holds it up`,
    ...findings.map((finding) => `${finding.severity}: ${findingWords(finding)}`),
    ...steps.flatMap(({ name, nodeName, batch, before, changes, after, expectedSeconds }, at) => [
      `${at + 1}. ${nodeName === undefined ? name : `${nodeName}: ${name}`}${batch === undefined ? "" : ` (batch ${batch})`}, about ${durationWords(expectedSeconds)}`,
      `   before: ${before}`,
      ...changes.map((change) => `   change: ${change}`),
      `   after:  ${after}`,
    ]),
  ];
  return lines.map((line) => `${foreignText(line, Number.POSITIVE_INFINITY)}\n`).join("");
}

/** `45 s`, `12 min`, `3 h 20 min`. */
function durationWords(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
