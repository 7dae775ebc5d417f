/** The metrics of a work queue, under the names that Kubernetes' own controllers use. */
import type { Meter } from "@longshore/runtime";

/** Receives the events of a queue. */
export interface QueueMetrics {
  added(): void;
  retried(): void;
  /** Keys waiting now. */
  depth(keys: number): void;
  /** A key waited this long for a worker, in milliseconds. */
  waited(ms: number): void;
  /** A pass took this long, in milliseconds. */
  worked(ms: number): void;
  /** How long each pass that runs now has run, in milliseconds, is asked for when the metrics are read; until `end`. */
  running(ages: () => Iterable<number>): { end(): void };
}

const labels = ["name"];
const buckets = [0.001, 0.01, 0.1, 1, 10, 60, 600];

/** The metrics of the queue `name` (k8s.io/component-base/metrics/prometheus/workqueue). */
export function queueMetrics(meter: Meter, name: string): QueueMetrics {
  const adds = meter.counter("workqueue_adds_total", { help: "Keys added to the queue", labels });
  const retries = meter.counter("workqueue_retries_total", { help: "Passes that failed", labels });
  const depth = meter.gauge("workqueue_depth", { help: "Keys waiting for a worker", labels });
  const waited = meter.histogram("workqueue_queue_duration_seconds", {
    help: "How long a key waits for a worker",
    labels,
    buckets,
  });
  const worked = meter.histogram("workqueue_work_duration_seconds", {
    help: "How long a pass takes",
    labels,
    buckets,
  });
  const unfinished = meter.gauge("workqueue_unfinished_work_seconds", {
    help: "How long the passes that run now have run, together",
    labels,
  });
  const longest = meter.gauge("workqueue_longest_running_processor_seconds", {
    help: "How long the pass that has run longest runs",
    labels,
  });
  const label = { name };
  return {
    running(ages) {
      const end = meter.beforeReading(() => {
        const seconds = [...ages()].map((ms) => ms / 1000);
        unfinished.set(
          seconds.reduce((sum, each) => sum + each, 0),
          label,
        );
        longest.set(Math.max(0, ...seconds), label);
      });
      return { end };
    },
    added: () => adds.add(1, label),
    retried: () => retries.add(1, label),
    depth: (keys) => depth.set(keys, label),
    waited: (ms) => waited.observe(ms / 1000, label),
    worked: (ms) => worked.observe(ms / 1000, label),
  };
}
