/**
 * What the scheduler does next for a pod. Pure. Source: docs/behaviour/controllers.md B7.
 *
 *     assume ──► reserveVolume or selectNode, for each delayed claim ──► waitForClaims
 *                                                                    └─► bind ──► reportScheduled
 */
import {
  isDeleting,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type Stored,
} from "@longshore/kube";
import { selectedNodeAnnotation } from "@longshore/storage";
import { chooseNode } from "./choose-node.ts";
import type { ClusterView } from "./cluster-view.ts";
import { claimsOfPod, isFullyBound } from "./pod-claims.ts";
import { staticVolumes } from "./static-volumes.ts";

/** What the scheduler sees of one pod. */
export interface ObservedPod {
  /** undefined: it is gone. */
  readonly pod: Stored<Pod> | undefined;
  /** The binding of this pod has been written, and the cache does not show it yet. */
  readonly isBound: boolean;
  readonly view: ClusterView;
  /** What this pass has done for the pod; undefined: no node is chosen yet. */
  readonly placement?: Placement;
}

/** A node, and how far a pod has come on its way there. */
export interface Placement {
  readonly nodeName: string;
  /** Names of the claims on which this pass has named the node, or found that another client was faster. */
  readonly claimsAsked: readonly string[];
  /** The binding has been written in this pass. */
  readonly isBound: boolean;
}

/** One action of the scheduler. */
export type SchedulingStep =
  /** The pod is gone or has its node: nothing is assumed for it any more. */
  | { readonly step: "forget" }
  /** The pod is bound; the change of the cache ends it. */
  | { readonly step: "waitForCache" }
  | { readonly step: "reportUnschedulable"; readonly pod: Stored<Pod>; readonly reason: string }
  /** Counts the pod on the node. */
  | { readonly step: "assume"; readonly pod: Stored<Pod>; readonly nodeName: string }
  /** Names the node on a delayed claim, which is then provisioned for it. */
  | {
      readonly step: "selectNode";
      readonly claim: Stored<PersistentVolumeClaim>;
      readonly placement: Placement;
    }
  /** Gives a delayed claim a volume that is there already: names the claim on it. */
  | {
      readonly step: "reserveVolume";
      readonly claim: Stored<PersistentVolumeClaim>;
      readonly volume: Stored<PersistentVolume>;
      readonly placement: Placement;
    }
  | { readonly step: "waitForClaims" }
  | { readonly step: "bind"; readonly pod: Stored<Pod>; readonly placement: Placement }
  | { readonly step: "reportScheduled"; readonly pod: Stored<Pod>; readonly nodeName: string };

/** Decides on the next step; the first rule that applies counts. */
export function decideSchedulingStep({ pod, isBound, view, placement }: ObservedPod): SchedulingStep {
  if (pod === undefined || pod.spec?.nodeName !== undefined || isDeleting(pod)) return { step: "forget" };
  if (placement?.isBound === true) {
    return { step: "reportScheduled", pod, nodeName: placement.nodeName };
  }
  if (isBound) return { step: "waitForCache" };
  return placement === undefined ? decidePlace(view, pod) : decideBinding(view, pod, placement);
}

function decidePlace(view: ClusterView, pod: Stored<Pod>): SchedulingStep {
  const choice = chooseNode(view, pod);
  return choice.nodeName === undefined
    ? { step: "reportUnschedulable", pod, reason: choice.reason }
    : { step: "assume", pod, nodeName: choice.nodeName };
}

/** A pod is bound once all its claims are; a delayed claim waits for the name of the node. */
function decideBinding(view: ClusterView, pod: Stored<Pod>, placement: Placement): SchedulingStep {
  const { nodeName, claimsAsked } = placement;
  const waiting = claimsOfPod(view, pod).flatMap(({ claim }) =>
    claim === undefined || isFullyBound(claim) ? [] : [claim],
  );
  const node = view.nodes.find(({ metadata }) => metadata.name === nodeName);
  const choices = node === undefined || waiting.length === 0 ? undefined : staticVolumes(view, pod, node);
  for (const claim of waiting) {
    const { name, annotations } = claim.metadata;
    if (claimsAsked.includes(name)) continue;
    const choice = choices?.get(name);
    if (choice?.kind === "volume") {
      // One that names the claim is about to be bound by its controller.
      if (choice.volume.spec?.claimRef != null) continue;
      return { step: "reserveVolume", claim, volume: choice.volume, placement };
    }
    if (annotations?.[selectedNodeAnnotation] !== nodeName) return { step: "selectNode", claim, placement };
  }
  return waiting.length > 0 ? { step: "waitForClaims" } : { step: "bind", pod, placement };
}
