/** A gauge of how many things there are, by their labels: a change costs the same however many there are. */
import type { Meter, MetricLabels, MetricOptions } from "@longshore/runtime";

interface Counted {
  readonly labels: MetricLabels;
  count: number;
}

/**
 * Counts what was put in and not dropped. Of labels with nothing left there is no value.
 *
 * Invariant: each key counts once, under the labels that it had last.
 */
export class CountedGauge {
  readonly #gauge: ReturnType<Meter["gauge"]>;
  readonly #counts = new Map<string, Counted>();
  readonly #ofKey = new Map<string, Counted>();

  constructor(meter: Meter, name: string, options: MetricOptions) {
    this.#gauge = meter.gauge(name, options);
  }

  /** The thing of this key has these labels from now on. */
  put(key: string, labels: MetricLabels): void {
    const id = JSON.stringify(labels);
    const counted = this.#counts.get(id) ?? { labels, count: 0 };
    if (this.#ofKey.get(key) === counted) return;
    this.drop(key);
    this.#counts.set(id, counted);
    this.#ofKey.set(key, counted);
    counted.count++;
    this.#gauge.set(counted.count, labels);
  }

  /** The thing is gone; fine when it was not there. */
  drop(key: string): void {
    const counted = this.#ofKey.get(key);
    if (counted === undefined) return;
    this.#ofKey.delete(key);
    counted.count--;
    if (counted.count > 0) {
      this.#gauge.set(counted.count, counted.labels);
      return;
    }
    this.#counts.delete(JSON.stringify(counted.labels));
    this.#gauge.remove(counted.labels);
  }

  /** Drops everything: who counted has stopped, and must not leave values behind. */
  clear(): void {
    for (const { labels } of this.#counts.values()) this.#gauge.remove(labels);
    this.#counts.clear();
    this.#ofKey.clear();
  }
}
