/** Orders of flips, each on a cluster of its own from its start: what an exploration says of them, without its short cuts. */
import type { PluginName } from "@longshore/local";
import { componentsOf, controllerManager, type Flip, flipWords } from "./flip.ts";
import { SkewWorld } from "./skew-world.ts";
import type { SkewOptions, Stall } from "./stall.ts";

/** A flip as it went on a cluster of its own. */
export interface ReplayedStep {
  readonly flip: Flip;
  readonly stalls: readonly Stall[];
  /** The state at rest after it. */
  readonly state: string;
}

/** An order as it went. */
export interface ReplayedOrder {
  readonly steps: readonly ReplayedStep[];
  readonly violations: readonly string[];
}

/** Makes the flips one after another on a new cluster, whose gates are all off. */
export function replay(options: SkewOptions, flips: readonly Flip[]): Promise<ReplayedOrder> {
  return SkewWorld.play(options, false, async (world) => {
    const steps: ReplayedStep[] = [];
    const violations: string[] = [];
    let seen = 0;
    const note = (after: string) => {
      violations.push(
        ...world.watch.violations.slice(seen).map((violation) => `after ${after}: ${violation}`),
      );
      seen = world.watch.violations.length;
    };
    for (const flip of flips) {
      await world.step(flip);
      note(flipWords(flip));
      steps.push({ flip, stalls: world.stalls, state: world.state() });
    }
    await world.end();
    note("the end of all work");
    return { steps, violations };
  });
}

/** How many orders there are of switching every gate on, all nodes drained as the rule says. */
export function orderCount(plugins: readonly PluginName[], nodes: number): number {
  const flips = plugins.length * (nodes + 1);
  return Array.from({ length: flips }, (_, index) => index + 1).reduce((product, n) => product * n, 1);
}

/**
 * The order of that number, from 1 on: all gates on, then off again in the same order. The orders are numbered as dictionaries are,
 * the controller manager before the nodes and the plugins as they are given.
 */
export function orderNumbered(
  plugins: readonly PluginName[],
  nodes: number,
  number: number,
): readonly Flip[] {
  const left = componentsOf(nodes).flatMap((component) => plugins.map((plugin) => ({ component, plugin })));
  let rest = number - 1;
  const order: { readonly component: string; readonly plugin: PluginName }[] = [];
  while (left.length > 0) {
    const block = Array.from({ length: left.length - 1 }, (_, index) => index + 1).reduce((n, k) => n * k, 1);
    order.push(...left.splice(Math.floor(rest / block), 1));
    rest %= block;
  }
  const flips = (isOn: boolean) =>
    order.map((each) => ({ ...each, isOn, isDrained: each.component !== controllerManager }));
  return [...flips(true), ...flips(false)];
}
