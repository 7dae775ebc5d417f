/** What the provisioner counts, under the reference's names (docs/behaviour/sidecars.md 2.11). */
import type { PersistentVolume, PersistentVolumeClaim } from "@longshore/kube";
import type { Meter } from "@longshore/runtime";

/** Counts volumes made and deleted, and attempts that failed. */
export interface ProvisionerMetrics {
  provisioned(claim: PersistentVolumeClaim, tookMs: number): void;
  provisionFailed(claim: PersistentVolumeClaim): void;
  deleted(pv: PersistentVolume, tookMs: number): void;
  deleteFailed(pv: PersistentVolume): void;
}

/** The metrics of `meter`. */
export function provisionerMetrics(meter: Meter): ProvisionerMetrics {
  const provision = outcomes(meter, "controller_persistentvolumeclaim_provision", ["class", "source"]);
  const deletion = outcomes(meter, "controller_persistentvolume_delete", ["class"]);
  const ofClaim = ({ spec }: PersistentVolumeClaim) => ({
    class: spec?.storageClassName ?? "",
    source: (spec?.dataSource ?? spec?.dataSourceRef)?.kind ?? "",
  });
  const ofVolume = ({ spec }: PersistentVolume) => ({ class: spec?.storageClassName ?? "" });
  return {
    provisioned: (claim, tookMs) => provision.done(ofClaim(claim), tookMs),
    provisionFailed: (claim) => provision.failed(ofClaim(claim)),
    deleted: (pv, tookMs) => deletion.done(ofVolume(pv), tookMs),
    deleteFailed: (pv) => deletion.failed(ofVolume(pv)),
  };
}

/** In seconds. */
const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

function outcomes(meter: Meter, name: string, labels: readonly string[]) {
  const total = meter.counter(`${name}_total`, { help: "How often it succeeded.", labels });
  const failures = meter.counter(`${name}_failed_total`, { help: "How often it failed.", labels });
  const seconds = meter.histogram(`${name}_duration_seconds`, {
    help: "How long a success took, in seconds.",
    labels,
    buckets,
  });
  return {
    done(of: Readonly<Record<string, string>>, tookMs: number) {
      total.add(1, of);
      seconds.observe(tookMs / 1000, of);
    },
    failed: (of: Readonly<Record<string, string>>) => failures.add(1, of),
  };
}
