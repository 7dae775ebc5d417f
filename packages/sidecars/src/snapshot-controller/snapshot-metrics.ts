/** How long snapshots take, by the reference's metrics (external-snapshotter, pkg/metrics). */
import type { Stored } from "@longshore/kube";
import type { Clock, Meter } from "@longshore/runtime";
import type { VolumeSnapshot } from "@longshore/storage";
import { isPreProvisioned } from "./binding.ts";
import type { ObservedSnapshot } from "./snapshot-step.ts";

const operations = ["CreateSnapshot", "CreateSnapshotAndReady", "DeleteSnapshot"] as const;
type Operation = (typeof operations)[number];

/** Buckets of `snapshot_controller_operation_total_seconds`, in seconds, as the reference has them. */
const buckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600];

interface Begun {
  readonly sinceMs: number;
  readonly driver: string;
}

/** Measures the operations of the snapshot controller, each from when it was first seen to be under way. */
export class SnapshotMetrics {
  readonly #clock: Clock;
  readonly #seconds: ReturnType<Meter["histogram"]>;
  readonly #inFlight: ReturnType<Meter["gauge"]>;
  readonly #begun = new Map<string, Begun>();

  constructor({ clock, meter }: { readonly clock: Clock; readonly meter: Meter }) {
    this.#clock = clock;
    this.#seconds = meter.histogram("snapshot_controller_operation_total_seconds", {
      help: "Total number of seconds spent by the controller on an operation",
      labels: ["driver_name", "operation_name", "operation_status", "snapshot_type"],
      buckets,
    });
    this.#inFlight = meter.gauge("snapshot_controller_operations_in_flight", {
      help: "Total number of operations in flight",
    });
  }

  /** A pass looks at a snapshot: what is to be done with it is under way. */
  observed({ snapshot, content, snapshotClass }: ObservedSnapshot): void {
    const driver = content?.spec.driver ?? snapshotClass?.driver ?? "unknown";
    const { status, metadata } = snapshot;
    if (metadata.deletionTimestamp !== undefined) {
      for (const operation of operations) {
        if (operation !== "DeleteSnapshot") this.#begun.delete(keyOf(metadata.uid, operation));
      }
      this.#begin(metadata.uid, "DeleteSnapshot", driver);
    } else if (status?.readyToUse !== true) {
      if (status?.creationTime === undefined) this.#begin(metadata.uid, "CreateSnapshot", driver);
      this.#begin(metadata.uid, "CreateSnapshotAndReady", driver);
    }
    this.#inFlight.set(this.#begun.size);
  }

  /** The snapshot was cut. */
  created({ snapshot, content }: ObservedSnapshot): void {
    this.#end(snapshot, "CreateSnapshot", content?.spec.driver);
  }

  /** The snapshot is ready. */
  ready({ snapshot, content }: ObservedSnapshot): void {
    this.#end(snapshot, "CreateSnapshot", content?.spec.driver);
    this.#end(snapshot, "CreateSnapshotAndReady", content?.spec.driver);
  }

  /** The object is gone: what else was under way has ended without being measured. */
  deleted(snapshot: Stored<VolumeSnapshot>): void {
    this.#end(snapshot, "DeleteSnapshot", undefined);
    for (const operation of operations) this.#begun.delete(keyOf(snapshot.metadata.uid, operation));
    this.#inFlight.set(this.#begun.size);
  }

  #begin(uid: string, operation: Operation, driver: string): void {
    const key = keyOf(uid, operation);
    if (!this.#begun.has(key)) this.#begun.set(key, { sinceMs: this.#clock.monotonicMs(), driver });
  }

  #end(snapshot: Stored<VolumeSnapshot>, operation: Operation, driver: string | undefined): void {
    const key = keyOf(snapshot.metadata.uid, operation);
    const begun = this.#begun.get(key);
    if (begun === undefined) return;
    this.#begun.delete(key);
    this.#inFlight.set(this.#begun.size);
    this.#seconds.observe((this.#clock.monotonicMs() - begun.sinceMs) / 1000, {
      driver_name: driver ?? begun.driver,
      operation_name: operation,
      operation_status: "Success",
      snapshot_type: isPreProvisioned(snapshot) ? "preProvisioned" : "dynamic",
    });
  }
}

function keyOf(uid: string, operation: Operation): string {
  return `${uid}/${operation}`;
}
