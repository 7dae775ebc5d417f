/** A gauge of how many things there are, by their labels: a change costs the same however many there are. */
import type { Meter, MetricLabels, MetricOptions } from "@longshore/runtime";

interface Counted {
  readonly labels: MetricLabels;
  count: number;
}

/**
 * Counts what was put in and not dropped. Of labels with nothing left there is no value.
 *
 * Invariant: each thing counts once, under the labels that it had last.
 */
export class CountedGauge {
  readonly #gauge: ReturnType<Meter["gauge"]>;
  readonly #counts = new Map<string, Counted>();
  readonly #ofThing = new Map<unknown, Counted>();

  constructor(meter: Meter, name: string, options: MetricOptions) {
    this.#gauge = meter.gauge(name, options);
  }

  /** The thing has these labels from now on. @param thing an object, or a text that names it */
  put(thing: unknown, labels: MetricLabels): void {
    const id = textOf(labels);
    const counted = this.#counts.get(id) ?? { labels, count: 0 };
    if (this.#ofThing.get(thing) === counted) return;
    this.drop(thing);
    this.#counts.set(id, counted);
    this.#ofThing.set(thing, counted);
    counted.count++;
    this.#gauge.set(counted.count, labels);
  }

  /** The thing is gone; fine when it was not there. */
  drop(thing: unknown): void {
    const counted = this.#ofThing.get(thing);
    if (counted === undefined) return;
    this.#ofThing.delete(thing);
    counted.count--;
    if (counted.count > 0) {
      this.#gauge.set(counted.count, counted.labels);
      return;
    }
    this.#counts.delete(textOf(counted.labels));
    this.#gauge.remove(counted.labels);
  }

  /** Drops everything: who counted has stopped, and must not leave values behind. */
  clear(): void {
    for (const { labels } of this.#counts.values()) this.#gauge.remove(labels);
    this.#counts.clear();
    this.#ofThing.clear();
  }
}

/** The same for the same labels. */
function textOf(labels: MetricLabels): string {
  let text = "";
  for (const label in labels) text += `${label}\n${labels[label]}\n`;
  return text;
}
