/**
 * Metrics of requests, with the names, labels and buckets of the reference (apiserver endpoints/metrics). Labels come from
 * what is served, so that no client can make more of them.
 */
import type { Clock, Counter, Gauge, Histogram, Meter } from "@longshore/runtime";
import { tableKey } from "../api/kind.ts";
import type { RegistryContext } from "../registry/registry-context.ts";
import type { ParsedRequest } from "./parsed-request.ts";
import type { InFlight } from "./request-limits.ts";

/** Where the metrics can be read. */
export interface MetricsText {
  readonly contentType: string;
  /** All metrics in the text form of Prometheus. */
  exposition(): Promise<string>;
}

const ofRequest = ["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"];
const ofWatch = ofRequest.filter((label) => label !== "dry_run");

type Labels = Readonly<Record<string, string>>;

/** Upper bounds of durations, in seconds (apiserver_request_duration_seconds). */
const durationBuckets = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
];

const verbs: Readonly<Record<string, string>> = {
  get: "GET",
  list: "LIST",
  watch: "WATCH",
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  delete: "DELETE",
  deletecollection: "DELETECOLLECTION",
};

/** Measures the requests of one server. */
export class RequestMetrics {
  readonly #clock: Clock;
  readonly #total: Counter;
  readonly #duration: Histogram;
  readonly #watches: Gauge;
  /** Open watches by their labels. */
  readonly #open = new Map<string, { readonly labels: Labels; count: number }>();

  constructor(clock: Clock, meter: Meter, inFlight: InFlight, context: RegistryContext) {
    this.#clock = clock;
    this.#total = meter.counter("apiserver_request_total", {
      help: "Requests by verb, dry run, group, version, resource, scope, component and code.",
      labels: [...ofRequest, "code"],
    });
    this.#duration = meter.histogram("apiserver_request_duration_seconds", {
      help: "Seconds from a request to its answer; watches are not measured.",
      labels: ofRequest,
      buckets: durationBuckets,
    });
    this.#watches = meter.gauge("apiserver_longrunning_requests", {
      help: "Watches that are open.",
      labels: ofWatch,
    });
    const current = meter.gauge("apiserver_current_inflight_requests", {
      help: "Requests that are being answered now, watches not counted.",
      labels: ["request_kind"],
    });
    const objects = meter.gauge("apiserver_storage_objects", {
      help: "Objects that are stored, by resource.",
      labels: ["resource"],
    });
    meter.beforeReading(() => {
      const { reads, writes } = inFlight.counts;
      current.set(reads, { request_kind: "readOnly" });
      current.set(writes, { request_kind: "mutating" });
      for (const kind of context.kinds.all()) {
        if (kind.virtual === true || kind.storedAs !== undefined) continue;
        const resource = tableKey(kind);
        objects.set(context.store.table(resource).size, { resource });
      }
    });
  }

  /** A request begins. Returns what is to be called with the code of its answer when that has ended. */
  begin(parsed: ParsedRequest, params: URLSearchParams): (code: number) => void {
    const labels = labelsOf(parsed, params);
    const start = this.#clock.monotonicMs();
    const isWatch = labels.verb === "WATCH";
    if (isWatch) this.#count(labels, 1);
    return (code) => {
      this.#total.add(1, { ...labels, code: String(code) });
      if (isWatch) this.#count(labels, -1);
      else this.#duration.observe((this.#clock.monotonicMs() - start) / 1000, labels);
    };
  }

  #count({ dry_run: _, ...labels }: Labels, change: 1 | -1): void {
    const key = Object.values(labels).join(" ");
    const open = this.#open.get(key) ?? { labels, count: 0 };
    open.count += change;
    if (open.count > 0) this.#open.set(key, open);
    else this.#open.delete(key);
    this.#watches.set(open.count, open.labels);
  }
}

function labelsOf(parsed: ParsedRequest, params: URLSearchParams): Labels {
  const dryRun = params.get("dryRun") === "All" ? "All" : "";
  const nothing = {
    group: "",
    version: "",
    resource: "",
    subresource: "",
    scope: "",
    component: "apiserver",
  };
  if (parsed.type === "path") {
    const verb = parsed.method === "GET" || parsed.method === "HEAD" ? "GET" : "other";
    return { ...nothing, verb, dry_run: dryRun };
  }
  if (!("operation" in parsed.outcome)) return { ...nothing, verb: "other", dry_run: dryRun };
  const { target } = parsed.outcome.operation;
  const { group, version, resource, subresource = "", namespace, name } = target;
  return {
    verb: verbs[target.verb] ?? "other",
    dry_run: dryRun,
    ...{ group, version, resource, subresource },
    scope: name !== undefined ? "resource" : namespace !== undefined ? "namespace" : "cluster",
    component: "apiserver",
  };
}
