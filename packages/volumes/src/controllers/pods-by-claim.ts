/** The index of pods by the claims that they use. */
import type { IndexFunction, Pod } from "@longshore/kube";
import { claimOfPodVolume } from "./attach-detach/build-pod-volume.ts";

/** Name of the index; its values are keys of claims, `namespace/name`. */
export const podsByClaimIndex = "claim";

/** Keys of the claims that a pod refers to, those of its generic ephemeral volumes among them. */
export function claimKeysOf(pod: Pod): readonly string[] {
  return (pod.spec?.volumes ?? []).flatMap((volume) => {
    const claim = claimOfPodVolume(pod, volume);
    return claim === undefined ? [] : [`${claim.namespace}/${claim.name}`];
  });
}

/** For the options of an informer. */
export const podsByClaim: Readonly<Record<string, IndexFunction<Pod>>> = { [podsByClaimIndex]: claimKeysOf };
