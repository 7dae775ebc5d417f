/**
 * What the Job controller does next: a pure function of the Job and its pods. Source: batch/v1 Job; kubernetes
 * pkg/controller/job as of 1.20: what has succeeded and failed is counted from the pods that are there.
 *
 *     adopt or release ──► delete what is too much ──► create what is missing ──► reportStatus ──► … deleteJob after its time
 */
import { apiTime, isDeleting, type Job, type Pod, type Stored } from "@longshore/kube";
import { backoffMs } from "@longshore/runtime";
import { isPodReady } from "../is-pod-ready.ts";
import { claimObjects, controllerReference, type Owner } from "../pod-sets/claim-pods.ts";
import { isActive } from "../pod-sets/pod-availability.ts";
import { podFromTemplate } from "../pod-sets/pod-from-template.ts";
import type { PlannedObservation, PodSetStep } from "../pod-sets/pod-set-steps.ts";
import { completedIndexesText, completionIndexOf, indexAnnotation } from "./completion-index.ts";

/** What the controller sees of a Job. */
export interface ObservedJob extends PlannedObservation {
  readonly job: Stored<Job>;
  readonly pods: readonly Stored<Pod>[];
  /** Pods of its namespace that nothing controls. */
  readonly orphans: readonly Stored<Pod>[];
  readonly now: Date;
}

type JobStatus = NonNullable<Job["status"]>;
type JobCondition = NonNullable<JobStatus["conditions"]>[number];

/** One action of the controller. */
export type JobStep =
  | PodSetStep
  | { readonly step: "reportStatus"; readonly status: JobStatus; readonly nextMs: number | undefined }
  /** Its time after the end is over. */
  | { readonly step: "deleteJob" }
  | { readonly step: "settle"; readonly nextMs: number | undefined };

const failureBackoff = { initialMs: 10_000, maximumMs: 360_000 };

/** The Job as an owner of pods. */
export function ownerOfJob(job: Stored<Job>): Owner {
  const { name, uid } = job.metadata;
  const selector = job.spec?.selector;
  return { apiVersion: "batch/v1", kind: "Job", name, uid, selector, isDeleting: isDeleting(job) };
}

/** Whether the Job has come to its end. */
export function endOf({ status }: Job): JobCondition | undefined {
  return status?.conditions?.find(
    ({ type, status: value }) => (type === "Complete" || type === "Failed") && value === "True",
  );
}

/** Decides on the next step: the plan's, then the report of what was seen when the pass began. */
export function decideJobStep(observed: ObservedJob): JobStep {
  const { job, pods, orphans, done, now } = observed;
  const owner = ownerOfJob(job);
  const claimed = claimObjects(owner, pods, orphans);
  const plan = planOf(job, owner, claimed.owned, now);
  const reference = controllerReference(owner);
  const steps: PodSetStep[] = owner.isDeleting
    ? []
    : [
        ...claimed.adopt.map((pod): PodSetStep => ({ step: "adoptPod", pod, reference })),
        ...claimed.release.map((pod): PodSetStep => ({ step: "releasePod", pod, ownerUID: owner.uid })),
        ...plan.remove.map((pod): PodSetStep => ({ step: "deletePod", pod })),
        ...plan.create.map((pod): PodSetStep => ({ step: "createPod", pod })),
      ];
  const step = steps[done];
  if (step !== undefined) return step;
  const { status, nextMs } = plan;
  if (!showsSame(job.status, status)) return { step: "reportStatus", status, nextMs };
  return isOutlived(job, now) && !owner.isDeleting ? { step: "deleteJob" } : { step: "settle", nextMs };
}

interface JobPlan {
  readonly remove: readonly Stored<Pod>[];
  readonly create: readonly Pod[];
  readonly status: JobStatus;
  readonly nextMs: number | undefined;
}

/** The pods of a Job, as they count. */
interface Counted {
  readonly active: readonly Stored<Pod>[];
  readonly succeeded: number;
  readonly failed: readonly Stored<Pod>[];
  /** Indexes that have succeeded; of a Job without indexes none. */
  readonly completed: ReadonlySet<number>;
}

function planOf(job: Stored<Job>, owner: Owner, pods: readonly Stored<Pod>[], now: Date): JobPlan {
  const counted = count(job, pods);
  const { active, failed } = counted;
  const before = endOf(job);
  const end = before ?? endNow(job, counted, now);
  const isSuspended = job.spec?.suspend === true;
  const status = statusOf(job, counted, end, now);
  if (end !== undefined) return { remove: active, create: [], status, nextMs: untilOutlived(job, end, now) };
  if (isSuspended) return { remove: active, create: [], status, nextMs: undefined };
  const wanted = wantedActive(job, counted);
  const surplus = active.slice(wanted);
  const pauseMs = pauseAfterFailures(failed, now);
  const missing = pauseMs > 0 ? 0 : Math.max(0, wanted - active.length);
  const untilDeadline = deadlineMs(job, status.startTime, now);
  const waits = [...(pauseMs > 0 ? [pauseMs] : []), ...(untilDeadline === undefined ? [] : [untilDeadline])];
  return {
    remove: surplus,
    create: newPods(job, owner, counted, missing),
    status,
    nextMs: waits.length === 0 ? undefined : Math.min(...waits),
  };
}

function isIndexed({ spec }: Job): boolean {
  return spec?.completionMode === "Indexed";
}

function count(job: Job, pods: readonly Stored<Pod>[]): Counted {
  const succeeded = pods.filter(({ status }) => status?.phase === "Succeeded");
  const completions = job.spec?.completions ?? 0;
  const indexes = isIndexed(job) ? succeeded.map(completionIndexOf) : [];
  const completed = new Set(indexes.filter((i) => i !== undefined && i < completions) as number[]);
  return {
    active: pods.filter(isActive),
    succeeded: isIndexed(job) ? completed.size : succeeded.length,
    // One that was ended before it had failed has failed as well.
    failed: pods.filter((pod) => pod.status?.phase === "Failed"),
    completed,
  };
}

/** How many pods are to run. */
function wantedActive({ spec }: Job, { active, succeeded }: Counted): number {
  const parallelism = spec?.parallelism ?? 1;
  // Without a number of completions the first success ends the work: the others come to their end by themselves.
  if (spec?.completions === undefined) return succeeded > 0 ? active.length : parallelism;
  return Math.min(parallelism, Math.max(0, spec.completions - succeeded));
}

function newPods(job: Stored<Job>, owner: Owner, counted: Counted, missing: number): readonly Pod[] {
  const namespace = job.metadata.namespace ?? "default";
  const source = { owner, namespace, template: job.spec?.template };
  if (!isIndexed(job)) return Array.from({ length: missing }, () => podFromTemplate(source));
  const taken = new Set([...counted.completed, ...counted.active.map(completionIndexOf)]);
  const free: number[] = [];
  for (let index = 0; free.length < missing && index < (job.spec?.completions ?? 0); index++) {
    if (!taken.has(index)) free.push(index);
  }
  return free.map((index) => withIndex(podFromTemplate(source), owner.name, index));
}

function withIndex(pod: Pod, jobName: string, index: number): Pod {
  const fieldRef = { fieldPath: `metadata.annotations['${indexAnnotation}']` };
  const variable = { name: "JOB_COMPLETION_INDEX", valueFrom: { fieldRef } };
  const { containers = [], initContainers } = pod.spec ?? {};
  const withVariable = (list: typeof containers) =>
    list.map((container) => ({ ...container, env: [...(container.env ?? []), variable] }));
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      generateName: `${jobName}-${index}-`,
      labels: { ...pod.metadata?.labels, [indexAnnotation]: String(index) },
      annotations: { ...pod.metadata?.annotations, [indexAnnotation]: String(index) },
    },
    spec: {
      ...pod.spec,
      hostname: `${jobName}-${index}`,
      containers: withVariable(containers),
      ...(initContainers === undefined ? {} : { initContainers: withVariable(initContainers) }),
    },
  };
}

/** Why the Job ends now; undefined: it goes on. */
function endNow(job: Stored<Job>, counted: Counted, now: Date): JobCondition | undefined {
  const { active, succeeded, failed } = counted;
  const { completions, backoffLimit = 6, activeDeadlineSeconds } = job.spec ?? {};
  const restarts = job.spec?.template?.spec?.restartPolicy === "OnFailure" ? restartsOf(active) : 0;
  if (failed.length > backoffLimit || (restarts > 0 && restarts >= backoffLimit)) {
    return ended(now, "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit");
  }
  const leftMs = deadlineMs(job, job.status?.startTime, now);
  if (activeDeadlineSeconds !== undefined && leftMs !== undefined && leftMs <= 0) {
    return ended(now, "Failed", "DeadlineExceeded", "Job was active longer than specified deadline");
  }
  const isComplete =
    completions === undefined ? succeeded > 0 && active.length === 0 : succeeded >= completions;
  return isComplete && job.spec?.suspend !== true ? ended(now, "Complete") : undefined;
}

function ended(now: Date, type: "Complete" | "Failed", reason?: string, message?: string): JobCondition {
  const time = apiTime(now);
  return {
    type,
    status: "True",
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
    lastProbeTime: time,
    lastTransitionTime: time,
  };
}

function restartsOf(pods: readonly Pod[]): number {
  const all = pods.flatMap(({ status }) => [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
  ]);
  return all.reduce((sum, { restartCount }) => sum + restartCount, 0);
}

/** Time until pods are made again after failures, in milliseconds; not positive: now. */
function pauseAfterFailures(failed: readonly Pod[], now: Date): number {
  if (failed.length === 0) return 0;
  const ends = failed.flatMap(({ status, metadata }) => {
    const times = (status?.containerStatuses ?? []).map((c) => c.state?.terminated?.finishedAt);
    const known = times.filter((time) => time !== undefined);
    return (known.length === 0 ? [metadata?.creationTimestamp ?? ""] : known).map((time) => Date.parse(time));
  });
  return Math.max(...ends) + backoffMs(failureBackoff, failed.length) - now.getTime();
}

/** Time until the Job's deadline, in milliseconds; undefined: it has none. */
function deadlineMs({ spec }: Job, startTime: string | undefined, now: Date): number | undefined {
  if (spec?.activeDeadlineSeconds === undefined || startTime === undefined) return undefined;
  return Date.parse(startTime) + 1000 * spec.activeDeadlineSeconds - now.getTime();
}

function statusOf(
  job: Stored<Job>,
  { active, succeeded, failed, completed }: Counted,
  end: JobCondition | undefined,
  now: Date,
): JobStatus {
  const { status: before, spec } = job;
  const others = (before?.conditions ?? []).filter(
    ({ type }) => type !== "Suspended" && (end === undefined || type !== end.type),
  );
  const isSuspended = spec?.suspend === true && end === undefined;
  const startTime = before?.startTime ?? (isSuspended ? undefined : apiTime(now));
  const hasStarted = startTime !== undefined && !isSuspended;
  const runs = end === undefined && !isSuspended ? active.length : 0;
  const suspension = suspensionOf(job, isSuspended, now);
  return {
    ...(hasStarted ? { startTime } : {}),
    ...(runs === 0 ? {} : { active: runs }),
    ...(succeeded === 0 ? {} : { succeeded }),
    ...(failed.length === 0 ? {} : { failed: failed.length }),
    ready: end === undefined ? active.filter(isPodReady).length : 0,
    ...(completed.size === 0 ? {} : { completedIndexes: completedIndexesText(completed) }),
    conditions: [
      ...others,
      ...(suspension === undefined ? [] : [suspension]),
      ...(end === undefined ? [] : [end]),
    ],
    ...(end?.type === "Complete" ? { completionTime: before?.completionTime ?? apiTime(now) } : {}),
  };
}

function suspensionOf({ status }: Job, isSuspended: boolean, now: Date): JobCondition | undefined {
  const was = status?.conditions?.find(({ type }) => type === "Suspended");
  const value = isSuspended ? "True" : "False";
  if (was === undefined && !isSuspended) return undefined;
  if (was?.status === value) return was;
  const time = apiTime(now);
  const reason = isSuspended ? "JobSuspended" : "JobResumed";
  return { type: "Suspended", status: value, reason, lastProbeTime: time, lastTransitionTime: time };
}

function showsSame(before: JobStatus | undefined, after: JobStatus): boolean {
  const shown = (status: JobStatus | undefined) =>
    JSON.stringify([
      status?.active ?? 0,
      status?.ready ?? 0,
      status?.succeeded ?? 0,
      status?.failed ?? 0,
      status?.completedIndexes ?? "",
      status?.startTime === undefined,
      (status?.conditions ?? []).map(({ type, status: value }) => [type, value]).sort(),
    ]);
  return shown(before) === shown(after);
}

/** Time until the Job is deleted, in milliseconds; undefined: it stays. */
function untilOutlived({ spec, status }: Job, end: JobCondition, now: Date): number | undefined {
  if (spec?.ttlSecondsAfterFinished === undefined) return undefined;
  const endedMs = Date.parse(status?.completionTime ?? end.lastTransitionTime ?? "");
  return Math.max(1, endedMs + 1000 * spec.ttlSecondsAfterFinished - now.getTime());
}

function isOutlived(job: Job, now: Date): boolean {
  const end = endOf(job);
  const { ttlSecondsAfterFinished } = job.spec ?? {};
  if (end === undefined || ttlSecondsAfterFinished === undefined) return false;
  const endedMs = Date.parse(job.status?.completionTime ?? end.lastTransitionTime ?? "");
  return now.getTime() >= endedMs + 1000 * ttlSecondsAfterFinished;
}
