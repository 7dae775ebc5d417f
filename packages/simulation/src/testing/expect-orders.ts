/**
 * Every order of flips of two plugins on two nodes, in one mode. A thread runs one file of tests at a time, so each mode has
 * a file of its own.
 */
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { modeWords, orderLines } from "../skew/describe-skew.ts";
import { exploreSkew, type SkewGraph } from "../skew/explore-skew.ts";
import { type Flip, flipWords } from "../skew/flip.ts";
import { orderCount, orderNumbered, replay } from "../skew/replay-orders.ts";
import { ordersOf } from "../skew/skew-orders.ts";
import type { SkewMode } from "../skew/stall.ts";

const guide = new URL("../../../../docs/guides/version-skew.md", import.meta.url);
/** Orders that are made again, each on a cluster of its own; far from each other. */
const replayed = 6;

/** Explores, compares with the guide, and makes some orders again on new clusters. */
export async function expectOrders(mode: SkewMode): Promise<void> {
  const options = { plugins: ["aws-ebs", "cinder"] as const, nodes: 2, mode };
  const graph = await exploreSkew(options);
  expect(graph.violations).toEqual([]);
  const { counts } = ordersOf(graph);
  // Six flips in every order, each of the four of a kubelet with and without a drain.
  expect(counts.map(({ orders }) => orders)).toEqual([720 * 16, 720 * 16]);
  if (mode === "node-only") expect(counts.map(({ safe }) => safe)).toEqual([720 * 16, 720 * 16]);
  expect(readFileSync(guide, "utf8")).toContain(
    [`${mode}: ${modeWords[mode]}`, ...orderLines(graph)].join("\n"),
  );
  const last = orderCount(options.plugins, options.nodes);
  for (let n = 0; n < replayed; n++) {
    const number = 1 + Math.floor((n * (last - 1)) / (replayed - 1));
    await expectSame(graph, orderNumbered(options.plugins, options.nodes, number));
  }
}

/** A cluster of its own goes through the same states as the one that was walked. */
async function expectSame(graph: SkewGraph, flips: readonly Flip[]): Promise<void> {
  const { steps, violations } = await replay(graph.options, flips);
  expect(violations).toEqual([]);
  let at = 0;
  for (const { flip, stalls, state } of steps) {
    const edge = graph.states[at]?.edges.get(flipWords(flip));
    expect(graph.states[edge?.to ?? -1]?.key).toBe(state);
    expect(edge?.stalls.map(({ plugin, node }) => `${plugin} ${node}`).sort()).toEqual(
      stalls.map(({ plugin, node }) => `${plugin} ${node}`).sort(),
    );
    at = edge?.to ?? -1;
  }
}
