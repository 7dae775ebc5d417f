/** Where the pods are in the kinds of Kubernetes, and which of their volumes are in-tree ones that can cross. */

import { isInlineMigratable, type Volume } from "@longshore/translation";
import { type KubeObject, member } from "./kube-object.ts";

/** A pod's spec inside some object. */
export interface PodHolder {
  /** Members that lead to the pod's spec, such as `spec.template.spec`. */
  readonly path: readonly string[];
  /** Why its pods cannot share one claim; absent where there is but one pod. */
  readonly sharedBy?: string;
}

/** The pod spec that `object` holds, or `undefined` when it holds none. */
export function podHolderOf(object: KubeObject): PodHolder | undefined {
  switch (object.kind) {
    case "Pod":
      return { path: ["spec"] };
    case "Deployment":
    case "ReplicaSet":
    case "StatefulSet":
    case "ReplicationController":
      return replicated(["spec", "template", "spec"], member(object, "spec", "replicas"), "replicas");
    case "Job":
      return replicated(["spec", "template", "spec"], member(object, "spec", "parallelism"), "parallel pods");
    case "DaemonSet":
      return { path: ["spec", "template", "spec"], sharedBy: "the pods of every node" };
    case "CronJob":
      return { path: ["spec", "jobTemplate", "spec", "template", "spec"], sharedBy: "the jobs of every run" };
    case "PodTemplate":
      return { path: ["template", "spec"], sharedBy: "every pod made from it" };
    default:
      return undefined;
  }
}

function replicated(path: readonly string[], count: unknown, what: string): PodHolder {
  const replicas = typeof count === "number" ? count : 1;
  return replicas <= 1 ? { path } : { path, sharedBy: `${replicas} ${what}` };
}

/** The volumes of a pod's spec, with their places, that have an in-tree source which can cross. */
export function inlineMigratableVolumes(
  object: KubeObject,
  holder: PodHolder,
): readonly [index: number, volume: Volume][] {
  const volumes = member(object, ...holder.path, "volumes");
  if (!Array.isArray(volumes)) return [];
  return volumes.flatMap((volume, index): [number, Volume][] =>
    isInlineMigratable(volume) ? [[index, volume]] : [],
  );
}
