/** The virtual form of the {@link Meter} seam: values can be read by a test or a simulation. */
import type { Meter, MetricLabels, MetricOptions } from "./meter.ts";

type Kind = "counter" | "gauge" | "histogram";

/** A meter whose values can be read. */
export interface RecordingMeter extends Meter {
  /** A counter's sum, a gauge's last value or a histogram's number of observations; 0 when there is none. */
  value(name: string, labels?: MetricLabels): number;
  /** What a histogram observed, in order. */
  observations(name: string, labels?: MetricLabels): readonly number[];
}

/** Keeps every value. */
export function recordingMeter(): RecordingMeter {
  const kinds = new Map<string, { readonly kind: Kind; readonly labels: ReadonlySet<string> }>();
  const values = new Map<string, number>();
  const observed = new Map<string, number[]>();
  const updates = new Set<() => void>();

  function declare(name: string, kind: Kind, options: MetricOptions): (labels: MetricLabels) => string {
    const present = kinds.get(name) ?? { kind, labels: new Set(options.labels ?? []) };
    if (present.kind !== kind) {
      throw new Error(`metric ${name} is a ${present.kind}, not a ${kind}: give one of them another name`);
    }
    kinds.set(name, present);
    return (labels) => {
      for (const label of Object.keys(labels)) {
        if (!present.labels.has(label)) throw new Error(`metric ${name} has no label ${label}: declare it`);
      }
      return keyOf(name, labels);
    };
  }

  return {
    counter(name, options) {
      const key = declare(name, "counter", options);
      return {
        add(amount, labels = {}) {
          if (amount < 0) throw new Error(`counter ${name} cannot go down`);
          values.set(key(labels), (values.get(key(labels)) ?? 0) + amount);
        },
      };
    },
    gauge(name, options) {
      const key = declare(name, "gauge", options);
      return {
        set: (value, labels = {}) => void values.set(key(labels), value),
        remove: (labels) => void values.delete(key(labels)),
      };
    },
    histogram(name, options) {
      const key = declare(name, "histogram", options);
      return {
        observe(value, labels = {}) {
          const list = observed.get(key(labels)) ?? [];
          observed.set(key(labels), list);
          list.push(value);
        },
      };
    },
    beforeReading: (update) => {
      updates.add(update);
      return () => updates.delete(update);
    },
    value: (name, labels = {}) => {
      for (const update of updates) update();
      const key = keyOf(name, labels);
      return values.get(key) ?? observed.get(key)?.length ?? 0;
    },
    observations: (name, labels = {}) => observed.get(keyOf(name, labels)) ?? [],
  };
}

function keyOf(name: string, labels: MetricLabels): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([name, sorted]);
}
