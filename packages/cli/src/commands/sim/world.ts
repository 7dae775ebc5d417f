/** What is simulated of every seed, and the flags that say so. */
import type { SimulationOptions } from "@longshore/simulation";

/** The options that all seeds of a run of the command have in common. */
export type World = Pick<SimulationOptions, "nodes" | "restMs">;

/** A rest is given in hours. */
export const hourMs = 3_600_000;

/** The flags with which `longshore sim` simulates this world; those that are the default are left out. */
export function worldFlags({ nodes, restMs }: World): readonly string[] {
  return [
    ...(nodes === undefined || nodes === 2 ? [] : ["--nodes", String(nodes)]),
    ...(restMs === undefined ? [] : ["--rest-hours", String(restMs / hourMs)]),
  ];
}
