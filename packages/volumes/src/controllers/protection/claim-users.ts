/** Which pods keep a claim. Pure. Source: docs/behaviour/controllers.md Part D. */
import type { PersistentVolumeClaim, Pod } from "@longshore/kube";
import { claimOfPodVolume, hasPodStopped } from "../attach-detach/build-pod-volume.ts";

/**
 * Whether a scheduled pod uses the claim, even one that has finished; a generic ephemeral reference
 * counts only until the kubelet is done with the pod.
 */
export function isUsed(claim: PersistentVolumeClaim, pods: readonly Pod[]): boolean {
  const { namespace, name } = claim.metadata ?? {};
  return pods.some((pod) => {
    if (pod.metadata?.namespace !== namespace || (pod.spec?.nodeName ?? "") === "") return false;
    return (pod.spec?.volumes ?? []).some((volume) => {
      if (claimOfPodVolume(pod, volume)?.name !== name) return false;
      return volume.ephemeral == null || !hasPodStopped(pod);
    });
  });
}
