/** The cache of the pods that are bound to one node, and its indexes. */
import {
  type Informer,
  isDeleting,
  type KubeEnv,
  type Pod,
  resources,
  type Stored,
  startInformer,
} from "@longshore/kube";

const podsByUIDIndex = "uid";
const deletingIndex = "deleting";

/** Starts the cache of the pods bound to the node, with the indexes that the functions below read; the caller stops it. */
export function startNodePods(env: KubeEnv, nodeName: string): Informer<Pod> {
  return startInformer(env, resources.pods, {
    fieldSelector: `spec.nodeName=${nodeName}`,
    indexes: {
      [podsByUIDIndex]: (pod) => [pod.metadata.uid],
      [deletingIndex]: (pod) => [String(isDeleting(pod))],
    },
  });
}

/** The pod with the UID. */
export function podByUID(pods: Informer<Pod>, podUID: string): Stored<Pod> | undefined {
  return pods.byIndex(podsByUIDIndex, podUID)[0];
}

/** Whether the pod is there and is not being deleted. */
export function isWanted(pods: Informer<Pod>, podUID: string): boolean {
  const pod = podByUID(pods, podUID);
  return pod !== undefined && !isDeleting(pod);
}

/** UIDs of the pods that are being deleted. */
export function deletingPods(pods: Informer<Pod>): readonly string[] {
  return pods.byIndex(deletingIndex, String(true)).map(({ metadata }) => metadata.uid);
}
