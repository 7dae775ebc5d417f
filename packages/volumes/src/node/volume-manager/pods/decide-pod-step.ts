/**
 * What comes next for one pod: its volumes are resolved and desired while it may run, and released once it has
 * ended and the runtime has no container of it. Source: docs/behaviour/node-agent.md 4.1.
 *
 * Invariants
 *  - A pod that could not be resolved completely stays undecided: nothing of it is released meanwhile.
 *  - A pod's volumes stay desired until it is gone or ended and the runtime has no container of it.
 */
import type { ResolvedVolume } from "../desired-state.ts";
import type { NodePod } from "./node-pods.ts";

/** How often the runtime is asked again about an ended pod whose containers have not gone, in milliseconds. */
export const runtimeRecheckMs = 300;

/** What claims and volumes of a pod led to. */
export interface PodResolution {
  readonly volumes: readonly ResolvedVolume[];
  /** Volumes that could not be resolved, and why. */
  readonly errors: readonly string[];
}

/** One pod as a pass sees it. */
export interface ObservedPod {
  /** Monotonic time in milliseconds. */
  readonly nowMs: number;
  /** All pods are known, and the way of each plugin's volumes is decided. */
  readonly mayBegin: boolean;
  /** Undefined: it is not bound to this node (any more). */
  readonly known: NodePod | undefined;
  /** Gone, or it will not start containers any more. */
  readonly hasEnded: boolean;
  /** Ended, and the runtime had no container of it. */
  readonly isOver: boolean;
  /** Something is desired, is or may be mounted, is being mounted, or lies in a directory for it. */
  readonly hasVolumes: boolean;
  /** Whether containers of it run, by a question that was asked after it had ended; undefined: not asked. */
  readonly hasContainers: boolean | undefined;
  /** What this pass read of its claims; undefined: nothing yet. */
  readonly resolution: PodResolution | undefined;
}

/** What comes next for a pod. */
export type PodStep =
  /** Wait for the list of pods and for the migration's decision. */
  | { readonly step: "awaitStart" }
  | { readonly step: "forget" }
  | { readonly step: "askRuntime" }
  /** Containers of an ended pod still run: ask again after this time, in milliseconds. */
  | { readonly step: "awaitContainers"; readonly ms: number }
  | { readonly step: "release" }
  /** Read claims and volumes. */
  | { readonly step: "resolve" }
  /** Take what was read into the desired state. */
  | { readonly step: "adopt"; readonly resolution: PodResolution }
  /** Resolving failed: again after this time, in milliseconds. */
  | { readonly step: "awaitRetry"; readonly ms: number }
  | { readonly step: "settle" };

/** Decides for a pod; pure. */
export function decidePodStep(observed: ObservedPod): PodStep {
  const { mayBegin, known, hasVolumes, hasEnded } = observed;
  if (!mayBegin) return { step: "awaitStart" };
  if (known === undefined && !hasVolumes) return { step: "forget" };
  if (hasEnded) return stepOfEndedPod(observed);
  return known === undefined ? { step: "settle" } : stepOfLivePod(observed, known);
}

function stepOfEndedPod(observed: ObservedPod): PodStep {
  const { isOver, hasContainers, known } = observed;
  if (isOver) return { step: "settle" };
  if (hasContainers === undefined) return { step: "askRuntime" };
  if (!hasContainers) return { step: "release" };
  // Its containers use volumes of it: after a restart these are desired again until they have gone.
  const step = known === undefined ? undefined : stepOfLivePod(observed, known);
  if (step?.step === "resolve" || step?.step === "adopt") return step;
  return { step: "awaitContainers", ms: runtimeRecheckMs };
}

function stepOfLivePod({ nowMs, resolution }: ObservedPod, { isResolved, retryAtMs }: NodePod): PodStep {
  if (isResolved) return { step: "settle" };
  if (retryAtMs > nowMs) return { step: "awaitRetry", ms: retryAtMs - nowMs };
  return resolution === undefined ? { step: "resolve" } : { step: "adopt", resolution };
}
