/** How long snapshots and group snapshots take, by the reference's metrics (external-snapshotter, pkg/metrics). */
import type { Clock, Meter } from "@longshore/runtime";

/** What is measured of: the names of its operations end with it. */
export type MeasuredKind = "Snapshot" | "GroupSnapshot";

/** How far an object has come. */
export interface MeasuredState {
  readonly kind: MeasuredKind;
  readonly uid: string;
  /** Undefined: not known yet. */
  readonly driver: string | undefined;
  readonly isPreProvisioned: boolean;
  readonly isCut: boolean;
  readonly isReady: boolean;
  /** It is being deleted, and nothing keeps it from being. */
  readonly isGoing: boolean;
}

interface Begun {
  readonly sinceMs: number;
  readonly driver: string;
  readonly type: "dynamic" | "pre-provisioned";
}

/** Buckets of `snapshot_controller_operation_total_seconds`, in seconds, as the reference has them. */
const buckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600];

/** Measures operations, each from when a pass first saw that it was under way until a pass sees that it has ended. */
export class SnapshotMetrics {
  readonly #clock: Clock;
  readonly #seconds: ReturnType<Meter["histogram"]>;
  readonly #inFlight: ReturnType<Meter["gauge"]>;
  readonly #begun = new Map<string, Begun>();

  constructor({ clock, meter }: { readonly clock: Clock; readonly meter: Meter }) {
    this.#clock = clock;
    this.#seconds = meter.histogram("snapshot_controller_operation_total_seconds", {
      help: "Total number of seconds spent by the controller on an operation",
      labels: ["driver_name", "operation_name", "snapshot_type", "operation_status"],
      buckets,
    });
    this.#inFlight = meter.gauge("snapshot_controller_operations_in_flight", {
      help: "Total number of operations in flight",
    });
  }

  /** A pass looks at an object. */
  look(state: MeasuredState): void {
    const { kind, isGoing, isCut, isReady } = state;
    if (isGoing) this.#begin(state, `Delete${kind}`);
    else {
      this.#follow(state, `Create${kind}`, isCut);
      this.#follow(state, `Create${kind}AndReady`, isReady);
    }
    this.#inFlight.set(this.#begun.size);
  }

  /** The object is gone, and what was under way to make it is over. */
  gone(kind: MeasuredKind, uid: string): void {
    const isDeleted = this.#end(uid, `Delete${kind}`, "success");
    for (const operation of [`Create${kind}`, `Create${kind}AndReady`]) {
      if (isDeleted) this.#end(uid, operation, "cancel");
      else this.#begun.delete(keyOf(uid, operation));
    }
    this.#inFlight.set(this.#begun.size);
  }

  #follow(state: MeasuredState, operation: string, isDone: boolean): void {
    if (isDone) this.#end(state.uid, operation, "success", state.driver);
    else this.#begin(state, operation);
  }

  #begin({ uid, driver = "unknown", isPreProvisioned }: MeasuredState, operation: string): void {
    const key = keyOf(uid, operation);
    if (this.#begun.has(key)) return;
    const type = isPreProvisioned ? "pre-provisioned" : "dynamic";
    this.#begun.set(key, { sinceMs: this.#clock.monotonicMs(), driver, type });
  }

  #end(uid: string, operation: string, status: "success" | "cancel", driver?: string): boolean {
    const key = keyOf(uid, operation);
    const begun = this.#begun.get(key);
    if (begun === undefined) return false;
    this.#begun.delete(key);
    this.#seconds.observe((this.#clock.monotonicMs() - begun.sinceMs) / 1000, {
      driver_name: driver ?? begun.driver,
      operation_name: operation,
      snapshot_type: begun.type,
      operation_status: status,
    });
    return true;
  }
}

function keyOf(uid: string, operation: string): string {
  return `${uid}/${operation}`;
}
