/** What the exploration of version skew has found, in words. Pure. */
import type { SkewGraph } from "./explore-skew.ts";
import { flipWords } from "./flip.ts";
import type { ReplayedOrder, ReplayedStep } from "./replay-orders.ts";
import { type Direction, ordersOf, type UnsafeGroup } from "./skew-orders.ts";
import type { Combination, CombinationOutcome } from "./skew-table.ts";
import { expectedPath } from "./skew-table.ts";
import type { VersionOutcome, VersionStory } from "./skew-versions.ts";
import type { SkewMode, Stall } from "./stall.ts";

/** What each mode means. */
export const modeWords: Readonly<Record<SkewMode, string>> = {
  upstream: "the attach/detach controller goes by its own gates and by what the node states",
  "node-only": "the attach/detach controller goes by what the node states alone",
};

/** The head of {@link combinationTable}. */
const combinationHead: readonly string[] = [
  "plugins",
  "controller manager",
  "kubelet",
  "provisioned by",
  "attached by",
  "mounted by",
];

/** A combination and what came of it. */
export type PlayedCombination = readonly [Combination, CombinationOutcome];

/** The table of combinations with its head; plugins of which the same is true are in one row. */
export function combinationTable(played: readonly PlayedCombination[]): readonly (readonly string[])[] {
  const rows = new Map<string, string[]>();
  for (const [combination, outcome] of played) {
    const cells = combinationCells(combination, outcome).join("\t");
    rows.set(cells, [...(rows.get(cells) ?? []), combination.plugin]);
  }
  return [
    combinationHead,
    ...[...rows].map(([cells, plugins]) => [plugins.join(", "), ...cells.split("\t")]),
  ];
}

function combinationCells(combination: Combination, outcome: CombinationOutcome): readonly string[] {
  const { controllerManager, kubelet } = combination;
  const { provisioned, attached, mounted, isServed } = outcome;
  const path = (taken: string) => (taken !== "nothing" ? taken : isServed ? "–" : "refused");
  return [onOff(controllerManager), onOff(kubelet), provisioned, path(attached), path(mounted)];
}

/** What is not as the design says; none where all is. */
export function combinationBreaks(combination: Combination, outcome: CombinationOutcome): readonly string[] {
  const { plugin, controllerManager, kubelet, mode } = combination;
  const what = `${plugin}, ${mode}, controller manager ${onOff(controllerManager)}, kubelet ${onOff(kubelet)}`;
  const expected = expectedPath(combination);
  const { mounted, callsDriver, isServed, provisioned, violations } = outcome;
  const wantedProvisioner = controllerManager ? "csi" : "in-tree";
  return [
    ...(mounted === expected ? [] : [`mounted by ${mounted}, not by ${expected}`]),
    ...(isServed === (expected !== "nothing") ? [] : [isServed ? "served" : "not served"]),
    ...(callsDriver === (expected === "csi") ? [] : [`the driver is ${callsDriver ? "" : "not "}called`]),
    ...(provisioned === wantedProvisioner ? [] : [`provisioned by ${provisioned}`]),
    ...violations,
  ].map((text) => `${what}: ${text}`);
}

/** How many orders are safe, and the story of each reason why others are not. */
export function orderLines(graph: SkewGraph): readonly string[] {
  const { counts, unsafe } = ordersOf(graph);
  const edges = graph.states.reduce((sum, { edges: { size } }) => sum + size, 0);
  return [
    `${graph.states.length} states and ${edges} flips between them, each made under work`,
    ...counts.map(
      ({ direction, orders, safe }) =>
        `${directionWords[direction]}: ${safe}/${orders} orders keep all work going`,
    ),
    ...unsafe.flatMap(unsafeLines),
    contractLine(graph.violations),
    ...graph.violations.map((violation) => `  ${violation}`),
  ];
}

/** An order on a cluster of its own. */
export function replayLines(number: number, { steps, violations }: ReplayedOrder): readonly string[] {
  const first = steps.findIndex(({ stalls }) => stalls.length > 0);
  const flips = steps.map(({ flip }, index) => `${index === first ? "(!) " : ""}${flipWords(flip)}`);
  const verdict = first < 0 ? "all work goes on" : `work stands still from flip ${first + 1} on`;
  return [
    `order ${number}: ${verdict}`,
    ...(first < 0 ? [] : flips.map((words) => `  ${words}`)),
    ...(first < 0 ? [] : (steps[first]?.stalls ?? []).map((stall) => `    ${stallWords(stall)}`)),
    ...violations.map((violation) => `  ${violation}`),
  ];
}

/** Upgrade, downgrade and upgrade again, in one line and its breaks. */
export function versionLines(story: VersionStory, { steps, violations }: VersionOutcome): readonly string[] {
  const { minor, behind, downgrade, plugins } = story;
  const stalled = steps.filter(({ stalls }) => stalls.length > 0);
  const verdict =
    stalled.length === 0
      ? "all work goes on"
      : `work stands still after ${stalled[0]?.words} and ${stalled.length - 1} more`;
  return [
    `${plugins.join(", ")}: controller manager 1.${minor}, kubelets 1.${minor - behind}, downgrade with ${downgrade}: ${verdict}`,
    ...violations.map((violation) => `  ${violation}`),
  ];
}

/** Whether the exploration is as its mode promises: the contract is kept, and where the node alone decides every order is safe. */
export function isAsPromised(graph: SkewGraph): boolean {
  const areAllSafe = ordersOf(graph).counts.every(({ orders, safe }) => orders === safe);
  return graph.violations.length === 0 && (graph.options.mode === "upstream" || areAllSafe);
}

/** The same for flips, or versions, that were made one after another; `mayStall`: whether work may stand still. */
export function isStoryAsPromised(
  {
    steps,
    violations,
  }: Pick<ReplayedOrder, "violations"> & { readonly steps: readonly Pick<ReplayedStep, "stalls">[] },
  mayStall: boolean,
): boolean {
  return violations.length === 0 && (mayStall || steps.every(({ stalls }) => stalls.length === 0));
}

/** Whether work may stand still in this story: where the controller manager goes off before the kubelets, in upstream mode. */
export function mayStall({ mode, downgrade }: Pick<VersionStory, "mode" | "downgrade">): boolean {
  return mode === "upstream" && downgrade === "controller manager first";
}

const directionWords: Readonly<Record<Direction, string>> = {
  on: "all gates on",
  off: "all gates off again",
};

function unsafeLines({ direction, reason, orders, story, stalls, remedy }: UnsafeGroup): readonly string[] {
  return [
    `unsafe in ${orders} orders: ${reason}`,
    `  from all gates ${direction === "on" ? "off" : "on"}`,
    ...story.map((flip, index) => `  ${index + 1}. ${flipWords(flip)}`),
    ...stalls.map((stall) => `  then: ${stallWords(stall)}`),
    ...(remedy === undefined ? [] : [`  goes on after: ${flipWords(remedy)}`]),
  ];
}

function stallWords({ plugin, node, what, warning }: Stall): string {
  return `${plugin} on ${node}: ${what}${warning === undefined ? "" : `: ${warning}`}`;
}

function contractLine(violations: readonly string[]): string {
  return violations.length === 0
    ? "the contract was kept after every step, and no data was lost"
    : "the contract was broken:";
}

function onOff(isOn: boolean): "on" | "off" {
  return isOn ? "on" : "off";
}
