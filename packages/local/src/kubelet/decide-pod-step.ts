/**
 * What the node does next for one of its pods. Pure. Source: core/v1 pod life cycle; docs/behaviour/node-agent.md 4.
 *
 *     wanted:   waitForVolumes ──► startContainer ──► checkAgain … restartContainer
 *     deleting: terminate ──► reportStatus ──► checkVolumes ──► deletePod
 *
 * Invariants
 *  - A container starts only after this pass has seen all volumes of the pod mounted.
 *  - The end of a container is reported, which lets its volumes go, only after this pass has terminated it.
 *  - The object is deleted only after that, and once none of its volumes may be mounted.
 */
import { isDeleting, isPodTerminal, type Pod, type PodStatus, type Stored } from "@longshore/kube";
import type { MountedVolume } from "@longshore/volumes";
import type { PodState } from "../containers/pod-runtime.ts";
import { podStatusOf, restarts, showsSame } from "./pod-status.ts";

/** What the node sees of a pod that has an object. */
export interface NodePod {
  readonly pod: Stored<Pod>;
  /** Its container, as the runtime has it. */
  readonly state: PodState;
  readonly restarts: number;
  /** This agent has restarted the container. */
  readonly hasRestarted: boolean;
  /** Time until an ended container may be started, in milliseconds; not positive: now. */
  readonly pauseMs: number;
  readonly now: Date;
  readonly pass: PodPass;
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
  readonly start?: StartOfContainer;
  readonly isTerminated?: boolean;
  /** Read after the container had ended. */
  readonly areVolumesGone?: boolean;
}

/** How far the start of the container has come. */
export type StartOfContainer =
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "started" }
  /** Its event has been emitted. */
  | { readonly kind: "reported" }
  /** Its state has been read again. */
  | { readonly kind: "read" };

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
      readonly mounted: ReadonlyMap<string, MountedVolume>;
    }
  | { readonly step: "failStart"; readonly pod: Stored<Pod>; readonly error: unknown }
  | { readonly step: "reportStarted"; readonly pod: Stored<Pod> }
  | { readonly step: "readState" }
  /** Takes the ended container away; it is started again after a pause. */
  | { readonly step: "restartContainer"; readonly pod: Stored<Pod> }
  | { readonly step: "waitForRestart"; readonly pauseMs: number }
  /** Nothing but the runtime knows when a container ends. */
  | { readonly step: "checkAgain" }
  | { readonly step: "terminate"; readonly graceMs: number }
  | { readonly step: "checkVolumes" }
  | { readonly step: "waitUntilVolumesGone" }
  | { readonly step: "deletePod"; readonly pod: Stored<Pod> }
  | { readonly step: "settle" };

/** Decides on the next step. */
export function decidePodStep(observed: PodObservation): PodStep {
  if (observed.pod === undefined) return { step: "removeRemnant" };
  if (isDeleting(observed.pod)) return decideDeletion(observed);
  return isPodTerminal(observed.pod) ? decideAfterEnd(observed) : decideRun(observed);
}

function decideDeletion(observed: NodePod): PodStep {
  const { pod, state, pass } = observed;
  if (pass.isTerminated !== true) return { step: "terminate", graceMs: graceMsOf(pod) };
  const exitCode = state.kind === "ended" ? state.exitCode : 0;
  const report = reportOf(observed, { kind: "ended", exitCode });
  if (report !== undefined) return report;
  if (pass.areVolumesGone === undefined) return { step: "checkVolumes" };
  return pass.areVolumesGone ? { step: "deletePod", pod } : { step: "waitUntilVolumesGone" };
}

/** A final phase may come from another client: a container that still runs would keep its volumes for ever. */
function decideAfterEnd({ pod, state, pass }: NodePod): PodStep {
  return state.kind === "running" && pass.isTerminated !== true
    ? { step: "terminate", graceMs: graceMsOf(pod) }
    : { step: "settle" };
}

function decideRun(observed: NodePod): PodStep {
  const { pod, state, pauseMs, pass } = observed;
  if (pass.start !== undefined) return decideStarted(observed, pass.start);
  if (state.kind === "absent" && pauseMs <= 0) return decideStart(observed);
  const report = reportOf(observed, state);
  if (report !== undefined) return report;
  if (state.kind === "running") return { step: "checkAgain" };
  if (state.kind === "absent") return { step: "waitForRestart", pauseMs };
  return restarts(pod, state.exitCode) ? { step: "restartContainer", pod } : { step: "settle" };
}

function decideStart(observed: NodePod): PodStep {
  const { pod, state, pass } = observed;
  const { mount } = pass;
  if (mount === undefined) {
    // A pod that has run is not reported Pending again, as when the node has lost its container.
    const report = pod.status?.phase === "Running" ? undefined : reportOf(observed, state);
    return report ?? { step: "waitForVolumes", pod };
  }
  return "error" in mount
    ? { step: "failMount", pod, error: mount.error }
    : { step: "startContainer", pod, mounted: mount.mounted };
}

function decideStarted(observed: NodePod, start: StartOfContainer): PodStep {
  const { pod, state } = observed;
  switch (start.kind) {
    case "failed":
      return { step: "failStart", pod, error: start.error };
    case "started":
      return { step: "reportStarted", pod };
    case "reported":
      return { step: "readState" };
    case "read":
      return reportOf(observed, state) ?? { step: "checkAgain" };
  }
}

/** The report of the state; undefined: the status shows it already. */
function reportOf(observed: NodePod, state: PodState): PodStep | undefined {
  const { pod, hasRestarted, now, pass } = observed;
  const status = podStatusOf(pod, {
    state,
    restarts: observed.restarts,
    waitingReason: hasRestarted ? "CrashLoopBackOff" : "ContainerCreating",
    now,
  });
  return showsSame(pass.reported ?? pod.status, status) ? undefined : { step: "reportStatus", pod, status };
}

function graceMsOf(pod: Stored<Pod>): number {
  return 1000 * (pod.metadata.deletionGracePeriodSeconds ?? 0);
}
