/** The actions of the scheduler, one for each step of its decision. */
import {
  type Actions,
  type EventRecorder,
  isConflict,
  isNotFound,
  type KubeClient,
  keyOf,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  refOf,
  resources,
  type Stored,
  settled,
} from "@longshore/kube";
import { selectedNodeAnnotation } from "@longshore/storage";
import { boundByControllerAnnotation } from "@longshore/volumes";
import type { AssumedPods } from "./assumed-pods.ts";
import type { ObservedPod, SchedulingStep } from "./decide-scheduling-step.ts";

/** Time until the next attempt for a pod that fits no node, or waits for its claims, without any change. */
const retryMs = 5000;

/** What the actions need. */
export interface SchedulingParts {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  readonly assumed: AssumedPods;
}

/** The table of actions. */
export function schedulingActions({
  kube,
  events,
  assumed,
}: SchedulingParts): Actions<ObservedPod, SchedulingStep> {
  return {
    forget(_step, _observed, { key }) {
      assumed.forget(key);
      return settled;
    },
    waitForCache: () => settled,
    reportUnschedulable({ pod, reason }, _observed, { key }) {
      assumed.forget(key);
      events.event(pod, "Warning", "FailedScheduling", reason);
      return { requeueAfterMs: retryMs };
    },
    assume({ pod, nodeName }, observed) {
      assumed.assume(pod, nodeName);
      return { observed: { ...observed, placement: { nodeName, claimsAsked: [], isBound: false } } };
    },
    async selectNode({ claim, placement }, observed, { signal }) {
      await selectNodeFor(kube, claim, placement.nodeName, signal);
      const claimsAsked = [...placement.claimsAsked, claim.metadata.name];
      return { observed: { ...observed, placement: { ...placement, claimsAsked } } };
    },
    async reserveVolume({ claim, volume, placement }, observed, { signal }) {
      await reserveVolume(kube, claim, volume, signal);
      const claimsAsked = [...placement.claimsAsked, claim.metadata.name];
      return { observed: { ...observed, placement: { ...placement, claimsAsked } } };
    },
    waitForClaims: () => ({ requeueAfterMs: retryMs }),
    async bind({ pod, placement }, observed, { signal }) {
      const binding = bindingOf(pod, placement.nodeName);
      await kube.createSubresource(resources.pods, refOf(pod), "binding", binding, { signal });
      assumed.markBound(pod, placement.nodeName);
      return { observed: { ...observed, placement: { ...placement, isBound: true } } };
    },
    reportScheduled({ pod, nodeName }) {
      events.event(pod, "Normal", "Scheduled", `Successfully assigned ${keyOf(pod)} to ${nodeName}`);
      return settled;
    },
  };
}

/** A conflict, or a claim that is gone: the cache lags, and its change wakes the pod. */
async function selectNodeFor(
  kube: KubeClient,
  claim: Stored<PersistentVolumeClaim>,
  nodeName: string,
  signal: AbortSignal,
): Promise<void> {
  const annotations = { ...claim.metadata.annotations, [selectedNodeAnnotation]: nodeName };
  const changed = { ...claim, metadata: { ...claim.metadata, annotations } };
  await kube.update(resources.persistentVolumeClaims, changed, { signal }).catch((error) => {
    if (!isConflict(error) && !isNotFound(error)) throw error;
  });
}

/** A conflict: another claim takes the volume; its change wakes the pod, or the time does. */
async function reserveVolume(
  kube: KubeClient,
  { metadata: { name, namespace = "default", uid, resourceVersion } }: Stored<PersistentVolumeClaim>,
  volume: Stored<PersistentVolume>,
  signal: AbortSignal,
): Promise<void> {
  const claimRef = { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name, uid, resourceVersion };
  const annotations = { ...volume.metadata.annotations, [boundByControllerAnnotation]: "yes" };
  const changed = {
    ...volume,
    metadata: { ...volume.metadata, annotations },
    spec: { ...volume.spec, claimRef },
  };
  await kube.update(resources.persistentVolumes, changed, { signal }).catch((error) => {
    if (!isConflict(error) && !isNotFound(error)) throw error;
  });
}

function bindingOf({ metadata: { name, namespace = "default", uid } }: Stored<Pod>, nodeName: string) {
  return {
    apiVersion: "v1",
    kind: "Binding",
    metadata: { name, namespace, uid },
    target: { apiVersion: "v1", kind: "Node", name: nodeName },
  };
}
