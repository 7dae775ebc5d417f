/** The real form of the {@link Meter} seam, on prom-client. */
import { createRequire } from "node:module";
import type * as Prometheus from "prom-client";
import type { Meter, MetricOptions } from "./meter.ts";

/** A meter that can be scraped. */
export interface PrometheusMeter extends Meter {
  /** All metrics in the text form of Prometheus. */
  exposition(): Promise<string>;
  /** The content type of {@link exposition}. */
  readonly contentType: string;
}

const require = createRequire(import.meta.url);

/** A meter with a registry of its own. */
export function createMeter(): PrometheusMeter {
  // Loaded by the first meter: most programs have none, and would pay a tenth of their start for it.
  const prometheus = require("prom-client") as typeof Prometheus;
  const registry = new prometheus.Registry();
  const updates = new Set<() => void>();
  const describe = (name: string, options: MetricOptions) => {
    return { name, help: options.help, labelNames: [...(options.labels ?? [])], registers: [registry] };
  };
  function once<T extends Prometheus.Metric>(name: string, kind: string, make: () => T): T {
    const present = registry.getSingleMetric(name) as
      | (Prometheus.Metric & { readonly longshoreKind?: string })
      | undefined;
    if (present === undefined) return Object.assign(make(), { longshoreKind: kind });
    if (present.longshoreKind !== kind) {
      throw new Error(
        `metric ${name} is a ${present.longshoreKind}, not a ${kind}: give one of them another name`,
      );
    }
    return present as T;
  }
  return {
    contentType: registry.contentType,
    exposition() {
      for (const update of updates) update();
      return registry.metrics();
    },
    beforeReading: (update) => {
      updates.add(update);
      return () => updates.delete(update);
    },
    counter(name, options) {
      const metric = once(name, "counter", () => new prometheus.Counter(describe(name, options)));
      return { add: (amount, labels = {}) => metric.inc(labels, amount) };
    },
    gauge(name, options) {
      const metric = once(name, "gauge", () => new prometheus.Gauge(describe(name, options)));
      return {
        set: (value, labels = {}) => metric.set(labels, value),
        remove: (labels) => metric.remove(labels),
      };
    },
    histogram(name, options) {
      const buckets = options.buckets === undefined ? {} : { buckets: [...options.buckets] };
      const metric = once(
        name,
        "histogram",
        () => new prometheus.Histogram({ ...describe(name, options), ...buckets }),
      );
      return { observe: (value, labels = {}) => metric.observe(labels, value) };
    },
  };
}
