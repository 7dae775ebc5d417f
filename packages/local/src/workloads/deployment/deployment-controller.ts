/** Runs Deployments, by their ReplicaSets. The rules are in `decide-deployment-step.ts` and `plan-deployment.ts`. */
import {
  type Actions,
  forResource,
  isAlreadyExists,
  isNotFound,
  type KubeClient,
  observeAgain,
  type Pod,
  refOf,
  resources,
  type Stored,
  startController,
  trackWrites,
  watches,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { controllerReference } from "../pod-sets/claim-pods.ts";
import {
  controlledBy,
  orphansIn,
  ownerIndexes,
  ownershipIndexes,
  ownsOrMayAdopt,
} from "../pod-sets/controlled-objects.ts";
import type { WorkloadsEnv } from "../workloads-env.ts";
import {
  type DeploymentStep,
  decideDeploymentStep,
  type ObservedDeployment,
} from "./decide-deployment-step.ts";
import { ownerOfDeployment, revisionAnnotation } from "./plan-deployment.ts";

/** Starts the controller on the shared caches, five Deployments at a time; it works in the background until it is stopped. */
export function startDeploymentController(given: WorkloadsEnv): Component {
  const env = trackWrites(given, given.informers);
  const { clock, kube } = env;
  const deployments = env.informers.of(resources.deployments, { indexes: ownerIndexes });
  const sets = env.informers.of(resources.replicaSets, { indexes: { ...ownerIndexes, ...ownershipIndexes } });
  const pods = env.informers.of(resources.pods, { indexes: ownershipIndexes });
  /** A pod that has gone may let Recreate go on: its Deployment is its owner's owner. */
  const deploymentOf = (pod: Stored<Pod>) => {
    const namespace = pod.metadata.namespace ?? "default";
    const controller = pod.metadata.ownerReferences?.find((one) => one.controller === true);
    const set = controller?.kind === "ReplicaSet" ? sets.get(`${namespace}/${controller.name}`) : undefined;
    const owner = set?.metadata.ownerReferences?.find((one) => one.controller === true);
    return owner?.kind === "Deployment" ? [`${namespace}/${owner.name}`] : [];
  };
  const hasEnded = (before: Stored<Pod>, after: Stored<Pod>) => before.status?.phase !== after.status?.phase;
  return startController<ObservedDeployment, DeploymentStep>(env, {
    name: "deployment",
    workers: 5,
    // Each step brings one ReplicaSet nearer to its end.
    stepsMax: Number.POSITIVE_INFINITY,
    sources: [
      forResource(deployments, { deleted: "forget" }),
      ownsOrMayAdopt(sets, deployments, ownerOfDeployment),
      watches(pods, deploymentOf, { changed: hasEnded }),
    ],
    observe(key) {
      const deployment = deployments.get(key);
      if (deployment === undefined) return undefined;
      const controlled = controlledBy(sets, deployment.metadata.uid);
      return {
        deployment,
        sets: controlled,
        orphans: orphansIn(sets, deployment.metadata.namespace ?? "default"),
        podsOf: new Map(controlled.map(({ metadata: { uid } }) => [uid, controlledBy(pods, uid)])),
        now: clock.now(),
      };
    },
    decide: decideDeploymentStep,
    actions: deploymentActions(kube),
  });
}

function deploymentActions(kube: KubeClient): Actions<ObservedDeployment, DeploymentStep> {
  const unlessGone = (error: unknown) => {
    if (!isNotFound(error)) throw error;
  };
  return {
    async writeOwners({ set, ownerReferences }, _observed, { signal }) {
      const { uid, resourceVersion } = set.metadata;
      const body = { metadata: { uid, resourceVersion, ownerReferences } };
      await kube
        .patch(resources.replicaSets, refOf(set), { type: "merge", body }, { signal })
        .catch(unlessGone);
      return observeAgain;
    },
    async createReplicaSet({ set, collisions }, { deployment }, { signal }) {
      try {
        await kube.create(resources.replicaSets, set, { signal });
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
        await countCollision(kube, { deployment, name: set.metadata?.name ?? "", collisions }, signal);
      }
      return observeAgain;
    },
    async numberReplicaSet({ set, revision }, _observed, { signal }) {
      const body = { metadata: { annotations: { [revisionAnnotation]: String(revision) } } };
      await kube
        .patch(resources.replicaSets, refOf(set), { type: "merge", body }, { signal })
        .catch(unlessGone);
      return observeAgain;
    },
    async numberDeployment({ revision }, { deployment }, { signal }) {
      const body = { metadata: { annotations: { [revisionAnnotation]: String(revision) } } };
      const ref = refOf(deployment);
      await kube.patch(resources.deployments, ref, { type: "merge", body }, { signal }).catch(unlessGone);
      return observeAgain;
    },
    async scale({ set, replicas }, _observed, { signal }) {
      const { uid, resourceVersion } = set.metadata;
      const body = { metadata: { uid, resourceVersion }, spec: { replicas } };
      await kube
        .patch(resources.replicaSets, refOf(set), { type: "merge", body }, { signal })
        .catch(unlessGone);
      return observeAgain;
    },
    async reportStatus({ status, nextMs }, { deployment }, { signal }) {
      const patch = { type: "merge", body: { status } } as const;
      await kube
        .patch(resources.deployments, refOf(deployment), patch, { subresource: "status", signal })
        .catch(unlessGone);
      return nextMs === undefined ? {} : { requeueAfterMs: nextMs };
    },
    async removeReplicaSet({ set }, _observed, { signal }) {
      const { uid, resourceVersion } = set.metadata;
      await kube.delete(resources.replicaSets, refOf(set), { uid, resourceVersion, signal });
      return observeAgain;
    },
    settle: ({ nextMs }) => (nextMs === undefined ? {} : { requeueAfterMs: nextMs }),
  };
}

/** The name is taken: by our own ReplicaSet, which the cache is yet to show, or by another, which asks for another name. */
async function countCollision(
  kube: KubeClient,
  taken: {
    readonly deployment: ObservedDeployment["deployment"];
    readonly name: string;
    readonly collisions: number;
  },
  signal: AbortSignal,
): Promise<void> {
  const { deployment, name, collisions } = taken;
  const namespace = deployment.metadata.namespace ?? "default";
  const found = await kube.get(resources.replicaSets, { name, namespace }, { signal });
  const { uid } = controllerReference(ownerOfDeployment(deployment));
  if (found === undefined || found.metadata.ownerReferences?.some((one) => one.uid === uid) === true) return;
  const body = { status: { collisionCount: collisions + 1 } };
  await kube.patch(
    resources.deployments,
    refOf(deployment),
    { type: "merge", body },
    { subresource: "status", signal },
  );
}
