/**
 * The queues under the names that the reference gives them in `workqueue_*`, so that its dashboards and alerts hold
 * (docs/behaviour/sidecars.md 1). A queue for which the reference has the name of another keeps ours: one value would hide the other.
 */
import type { Meter, MetricLabels } from "@longshore/runtime";

/** The meter, in which the queues named by the keys of `names` have the names of its values. */
export function withQueueNames(meter: Meter, names: Readonly<Record<string, string>>): Meter {
  const isOfQueues = (metric: string) => metric.startsWith("workqueue_");
  const renamed = <L extends MetricLabels | undefined>(labels: L): L => {
    const name = labels?.name === undefined ? undefined : names[labels.name];
    return name === undefined ? labels : { ...labels, name };
  };
  return {
    counter(name, options) {
      const counter = meter.counter(name, options);
      return isOfQueues(name) ? { add: (n, labels) => counter.add(n, renamed(labels)) } : counter;
    },
    gauge(name, options) {
      const gauge = meter.gauge(name, options);
      if (!isOfQueues(name)) return gauge;
      return {
        set: (value, labels) => gauge.set(value, renamed(labels)),
        remove: (labels) => gauge.remove(renamed(labels)),
      };
    },
    histogram(name, options) {
      const histogram = meter.histogram(name, options);
      if (!isOfQueues(name)) return histogram;
      return { observe: (value, labels) => histogram.observe(value, renamed(labels)) };
    },
    beforeReading: (update) => meter.beforeReading(update),
  };
}

/** The names of external-attacher's queues. */
export const attacherQueues = {
  "attacher-attachments": "csi-attacher-va",
  "attacher-volumes": "csi-attacher-pv",
} as const;

/** The names of external-provisioner's queues (sig-storage-lib-external-provisioner, and its capacity controller). */
export const provisionerQueues = {
  "provisioner-claims": "claims",
  "provisioner-volumes": "volumes",
  "provisioner-capacity": "csistoragecapacity",
} as const;

/** The name of external-resizer's queue. */
export const resizerQueues = (driver: string) => ({ "resizer-claims": `${driver}-pvc` });
