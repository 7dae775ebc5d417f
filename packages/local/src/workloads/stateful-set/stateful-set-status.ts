/**
 * What the StatefulSet controller reports of a set. Pure. Source: apps/v1 StatefulSetStatus; kubernetes pkg/controller/statefulset
 * updateStatus, completeRollingUpdate.
 */
import { isDeleting, type Pod, type StatefulSet, type Stored } from "@longshore/kube";
import { isPodReady } from "../is-pod-ready.ts";
import { availability } from "../pod-sets/pod-availability.ts";
import { revisionLabel } from "../pod-sets/pod-from-template.ts";
import type { SetRevisions } from "./revisions.ts";

type Status = NonNullable<StatefulSet["status"]>;

/** The counts and revisions that the controller writes. */
export type StatefulSetReport = Omit<Status, "conditions">;

/** The report, and when the next pod becomes available, in milliseconds. @param revisions undefined: there are none yet */
export function statefulSetReport(
  set: Stored<StatefulSet>,
  pods: readonly Stored<Pod>[],
  revisions: SetRevisions | undefined,
  now: Date,
): { readonly status: StatefulSetReport; readonly nextMs: number | undefined } {
  const staying = pods.filter((pod) => !isDeleting(pod));
  const { available, nextMs } = availability(staying, set.spec?.minReadySeconds ?? 0, now);
  const ofRevision = (name: string) =>
    staying.filter(({ metadata }) => metadata.labels?.[revisionLabel] === name).length;
  const status = {
    replicas: pods.length,
    readyReplicas: staying.filter(isPodReady).length,
    availableReplicas: available,
    observedGeneration: set.metadata.generation ?? 1,
    ...(revisions && countsByRevision(revisions, ofRevision)),
  };
  return { status: isRolledOut(set, status) ? rolledOut(status) : status, nextMs };
}

/** Whether the set shows the report. The API server leaves a count of zero out. */
export function showsReport({ status = { replicas: 0 } }: StatefulSet, report: StatefulSetReport): boolean {
  return (Object.keys(report) as (keyof StatefulSetReport)[]).every(
    (field) => (status[field] ?? 0) === (report[field] ?? 0),
  );
}

function countsByRevision({ current, update }: SetRevisions, ofRevision: (name: string) => number) {
  return {
    currentRevision: current.name,
    updateRevision: update.name,
    currentReplicas: ofRevision(current.name),
    updatedReplicas: ofRevision(update.name),
  };
}

/** With `OnDelete` a rollout has no end. */
function isRolledOut({ spec }: StatefulSet, status: StatefulSetReport): boolean {
  const wanted = spec?.replicas ?? 1;
  return (
    spec?.updateStrategy?.type !== "OnDelete" &&
    status.updatedReplicas === wanted &&
    status.readyReplicas === wanted &&
    status.replicas === wanted
  );
}

function rolledOut(status: StatefulSetReport): StatefulSetReport {
  const { updateRevision = "", updatedReplicas = 0 } = status;
  return { ...status, currentRevision: updateRevision, currentReplicas: updatedReplicas };
}
