/** A pod's status, as this node reports it. Pure. Source: core/v1 PodStatus, pod life cycle. */
import { apiTime, type Pod, type PodCondition, type PodStatus, type Stored } from "@longshore/kube";
import type { PodState } from "../containers/pod-runtime.ts";

/** What the node knows of the pod beyond its container's state. */
export interface PodFacts {
  readonly state: PodState;
  readonly restarts: number;
  /** Why the container waits, when it is absent: `ContainerCreating`, `CrashLoopBackOff`. */
  readonly waitingReason: string;
  readonly message?: string;
  readonly now: Date;
}

/** The status to report. Times of what has not changed are kept. */
export function podStatusOf(pod: Stored<Pod>, facts: PodFacts): PodStatus {
  const { state } = facts;
  const now = apiTime(facts.now);
  const ended = state.kind === "ended" && !restarts(pod, state.exitCode);
  const phase = ended ? (state.exitCode === 0 ? "Succeeded" : "Failed") : phaseOf(state, facts);
  const ready = state.kind === "running";
  const before = pod.status;
  const container = pod.spec?.containers[0];
  return {
    phase,
    conditions: [
      condition(before, "PodScheduled", "True", now),
      condition(before, "Initialized", "True", now),
      condition(before, "ContainersReady", ready ? "True" : "False", now),
      condition(before, "Ready", ready ? "True" : "False", now),
    ],
    hostIP: "127.0.0.1",
    startTime: before?.startTime ?? now,
    ...(facts.message === undefined ? {} : { message: facts.message }),
    containerStatuses: [
      {
        name: container?.name ?? "",
        image: container?.image ?? "",
        imageID: "",
        ready,
        started: ready,
        restartCount: facts.restarts,
        state: containerState(before, facts, now),
      },
    ],
  };
}

/** Whether the pod's restart policy starts the container again after this exit code. */
export function restarts(pod: Pod, exitCode: number): boolean {
  if (pod.metadata?.deletionTimestamp !== undefined) return false;
  const policy = pod.spec?.restartPolicy ?? "Always";
  return policy === "Always" || (policy === "OnFailure" && exitCode !== 0);
}

/** Whether two statuses show the same to readers, times aside. */
export function showsSame(before: PodStatus | undefined, after: PodStatus): boolean {
  const facts = (status: PodStatus | undefined) =>
    JSON.stringify([
      status?.phase,
      status?.conditions?.map((c) => [c.type, c.status]).sort(),
      status?.containerStatuses?.map((c) => [c.ready, c.restartCount, Object.keys(c.state ?? {})]),
    ]);
  return facts(before) === facts(after);
}

function phaseOf(state: PodState, facts: PodFacts): "Running" | "Pending" {
  return state.kind === "running" || facts.restarts > 0 || state.kind === "ended" ? "Running" : "Pending";
}

function containerState(before: PodStatus | undefined, facts: PodFacts, now: string) {
  const { state } = facts;
  const startedAt = before?.containerStatuses?.[0]?.state?.running?.startedAt ?? now;
  switch (state.kind) {
    case "running":
      return { running: { startedAt } };
    case "ended":
      return {
        terminated: {
          exitCode: state.exitCode,
          reason: state.exitCode === 0 ? "Completed" : "Error",
          startedAt,
          finishedAt: before?.containerStatuses?.[0]?.state?.terminated?.finishedAt ?? now,
        },
      };
    default:
      return { waiting: { reason: facts.waitingReason } };
  }
}

function condition(
  before: PodStatus | undefined,
  type: string,
  status: "True" | "False",
  now: string,
): PodCondition {
  const was = before?.conditions?.find((c) => c.type === type);
  const lastTransitionTime = was?.status === status ? (was.lastTransitionTime ?? now) : now;
  return { type, status, lastTransitionTime };
}
