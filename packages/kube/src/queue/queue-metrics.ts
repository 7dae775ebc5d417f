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
  const label = { name };
  return {
    added: () => adds.add(1, label),
    retried: () => retries.add(1, label),
    depth: (keys) => depth.set(keys, label),
    waited: (ms) => waited.observe(ms / 1000, label),
    worked: (ms) => worked.observe(ms / 1000, label),
  };
}
