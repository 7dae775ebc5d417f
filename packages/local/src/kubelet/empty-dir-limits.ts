/**
 * Which pods have more in an emptyDir than its `sizeLimit`: the node ends them. Source: docs/behaviour/pod-volumes.md 2.3;
 * upstream pkg/kubelet/eviction, emptyDirLimitEviction.
 */
import { type EventRecorder, type Pod, parseQuantity, type Stored } from "@longshore/kube";
import type { MeasuredPodVolume } from "@longshore/volumes";
import { isCriticalPod } from "./decide-node-shutdown-step.ts";

/** What was measured too large, by pod. */
export class EmptyDirLimits {
  readonly #events: Pick<EventRecorder, "event">;
  readonly #onExcess: (podUID: string) => void;
  readonly #messages = new Map<string, string>();

  /** @param onExcess called once for a pod */
  constructor(events: Pick<EventRecorder, "event">, onExcess: (podUID: string) => void) {
    this.#events = events;
    this.#onExcess = onExcess;
  }

  /** A volume of a pod was measured. */
  measured({ pod, name, usedBytes }: MeasuredPodVolume): void {
    const { uid } = pod.metadata;
    const limit = limitOf(pod, name);
    if (limit === undefined || usedBytes === undefined || this.#messages.has(uid)) return;
    if (BigInt(usedBytes) <= parseQuantity(limit).value() || isCriticalPod(pod)) return;
    const message = `Usage of EmptyDir volume "${name}" exceeds the limit "${limit}".`;
    this.#messages.set(uid, message);
    this.#events.event(pod, "Warning", "Evicted", message);
    this.#onExcess(uid);
  }

  /** Why the pod is to end; undefined: it is not. */
  of(podUID: string): string | undefined {
    return this.#messages.get(podUID);
  }

  /** The pod is gone. */
  forget(podUID: string): void {
    this.#messages.delete(podUID);
  }
}

function limitOf(pod: Stored<Pod>, name: string): string | undefined {
  const limit = pod.spec?.volumes?.find((volume) => volume.name === name)?.emptyDir?.sizeLimit;
  return limit === undefined || parseQuantity(limit).isZero() ? undefined : limit;
}
