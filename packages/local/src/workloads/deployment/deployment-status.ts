/** The status of a Deployment. Pure. Source: apps/v1 DeploymentStatus; kubernetes pkg/controller/deployment progress.go. */
import { apiTime, type Deployment, type ReplicaSet, type Stored } from "@longshore/kube";
import { type Rollout, rollingLimits } from "./plan-deployment.ts";

type Status = NonNullable<Deployment["status"]>;
type Condition = NonNullable<Status["conditions"]>[number];

/** A status, and when it is to be looked at again though nothing has changed, in milliseconds. */
export interface DeploymentReport {
  readonly status: Status;
  readonly nextMs: number | undefined;
}

/** A rollout that makes no progress within this time, in seconds, has failed, where none is set. */
const progressDeadlineDefault = 600;

/** The status to report. */
export function deploymentReport({ deployment, current, old }: Rollout, now: Date): DeploymentReport {
  const sets = [...old, ...(current === undefined ? [] : [current])];
  const count = (of: (set: ReplicaSet) => number | undefined) =>
    sets.reduce((total, set) => total + (of(set) ?? 0), 0);
  const replicas = count((set) => set.status?.replicas);
  const availableReplicas = count((set) => set.status?.availableReplicas);
  const counts = {
    replicas,
    updatedReplicas: current?.status?.replicas ?? 0,
    readyReplicas: count((set) => set.status?.readyReplicas),
    availableReplicas,
    unavailableReplicas: Math.max(0, count((set) => set.spec?.replicas ?? 1) - availableReplicas),
  };
  const { condition, nextMs } = progressing(deployment, current, counts, now);
  const { observedGeneration: _, conditions: __, ...before } = deployment.status ?? {};
  const status: Status = {
    ...(before.collisionCount === undefined ? {} : { collisionCount: before.collisionCount }),
    observedGeneration: deployment.metadata.generation ?? 1,
    ...counts,
    conditions: [
      available(deployment, availableReplicas, now),
      ...(condition === undefined ? [] : [condition]),
    ],
  };
  return { status, nextMs };
}

/** Whether the status shows the same, the times at which its conditions were looked at aside. */
export function showsReport({ status }: Deployment, report: Status): boolean {
  const shown = (one: Status | undefined) =>
    JSON.stringify([
      one?.observedGeneration,
      one?.replicas ?? 0,
      one?.updatedReplicas ?? 0,
      one?.readyReplicas ?? 0,
      one?.availableReplicas ?? 0,
      one?.unavailableReplicas ?? 0,
      (one?.conditions ?? []).map((c) => [c.type, c.status, c.reason]).sort(),
    ]);
  return shown(status) === shown(report);
}

function available(deployment: Stored<Deployment>, availableReplicas: number, now: Date): Condition {
  const minAvailable = (deployment.spec?.replicas ?? 1) - rollingLimits(deployment).unavailable;
  return availableReplicas >= minAvailable
    ? conditionOf(
        deployment,
        now,
        "Available",
        "True",
        "MinimumReplicasAvailable",
        "Deployment has minimum availability.",
      )
    : conditionOf(
        deployment,
        now,
        "Available",
        "False",
        "MinimumReplicasUnavailable",
        "Deployment does not have minimum availability.",
      );
}

function progressing(
  deployment: Stored<Deployment>,
  current: Stored<ReplicaSet> | undefined,
  counts: Required<Pick<Status, "replicas" | "updatedReplicas" | "readyReplicas" | "availableReplicas">>,
  now: Date,
): { readonly condition: Condition | undefined; readonly nextMs: number | undefined } {
  const before = deployment.status?.conditions?.find(({ type }) => type === "Progressing");
  const name = current?.metadata.name ?? "";
  const say = (status: "True" | "False" | "Unknown", reason: string, message: string) =>
    conditionOf(deployment, now, "Progressing", status, reason, message);
  if (deployment.spec?.paused === true) {
    return { condition: say("Unknown", "DeploymentPaused", "Deployment is paused"), nextMs: undefined };
  }
  if (current === undefined) return { condition: before, nextMs: undefined };
  const wanted = deployment.spec?.replicas ?? 1;
  const isComplete =
    counts.updatedReplicas === wanted && counts.replicas === wanted && counts.availableReplicas === wanted;
  if (isComplete) {
    const message = `ReplicaSet "${name}" has successfully progressed.`;
    return { condition: say("True", "NewReplicaSetAvailable", message), nextMs: undefined };
  }
  const was = deployment.status;
  const hasMoved =
    before === undefined ||
    before.reason === "DeploymentPaused" ||
    before.reason === "NewReplicaSetAvailable" ||
    counts.updatedReplicas > (was?.updatedReplicas ?? 0) ||
    counts.readyReplicas > (was?.readyReplicas ?? 0) ||
    counts.availableReplicas > (was?.availableReplicas ?? 0) ||
    counts.replicas - counts.updatedReplicas < (was?.replicas ?? 0) - (was?.updatedReplicas ?? 0);
  const message = `ReplicaSet "${name}" is progressing.`;
  const deadlineMs = 1000 * (deployment.spec?.progressDeadlineSeconds ?? progressDeadlineDefault);
  if (hasMoved) {
    const moved = { ...say("True", "ReplicaSetUpdated", message), lastUpdateTime: apiTime(now) };
    return { condition: moved, nextMs: deadlineMs };
  }
  const leftMs = Date.parse(before.lastUpdateTime ?? "") + deadlineMs - now.getTime();
  if (leftMs > 0 && before.reason !== "ProgressDeadlineExceeded")
    return { condition: before, nextMs: leftMs };
  const failed = `ReplicaSet "${name}" has timed out progressing.`;
  return { condition: say("False", "ProgressDeadlineExceeded", failed), nextMs: undefined };
}

/** The condition; its times are kept where it says the same. */
function conditionOf(
  { status }: Deployment,
  now: Date,
  type: string,
  value: "True" | "False" | "Unknown",
  reason: string,
  message: string,
): Condition {
  const was = status?.conditions?.find((condition) => condition.type === type);
  const time = apiTime(now);
  return {
    type,
    status: value,
    reason,
    message,
    lastUpdateTime: was?.reason === reason ? (was.lastUpdateTime ?? time) : time,
    lastTransitionTime: was?.status === value ? (was.lastTransitionTime ?? time) : time,
  };
}
