/** A flip: one migration gate is set on one component, which is restarted. The alphabet of the exploration. */
import type { PluginName } from "@longshore/local";

/** The component whose gates those of the controllers are. */
export const controllerManager = "controller manager";

/** One gate of one component takes another value. */
export interface Flip {
  /** {@link controllerManager}, or a node, whose kubelet is meant. */
  readonly component: string;
  readonly plugin: PluginName;
  readonly isOn: boolean;
  /** Of a node: its pods have left it and everything is detached, as the rule says. The controller manager has none. */
  readonly isDrained: boolean;
}

/** Which plugins' gates are on, by component. */
export type GatePicture = ReadonlyMap<string, ReadonlySet<PluginName>>;

/** The components of a cluster with so many nodes: the controller manager, then the nodes. */
export function componentsOf(nodes: number): readonly string[] {
  return [controllerManager, ...Array.from({ length: nodes }, (_, index) => `node-${index + 1}`)];
}

/** The flip in words, e.g. `node-1, drained: cinder on`. */
export function flipWords({ component, plugin, isOn, isDrained }: Flip): string {
  const how = component === controllerManager ? "" : isDrained ? ", drained" : ", not drained";
  return `${component}${how}: ${plugin} ${isOn ? "on" : "off"}`;
}

/** Every flip that is possible: each gate to its other value, on a node with and without a drain. */
export function possibleFlips(gates: GatePicture, plugins: readonly PluginName[]): readonly Flip[] {
  return [...gates].flatMap(([component, on]) =>
    plugins.flatMap((plugin) => {
      const isOn = !on.has(plugin);
      return component === controllerManager
        ? [{ component, plugin, isOn, isDrained: false }]
        : [true, false].map((isDrained) => ({ component, plugin, isOn, isDrained }));
    }),
  );
}

/** The picture after the flip. */
export function flipped(
  gates: GatePicture,
  { component, plugin, isOn }: Omit<Flip, "isDrained">,
): GatePicture {
  const on = new Set(gates.get(component));
  if (isOn) on.add(plugin);
  else on.delete(plugin);
  return new Map([...gates].map(([name, plugins]) => [name, name === component ? on : plugins]));
}

/** The same value of every gate. */
export function uniformGates(nodes: number, plugins: readonly PluginName[], isOn: boolean): GatePicture {
  return new Map(componentsOf(nodes).map((component) => [component, new Set(isOn ? plugins : [])]));
}

/** The picture in one line, for comparison. */
export function gatesKey(gates: GatePicture): string {
  return [...gates].map(([name, on]) => `${name}=${[...on].sort().join("+") || "none"}`).join(" ");
}

/**
 * Flips, each made once in every picture of gates, as one walk that ends where it began (Hierholzer). There is such a walk because
 * every picture is left by as many flips as lead to it.
 */
export function tourOfFlips(start: GatePicture, plugins: readonly PluginName[]): readonly Flip[] {
  const open = new Map<string, Flip[]>();
  const openAt = (gates: GatePicture): Flip[] => {
    const key = gatesKey(gates);
    const flips = open.get(key) ?? [...possibleFlips(gates, plugins)];
    open.set(key, flips);
    return flips;
  };
  const stack: { readonly gates: GatePicture; readonly by?: Flip }[] = [{ gates: start }];
  const tour: Flip[] = [];
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const by = openAt(top.gates).shift();
    if (by !== undefined) stack.push({ gates: flipped(top.gates, by), by });
    else if (stack.pop()?.by !== undefined) tour.push(top.by as Flip);
  }
  return tour.reverse();
}
