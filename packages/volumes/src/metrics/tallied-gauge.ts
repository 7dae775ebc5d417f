/** A gauge of how many things there are, by their labels, kept from each change and what was there before it. */
import type { Meter, MetricLabels, MetricOptions } from "@longshore/runtime";

interface Tally {
  readonly labels: MetricLabels;
  count: number;
}

/** Keeps a number for each set of labels, and nothing for each thing. Of labels with nothing left there is no value. */
export class TalliedGauge {
  readonly #gauge: ReturnType<Meter["gauge"]>;
  readonly #tallies = new Map<string, Tally>();

  constructor(meter: Meter, name: string, options: MetricOptions) {
    this.#gauge = meter.gauge(name, options);
  }

  /** One more (`by` 1) or one fewer (`by` -1) has these labels. */
  add(labels: MetricLabels, by: 1 | -1): void {
    const id = Object.values(labels).join("\n");
    const tally = this.#tallies.get(id) ?? { labels, count: 0 };
    tally.count += by;
    if (tally.count > 0) {
      this.#tallies.set(id, tally);
      this.#gauge.set(tally.count, labels);
    } else {
      this.#tallies.delete(id);
      this.#gauge.remove(labels);
    }
  }

  /** Leaves no value behind. */
  clear(): void {
    for (const { labels } of this.#tallies.values()) this.#gauge.remove(labels);
    this.#tallies.clear();
  }
}
