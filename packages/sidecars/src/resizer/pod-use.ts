/**
 * Which claims pods use. Pods are many, so they are followed only from the first driver on that refuses to expand
 * what is in use.
 */
import type { SharedInformers } from "@longshore/kube";
import { cachedPodsUsingClaims } from "../common/caches.ts";
import type { SidecarScope } from "../common/sidecar.ts";

/** Knows the claims that pods use, once it follows them. */
export interface PodUse {
  /** Resolves once what {@link isUsed} says can be relied on. */
  follow(signal: AbortSignal): Promise<void>;
  /** Whether a pod that has not ended uses the claim of this key (`namespace/name`). */
  isUsed(claimKey: string): boolean;
}

/** Follows pods when first asked to. @param freed told of claims that a pod has ceased to use */
export function podUse(
  informers: SharedInformers,
  scope: SidecarScope,
  freed: (claimKey: string) => void,
): PodUse {
  let pods: ReturnType<typeof cachedPodsUsingClaims> | undefined;
  return {
    async follow(signal) {
      if (pods === undefined) {
        pods = cachedPodsUsingClaims(informers);
        const tell = (pod: Parameters<typeof claimKeysOf>[0]) => claimKeysOf(pod).forEach(freed);
        scope.onStop(pods.onChange({ updated: (before) => tell(before), deleted: (pod) => tell(pod) }));
      }
      await pods.synced(signal);
    },
    isUsed: (claimKey) => (pods?.byIndex("byClaim", claimKey).length ?? 0) > 0,
  };
}

function claimKeysOf(pod: {
  readonly metadata?: { readonly namespace?: string };
  readonly spec?: {
    readonly volumes?: readonly { readonly persistentVolumeClaim?: { readonly claimName: string } }[];
  };
}): string[] {
  return (pod.spec?.volumes ?? []).flatMap(({ persistentVolumeClaim }) =>
    persistentVolumeClaim ? [`${pod.metadata?.namespace ?? ""}/${persistentVolumeClaim.claimName}`] : [],
  );
}
