/** Readiness of pods. Pure. Source: core/v1 PodCondition. */
import type { Pod } from "@longshore/kube";

/** True when the pod reports the condition Ready. */
export function isPodReady(pod: Pod): boolean {
  return pod.status?.conditions?.some((c) => c.type === "Ready" && c.status === "True") === true;
}
