/** How many volumes are wanted, and how many there are. Source: docs/behaviour/node-agent.md 10, docs/behaviour/controllers.md A11. */
import type { Meter } from "@longshore/runtime";
import { CountedGauge } from "./counted-gauge.ts";

/** Of which state a volume is counted. */
export type CountedState = "desired_state_of_world" | "actual_state_of_world";

/** Counts volumes by plugin and state. */
export class CountedVolumes {
  readonly #gauges: Readonly<Record<CountedState, CountedGauge>>;

  /** @param name of the metric: `volume_manager_total_volumes` or `attachdetach_controller_total_volumes` */
  constructor(meter: Meter, name: string) {
    const gauge = () =>
      new CountedGauge(meter, name, {
        help: "Number of volumes in the desired and in the actual state",
        labels: ["plugin_name", "state"],
      });
    this.#gauges = { desired_state_of_world: gauge(), actual_state_of_world: gauge() };
  }

  /** The volume is in the state. @param volume as for a {@link CountedGauge} @param pluginLabel as `volumePluginLabel` says it */
  put(state: CountedState, volume: unknown, pluginLabel: string): void {
    this.#gauges[state].put(volume, { plugin_name: pluginLabel, state });
  }

  /** The volume is in the state no more. */
  drop(state: CountedState, volume: unknown): void {
    this.#gauges[state].drop(volume);
  }

  /** Leaves no value behind. */
  clear(): void {
    for (const gauge of Object.values(this.#gauges)) gauge.clear();
  }
}
