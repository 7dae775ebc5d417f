/** Since when pods are ready, and whether that is long enough. Pure. Source: kubernetes pkg/api/v1/pod IsPodAvailable. */
import { isDeleting, isPodTerminal, type Pod, type Stored } from "@longshore/kube";
import { isPodReady } from "../is-pod-ready.ts";

/** Whether the pod counts as one of its set: it has not come to its end, and is not being deleted. */
export function isActive(pod: Stored<Pod>): boolean {
  return !isPodTerminal(pod) && !isDeleting(pod);
}

/** Time until a ready pod is available, in milliseconds; not positive: it is. Undefined: it is not ready. */
export function availableInMs(pod: Pod, minReadySeconds: number, now: Date): number | undefined {
  if (!isPodReady(pod)) return undefined;
  if (minReadySeconds === 0) return 0;
  const since = pod.status?.conditions?.find((c) => c.type === "Ready")?.lastTransitionTime;
  const readyMs = since === undefined ? now.getTime() : Date.parse(since);
  return readyMs + 1000 * minReadySeconds - now.getTime();
}

/** How many pods are available, and when the next will be, in milliseconds. */
export function availability(
  pods: readonly Pod[],
  minReadySeconds: number,
  now: Date,
): { readonly available: number; readonly nextMs: number | undefined } {
  const waits = pods.map((pod) => availableInMs(pod, minReadySeconds, now)).filter((ms) => ms !== undefined);
  const later = waits.filter((ms) => ms > 0);
  return {
    available: waits.length - later.length,
    nextMs: later.length === 0 ? undefined : Math.min(...later),
  };
}
