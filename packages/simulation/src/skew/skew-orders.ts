/**
 * The orders in which all gates go on, or off, as paths in what was explored: how many there are, in how many of them the
 * work goes on after every flip, and what is the shortest story of each reason why it does not. Pure.
 */
import type { SkewEdge, SkewGraph, SkewNode } from "./explore-skew.ts";
import { controllerManager, type Flip, flipWords, gatesKey, uniformGates } from "./flip.ts";
import type { Stall } from "./stall.ts";

/** All gates on, or all off again. */
export type Direction = "on" | "off";

/** The orders of one direction. */
export interface OrderCount {
  readonly direction: Direction;
  /** Every order of the flips, each flip of a kubelet with and without a drain. */
  readonly orders: number;
  /** Those in which all work goes on after every flip. */
  readonly safe: number;
}

/** Why orders are unsafe, with the fewest flips that show it. */
export interface UnsafeGroup {
  readonly direction: Direction;
  readonly reason: string;
  /** Orders in which it happens. */
  readonly orders: number;
  /** The flips of the story, from where all gates are off, or on. */
  readonly story: readonly Flip[];
  /** What does not go on after the last of them. */
  readonly stalls: readonly Stall[];
  /** The one flip after which it does; undefined where no single one helps. */
  readonly remedy: Flip | undefined;
}

/** What the exploration says of orders. */
export interface SkewOrders {
  readonly counts: readonly OrderCount[];
  readonly unsafe: readonly UnsafeGroup[];
}

const directions: readonly Direction[] = ["on", "off"];

/** Counts the orders and groups those that are unsafe by their reasons. */
export function ordersOf(graph: SkewGraph): SkewOrders {
  const counts = directions.map((direction) => {
    const orders = countOrders(graph, direction, () => false);
    const safe = countOrders(graph, direction, (edge) => edge.stalls.length > 0);
    return { direction, orders, safe };
  });
  const unsafe = directions.flatMap((direction) => {
    const start = startOf(graph, direction);
    const all = countOrders(graph, direction, () => false);
    return reasonsOf(graph, direction).map((reason) => {
      const isMeant = (edge: SkewEdge) => edge.stalls.some((stall) => reasonOf(stall, direction) === reason);
      const path = shortestTo(graph, direction, start, isMeant);
      const last = path.at(-1);
      const stalls = (last?.stalls ?? [])
        .filter((stall) => reasonOf(stall, direction) === reason)
        .sort((a, b) => (`${a.plugin} ${a.node}` < `${b.plugin} ${b.node}` ? -1 : 1));
      return {
        direction,
        reason,
        orders: all - countOrders(graph, direction, isMeant),
        story: path.map(({ flip }) => flip),
        stalls,
        remedy: remedyOf(graph, last, direction),
      };
    });
  });
  return { counts, unsafe };
}

/** Why the work does not go on, without the names of plugin and node. */
export function reasonOf(stall: Stall, direction: Direction): string {
  const { what, controllerManager: manager, kubelet } = stall;
  if (manager === "off" && kubelet === "on") {
    return direction === "on"
      ? `a kubelet is on before the controller manager: ${what}`
      : `the controller manager is off before a kubelet: ${what}`;
  }
  return `${what} while the controller manager is ${manager} and the kubelet is ${kubelet}`;
}

function startOf({ states, options }: SkewGraph, direction: Direction): number {
  const key = gatesKey(uniformGates(options.nodes, options.plugins, direction === "off"));
  return states.findIndex(({ gates }) => gatesKey(gates) === key);
}

/** The flips from a state that go in this direction. */
function onward({ edges }: SkewNode, direction: Direction): readonly SkewEdge[] {
  return [...edges.values()].filter(({ flip }) => flip.isOn === (direction === "on"));
}

/** How many orders have no flip of the kind that is left out. */
function countOrders(graph: SkewGraph, direction: Direction, isLeftOut: (edge: SkewEdge) => boolean): number {
  const known = new Map<number, number>();
  const from = (at: number): number => {
    const before = known.get(at);
    if (before !== undefined) return before;
    const edges = onward(graph.states[at] as SkewNode, direction);
    const ways =
      edges.length === 0
        ? 1
        : edges.filter((edge) => !isLeftOut(edge)).reduce((n, { to }) => n + from(to), 0);
    known.set(at, ways);
    return ways;
  };
  return from(startOf(graph, direction));
}

function reasonsOf({ states }: SkewGraph, direction: Direction): readonly string[] {
  const edges = states.flatMap((state) => onward(state, direction));
  return [
    ...new Set(edges.flatMap(({ stalls }) => stalls.map((stall) => reasonOf(stall, direction)))),
  ].sort();
}

/** The shortest path that ends with such a flip; of two that are as short the one with drained nodes. */
function shortestTo(
  graph: SkewGraph,
  direction: Direction,
  start: number,
  isMeant: (edge: SkewEdge) => boolean,
): readonly SkewEdge[] {
  const seen = new Set([start]);
  let border: { readonly at: number; readonly path: readonly SkewEdge[] }[] = [{ at: start, path: [] }];
  while (border.length > 0) {
    const next = border.flatMap(({ at, path }) =>
      byWords(onward(graph.states[at] as SkewNode, direction)).map((edge) => ({
        at: edge.to,
        path: [...path, edge],
      })),
    );
    const found = next.find(({ path }) => isMeant(path.at(-1) as SkewEdge));
    if (found !== undefined) return found.path;
    border = next.filter(({ at }) => {
      const isNew = !seen.has(at);
      seen.add(at);
      return isNew;
    });
  }
  return [];
}

/** The same flips whatever the order in which they were found: the controller manager's first, then drained nodes'. */
function byWords(edges: readonly SkewEdge[]): readonly SkewEdge[] {
  return [...edges].sort((a, b) => (flipWords(a.flip) < flipWords(b.flip) ? -1 : 1));
}

/** A flip after which all goes on: onward in this direction if there is one, and rather of the controller manager. */
function remedyOf(graph: SkewGraph, last: SkewEdge | undefined, direction: Direction): Flip | undefined {
  if (last === undefined) return undefined;
  const cures = [...(graph.states[last.to] as SkewNode).edges.values()].filter(
    ({ stalls }) => stalls.length === 0,
  );
  const rank = ({ flip }: SkewEdge) =>
    (flip.isOn === (direction === "on") ? 0 : 2) + (flip.component === controllerManager ? 0 : 1);
  const [best] = cures.sort((a, b) => rank(a) - rank(b) || (flipWords(a.flip) < flipWords(b.flip) ? -1 : 1));
  return best?.flip;
}
