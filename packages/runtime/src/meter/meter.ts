/** The seam for metrics. Names and labels follow the Prometheus conventions of the reference. */

/** Label values of one observation. */
export type MetricLabels = Readonly<Record<string, string>>;

/** Only goes up. */
export interface Counter {
  /** Adds `amount`, which is not negative. @throws Error for a negative amount or an undeclared label */
  add(amount: number, labels?: MetricLabels): void;
}
/** Goes up and down. */
export interface Gauge {
  /** The value from now on. @throws Error for an undeclared label */
  set(value: number, labels?: MetricLabels): void;
  /** What these labels name is gone: they have no value any more; fine when they had none. */
  remove(labels: MetricLabels): void;
}
/** Counts observations in buckets. */
export interface Histogram {
  /** Counts one observation, in the unit that the name says. @throws Error for an undeclared label */
  observe(value: number, labels?: MetricLabels): void;
}

/** Describes a metric; the same name always means the same metric. */
export interface MetricOptions {
  /** What it counts or measures, in a sentence. */
  readonly help: string;
  /** The labels that its observations may have; none when left out. */
  readonly labels?: readonly string[];
  /** Upper bounds of a histogram's buckets. */
  readonly buckets?: readonly number[];
}

/**
 * Makes metrics. The same name always returns the same metric, so that several components count into one; the labels are
 * those of the first call. Values go by their label values, in any order of the labels.
 *
 * @throws Error for a name that is a metric of another kind
 */
export interface Meter {
  /** A counter; as a rule its name ends in `_total`. */
  counter(name: string, options: MetricOptions): Counter;
  /** A gauge. */
  gauge(name: string, options: MetricOptions): Gauge;
  /**
   * Calls `update` before the values are read, for what would be costly to keep current; until the returned function is called.
   */
  beforeReading(update: () => void): () => void;
  /** A histogram; as a rule its name ends in the unit, e.g. `_seconds`. */
  histogram(name: string, options: MetricOptions): Histogram;
}

/** Measures nothing. */
export const noMeter: Meter = {
  counter: () => ({ add() {} }),
  gauge: () => ({ set() {}, remove() {} }),
  histogram: () => ({ observe() {} }),
  beforeReading: () => () => {},
};
