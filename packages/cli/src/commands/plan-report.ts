/** A plan for people. */
import { type CrossingPlan, findingWords } from "@longshore/migration";
import { foreignText } from "@longshore/runtime/basics";

/** The plan as text: findings first, then the steps with what each needs, changes and leaves. */
export function planText({ plugin, direction, clusterId, madeAt, findings, steps }: CrossingPlan): string {
  const lines = [
    `${direction} ${plugin} in cluster ${clusterId}, planned at ${madeAt}`,
    ...findings.map((finding) => `${finding.severity}: ${findingWords(finding)}`),
    ...steps.flatMap(({ name, nodeName, before, changes, after }, at) => [
      `${at + 1}. ${nodeName === undefined ? name : `${nodeName}: ${name}`}`,
      `   before: ${before}`,
      ...changes.map((change) => `   change: ${change}`),
      `   after:  ${after}`,
    ]),
  ];
  return lines.map((line) => `${foreignText(line, Number.POSITIVE_INFINITY)}\n`).join("");
}
