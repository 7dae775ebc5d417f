/**
 * What the node does next for one of its pods. Pure. Source: core/v1 pod life cycle; docs/behaviour/node-agent.md 4.
 *
 *     wanted:   waitForVolumes ──► startContainer ──► runPostStart ──► reportStarted ──► the next container … checkAgain
 *     deleting: terminate ──► reportStatus ──► checkVolumes ──► deletePod
 *     evicted:  terminate ──► reportStatus
 *     shutdown: terminate ──► reportStatus, or that alone for a pod that has just come (docs/behaviour/node-agent.md 14)
 *
 * Which container is next is planned in `container-plan.ts`.
 *
 * Invariants
 *  - A container starts only after this pass has seen all volumes of the pod mounted.
 *  - The end of a pod is reported, which lets its volumes go, only after its containers have ended or were terminated.
 *  - The object is deleted only after that, and once none of its volumes may be mounted.
 */
import {
  type Container,
  isDeleting,
  isPodTerminal,
  type Pod,
  type PodStatus,
  type Stored,
} from "@longshore/kube";
import type { MountedVolume } from "@longshore/volumes";
import { type NextRun, type PodContainers, planContainers, specGraceMs } from "./container-plan.ts";
import { isCriticalPod, type ShutdownPhase } from "./decide-node-shutdown-step.ts";
import { type PodFacts, podStatusOf, showsSame } from "./pod-status.ts";

type Failure = NonNullable<PodFacts["failure"]>;

/** What the node sees of a pod that has an object. */
export interface NodePod extends PodContainers {
  readonly pass: PodPass;
  /** Undefined: the node does not shut down. */
  readonly shutdown?: PodShutdown | undefined;
  /** Which volume of the pod holds more than it may; undefined: none. */
  readonly excess?: string | undefined;
}

/** What the shutdown of the node means to its pods. */
export interface PodShutdown extends Pick<ShutdownPhase, "group"> {
  /** How long the pods of the group may take to end, in milliseconds. */
  readonly leftMs: number;
}

/** What is left of a pod whose object is gone. */
export interface PodRemnant {
  readonly pod: undefined;
}

/** What the pod worker sees of a pod. */
export type PodObservation = NodePod | PodRemnant;

/** What this pass has done and found so far. */
export interface PodPass {
  /** The status that was written last. */
  readonly reported?: PodStatus;
  readonly mount?: { readonly mounted: ReadonlyMap<string, MountedVolume> } | { readonly error: unknown };
  /** The container that is being started. */
  readonly start?: StartOfContainer;
  readonly isTerminated?: boolean;
  /** Read after the containers had ended. */
  readonly areVolumesGone?: boolean;
}

/** Why a container could not be started. */
export type StartErrorReason = "CreateContainerConfigError" | "RunContainerError";

/** How far the start of a container has come. */
export type StartOfContainer = { readonly run: NextRun } & (
  | {
      readonly kind: "failed";
      readonly reason: StartErrorReason;
      readonly error: unknown;
      /** No other object can change it. */
      readonly isLasting: boolean;
    }
  | { readonly kind: "started" }
  /** Its hook has run, or it has none. */
  | { readonly kind: "hooked" }
  /** Its event has been emitted. */
  | { readonly kind: "reported" }
);

/** One action of the pod worker. */
export type PodStep =
  /** Ends what runs of a pod whose object is gone. */
  | { readonly step: "removeRemnant" }
  | { readonly step: "reportStatus"; readonly pod: Stored<Pod>; readonly status: PodStatus }
  | { readonly step: "waitForVolumes"; readonly pod: Stored<Pod> }
  | { readonly step: "failMount"; readonly pod: Stored<Pod>; readonly error: unknown }
  | {
      readonly step: "startContainer";
      readonly pod: Stored<Pod>;
      readonly run: NextRun;
      readonly mounted: ReadonlyMap<string, MountedVolume>;
    }
  | {
      readonly step: "failStart";
      readonly pod: Stored<Pod>;
      readonly reason: StartErrorReason;
      readonly error: unknown;
      /** It lasts, and an earlier pass has reported it. */
      readonly isKnown: boolean;
    }
  | { readonly step: "runPostStart"; readonly pod: Stored<Pod>; readonly run: NextRun }
  | { readonly step: "reportStarted"; readonly pod: Stored<Pod>; readonly container: Container }
  | { readonly step: "readState" }
  /** Ends one container; it is started again by its policy. */
  | {
      readonly step: "stopContainer";
      readonly pod: Stored<Pod>;
      readonly container: Container;
      readonly why: string;
      readonly graceMs: number;
    }
  | {
      readonly step: "waitForRestart";
      readonly pod: Stored<Pod>;
      readonly container: string;
      readonly pauseMs: number;
      readonly isOneRunning: boolean;
      /** This pass has reported the pause. */
      readonly isNew: boolean;
    }
  /** Nothing but the runtime knows when a container ends. `overdueInMs`: until the pod's time is up, where it has an end. */
  | { readonly step: "checkAgain"; readonly pod: Stored<Pod>; readonly overdueInMs?: number }
  | { readonly step: "terminate"; readonly pod: Stored<Pod>; readonly graceMs: number }
  | { readonly step: "checkVolumes" }
  | { readonly step: "waitUntilVolumesGone" }
  | { readonly step: "deletePod"; readonly pod: Stored<Pod> }
  | { readonly step: "settle" };

/** Decides on the next step. */
export function decidePodStep(observed: PodObservation): PodStep {
  if (observed.pod === undefined) return { step: "removeRemnant" };
  if (isDeleting(observed.pod)) return decideDeletion(observed);
  if (isPodTerminal(observed.pod)) return decideAfterEnd(observed);
  if (observed.shutdown !== undefined && isNew(observed)) return decideRejection(observed);
  const shutdownMs = shutdownGraceMs(observed);
  if (shutdownMs !== undefined) return decideEnd(observed, shutdownMs, shutdownFailure);
  if (observed.excess !== undefined) {
    return decideEnd(observed, evictionGraceMs, { reason: "Evicted", message: observed.excess });
  }
  return isOverdue(observed)
    ? decideEnd(observed, specGraceMs(observed.pod), overdueFailure)
    : decideRun(observed);
}

function decideDeletion(observed: NodePod): PodStep {
  const { pod, pass } = observed;
  if (pass.isTerminated !== true) {
    const mostMs = shutdownGraceMs(observed) ?? Number.POSITIVE_INFINITY;
    return { step: "terminate", pod, graceMs: Math.min(deletionGraceMs(pod), mostMs) };
  }
  const report = reportOf(observed, { isEnded: true });
  if (report !== undefined) return report;
  if (pass.areVolumesGone === undefined) return { step: "checkVolumes" };
  return pass.areVolumesGone ? { step: "deletePod", pod } : { step: "waitUntilVolumesGone" };
}

/** A final phase may come from another client: a container that still runs would keep its volumes for ever. */
function decideAfterEnd({ pod, containers, pass }: NodePod): PodStep {
  const isOneRunning = [...containers.values()].some(({ kind }) => kind === "running");
  return isOneRunning && pass.isTerminated !== true
    ? { step: "terminate", pod, graceMs: deletionGraceMs(pod) }
    : { step: "settle" };
}

function isOverdue(observed: NodePod): boolean {
  const leftMs = overdueInMs(observed);
  return leftMs !== undefined && leftMs <= 0;
}

/** Time until the pod has run as long as it may, in milliseconds; undefined: it may run for ever, or has not begun. */
function overdueInMs({ pod, now }: NodePod): number | undefined {
  const { activeDeadlineSeconds } = pod.spec ?? {};
  const { startTime } = pod.status ?? {};
  if (activeDeadlineSeconds === undefined || startTime === undefined) return undefined;
  return Date.parse(startTime) + 1000 * activeDeadlineSeconds - now.getTime();
}

/** What a pod that is evicted at once still has. Source: upstream pkg/kubelet/eviction, immediateEvictionGracePeriodSeconds. */
const evictionGraceMs = 1_000;

const overdueFailure: Failure = {
  reason: "DeadlineExceeded",
  message: "Pod was active on the node longer than the specified deadline",
};
const shutdownFailure: Failure = {
  reason: "Terminated",
  message: "Pod was terminated in response to imminent node shutdown.",
};
const rejection: Failure = {
  reason: "NodeShutdown",
  message: "Pod was rejected as the node is shutting down.",
};

/** The node ends the pod, whatever it wants. */
function decideEnd(observed: NodePod, graceMs: number, failure: Failure): PodStep {
  const { pod, pass } = observed;
  if (pass.isTerminated !== true) return { step: "terminate", pod, graceMs };
  return reportOf(observed, { failure, isEnded: true }) ?? settle;
}

/** Nothing of the pod has begun. */
function decideRejection(observed: NodePod): PodStep {
  return reportOf(observed, { failure: rejection, isEnded: true }) ?? settle;
}

/** The node has neither reported the pod nor started anything of it. */
function isNew({ pod, containers }: NodePod): boolean {
  return pod.status?.startTime === undefined && containers.size === 0;
}

/** How long the pod may take to end, in milliseconds; undefined: its turn has not come. */
function shutdownGraceMs({ pod, shutdown }: NodePod): number | undefined {
  if (shutdown === undefined || (shutdown.group === "regular" && isCriticalPod(pod))) return undefined;
  return Math.min(specGraceMs(pod), shutdown.leftMs);
}

const settle: PodStep = { step: "settle" };

function decideRun(observed: NodePod): PodStep {
  const { pod, pass } = observed;
  if (pass.start !== undefined) return decideStarted(observed, pass.start);
  const plan = planContainers(observed);
  switch (plan.next) {
    case "start":
      return decideStart(observed, plan);
    case "stop": {
      const { container, why, graceMs } = plan;
      return { step: "stopContainer", pod, container, why, graceMs };
    }
    case "finish":
      return reportOf(observed) ?? settle;
    case "wait": {
      const report = reportOf(observed);
      if (report !== undefined) return report;
      const isOneRunning = [...observed.containers.values()].some(({ kind }) => kind === "running");
      const leftMs = overdueInMs(observed);
      return plan.pauseMs === undefined || plan.paused === undefined
        ? { step: "checkAgain", pod, ...(leftMs === undefined ? {} : { overdueInMs: leftMs }) }
        : {
            step: "waitForRestart",
            pod,
            container: plan.paused,
            pauseMs: plan.pauseMs,
            isOneRunning,
            isNew: pass.reported !== undefined,
          };
    }
  }
}

function decideStart(observed: NodePod, run: NextRun): PodStep {
  const { pod, containers, pass } = observed;
  const { container, attempt, quickRestarts } = run;
  if (pass.mount === undefined) {
    // What runs already is reported with what follows.
    const report = containers.size > 0 ? undefined : reportOf(observed);
    return report ?? { step: "waitForVolumes", pod };
  }
  return "error" in pass.mount
    ? { step: "failMount", pod, error: pass.mount.error }
    : {
        step: "startContainer",
        pod,
        run: { container, attempt, quickRestarts },
        mounted: pass.mount.mounted,
      };
}

function decideStarted(observed: NodePod, start: StartOfContainer): PodStep {
  const { pod, pass } = observed;
  const { container } = start.run;
  switch (start.kind) {
    case "failed": {
      const { reason, error, isLasting } = start;
      const isKnown = isLasting && pass.reported === undefined;
      const message = error instanceof Error ? error.message : String(error);
      const startError = { container: container.name, reason, message };
      return reportOf(observed, { startError }) ?? { step: "failStart", pod, reason, error, isKnown };
    }
    case "started":
      return { step: "runPostStart", pod, run: start.run };
    case "hooked":
      return { step: "reportStarted", pod, container };
    case "reported":
      return { step: "readState" };
  }
}

/** The report of the state; undefined: the status shows it already. */
function reportOf(
  observed: NodePod,
  more: Pick<PodFacts, "isEnded" | "failure" | "startError"> = {},
): PodStep | undefined {
  const { pod, containers, verdicts, now, pass } = observed;
  const status = podStatusOf(pod, { containers, verdicts, now, ...more });
  return showsSame(pass.reported ?? pod.status, status) ? undefined : { step: "reportStatus", pod, status };
}

function deletionGraceMs(pod: Stored<Pod>): number {
  return 1000 * (pod.metadata.deletionGracePeriodSeconds ?? 0);
}
