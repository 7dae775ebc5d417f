/** The seam for metrics. Names and labels follow the Prometheus conventions of the reference. */

/** Label values of one observation. */
export type MetricLabels = Readonly<Record<string, string>>;

/** Only goes up. */
export interface Counter {
  add(amount: number, labels?: MetricLabels): void;
}
/** Goes up and down. */
export interface Gauge {
  set(value: number, labels?: MetricLabels): void;
}
/** Counts observations in buckets. */
export interface Histogram {
  observe(value: number, labels?: MetricLabels): void;
}

/** Describes a metric; the same name always means the same metric. */
export interface MetricOptions {
  readonly help: string;
  readonly labels?: readonly string[];
  /** Upper bounds of a histogram's buckets. */
  readonly buckets?: readonly number[];
}

/** Makes metrics. The same name always returns the same metric. */
export interface Meter {
  counter(name: string, options: MetricOptions): Counter;
  gauge(name: string, options: MetricOptions): Gauge;
  histogram(name: string, options: MetricOptions): Histogram;
}

/** Measures nothing. */
export const noMeter: Meter = {
  counter: () => ({ add() {} }),
  gauge: () => ({ set() {} }),
  histogram: () => ({ observe() {} }),
};
