/**
 * What the Deployment controller does next. Pure. Source: apps/v1 Deployment.
 *
 *     adopt or release ──► createReplicaSet ──► numberRevision ──► scale, one ReplicaSet a pass ──► reportStatus ──► removeHistory
 *
 * A ReplicaSet that was scaled is followed through its status: the next one is scaled when that has changed.
 */
import type { Deployment, OwnerReference, Pod, ReplicaSet, Stored } from "@longshore/kube";
import { claimObjects, controllerReference } from "../pod-sets/claim-pods.ts";
import { isActive } from "../pod-sets/pod-availability.ts";
import { templateHash } from "../pod-sets/pod-from-template.ts";
import { deploymentReport, showsReport } from "./deployment-status.ts";
import {
  beyondHistory,
  firstReplicas,
  hashLabel,
  nextScaling,
  ownerOfDeployment,
  type Rollout,
  revisionAnnotation,
  revisionOf,
  rolloutOf,
  type Scaling,
} from "./plan-deployment.ts";

/** What the controller sees of a Deployment. */
export interface ObservedDeployment {
  readonly deployment: Stored<Deployment>;
  /** The ReplicaSets that it controls. */
  readonly sets: readonly Stored<ReplicaSet>[];
  /** ReplicaSets of its namespace that nothing controls. */
  readonly orphans: readonly Stored<ReplicaSet>[];
  /** Pods by the ReplicaSet that controls them. */
  readonly podsOf: ReadonlyMap<string, readonly Stored<Pod>[]>;
  readonly now: Date;
}

/** One action of the controller. */
export type DeploymentStep =
  | {
      readonly step: "writeOwners";
      readonly set: Stored<ReplicaSet>;
      readonly ownerReferences: readonly OwnerReference[];
    }
  | { readonly step: "createReplicaSet"; readonly set: ReplicaSet; readonly collisions: number }
  /** Writes the number of the rollout to the ReplicaSet, or to the Deployment. */
  | { readonly step: "numberReplicaSet"; readonly set: Stored<ReplicaSet>; readonly revision: number }
  | { readonly step: "numberDeployment"; readonly revision: number }
  | ({ readonly step: "scale" } & Scaling)
  | {
      readonly step: "reportStatus";
      readonly status: NonNullable<Deployment["status"]>;
      readonly nextMs: number | undefined;
    }
  | { readonly step: "removeReplicaSet"; readonly set: Stored<ReplicaSet> }
  | { readonly step: "settle"; readonly nextMs: number | undefined };

/** Decides on the next step. */
export function decideDeploymentStep(observed: ObservedDeployment): DeploymentStep {
  const { deployment, sets, orphans, podsOf, now } = observed;
  const owner = ownerOfDeployment(deployment);
  const { owned, adopt, release } = claimObjects(owner, sets, orphans);
  const rollout = rolloutOf(deployment, owned);
  if (!owner.isDeleting) {
    const [orphan] = adopt;
    if (orphan !== undefined) return writeOwners(orphan, [controllerReference(owner)]);
    const [stranger] = release;
    if (stranger !== undefined) return writeOwners(stranger, [], owner.uid);
    const oldPods = rollout.old.flatMap(({ metadata }) => podsOf.get(metadata.uid) ?? []).filter(mayRun);
    const step = rolloutStep(rollout, oldPods);
    if (step !== undefined) return step;
  }
  const { status, nextMs } = deploymentReport(rollout, now);
  if (!showsReport(deployment, status)) return { step: "reportStatus", status, nextMs };
  const [beyond] = owner.isDeleting ? [] : beyondHistory(rollout);
  return beyond === undefined ? { step: "settle", nextMs } : { step: "removeReplicaSet", set: beyond };
}

/** With Recreate no two versions run at once: a pod that is being deleted may still run. */
function mayRun(pod: Stored<Pod>): boolean {
  return isActive(pod) || (pod.status?.phase !== "Succeeded" && pod.status?.phase !== "Failed");
}

function rolloutStep(rollout: Rollout, oldPods: readonly Pod[]): DeploymentStep | undefined {
  const { deployment, current, old } = rollout;
  const isPaused = deployment.spec?.paused === true;
  if (!isPaused) {
    const last = Math.max(0, ...old.map(revisionOf));
    if (current === undefined) return createReplicaSet(rollout, oldPods, last + 1);
    const revision = revisionOf(current) > last ? revisionOf(current) : last + 1;
    if (revisionOf(current) !== revision) return { step: "numberReplicaSet", set: current, revision };
    if (deployment.metadata.annotations?.[revisionAnnotation] !== String(revision)) {
      return { step: "numberDeployment", revision };
    }
  }
  const scaling = nextScaling(rollout, oldPods);
  return scaling === undefined ? undefined : { step: "scale", ...scaling };
}

function createReplicaSet(rollout: Rollout, oldPods: readonly Pod[], revision: number): DeploymentStep {
  const { deployment } = rollout;
  const { spec, status } = deployment;
  const collisions = status?.collisionCount ?? 0;
  const hash = templateHash(spec?.template, collisions);
  const labels = { ...spec?.template?.metadata?.labels, [hashLabel]: hash };
  const set: ReplicaSet = {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      name: `${deployment.metadata.name}-${hash}`,
      namespace: deployment.metadata.namespace ?? "default",
      labels,
      annotations: { [revisionAnnotation]: String(revision) },
      ownerReferences: [controllerReference(ownerOfDeployment(deployment))],
    },
    spec: {
      replicas: firstReplicas(rollout, oldPods),
      ...(spec?.minReadySeconds === undefined ? {} : { minReadySeconds: spec.minReadySeconds }),
      selector: { ...spec?.selector, matchLabels: { ...spec?.selector?.matchLabels, [hashLabel]: hash } },
      template: { ...spec?.template, metadata: { ...spec?.template?.metadata, labels } },
    },
  };
  return { step: "createReplicaSet", set, collisions };
}

function writeOwners(
  set: Stored<ReplicaSet>,
  added: readonly OwnerReference[],
  releasedFrom?: string,
): DeploymentStep {
  const kept = (set.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== releasedFrom);
  return { step: "writeOwners", set, ownerReferences: [...kept, ...added] };
}
