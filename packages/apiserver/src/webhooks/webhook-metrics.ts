/** Metrics of webhooks, with the names and labels of the reference (apiserver admission/metrics). */
import { KubeApiError } from "@longshore/kube/basics";
import type { Clock, Counter, Histogram, Meter } from "@longshore/runtime";
import type { WebhookOperation } from "../registry/registry-context.ts";
import type { Webhook } from "./webhook.ts";

/** Measures the calls of one server. */
export class WebhookMetrics {
  readonly #clock: Clock;
  readonly #duration: Histogram;
  readonly #rejections: Counter;

  constructor(clock: Clock, meter: Meter) {
    this.#clock = clock;
    this.#duration = meter.histogram("apiserver_admission_webhook_admission_duration_seconds", {
      help: "Seconds that a call of a webhook took, by its name, type and operation, and whether it refused.",
      labels: ["name", "type", "operation", "rejected"],
      buckets: [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25],
    });
    this.#rejections = meter.counter("apiserver_admission_webhook_rejection_count", {
      help: "Requests that a webhook refused, or that were refused since it could not be called.",
      labels: ["name", "type", "operation", "error_type", "rejection_code"],
    });
  }

  /** A call begins. Returns what is to be called at its end, with the error that it ended with. */
  begin(
    { name, isMutating, ignoresFailures }: Webhook,
    operation: WebhookOperation,
  ): (error?: unknown) => void {
    const start = this.#clock.monotonicMs();
    const labels = { name, type: isMutating ? "admit" : "validating", operation };
    return (error) => {
      const refuses = error instanceof KubeApiError;
      const rejected = refuses || (error !== undefined && !ignoresFailures);
      this.#duration.observe((this.#clock.monotonicMs() - start) / 1000, {
        ...labels,
        rejected: String(rejected),
      });
      if (!rejected) return;
      const cause = refuses ? "no_error" : "calling_webhook_error";
      const code = refuses ? String(error.code) : "0";
      this.#rejections.add(1, { ...labels, error_type: cause, rejection_code: code });
    };
  }
}
