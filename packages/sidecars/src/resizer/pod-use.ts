/**
 * Which claims pods use. Pods are many, so they are followed only from the first driver on that refuses to expand
 * what is in use.
 */
import type { ComponentScope, Pod, SharedInformers, Stored } from "@longshore/kube";
import { abortable, type Clock, DeadlineError, type Logger, withDeadline } from "@longshore/runtime";
import { cachedPodsUsingClaims } from "../common/caches.ts";

/** How long a pass waits for the first list of pods, in milliseconds. */
const SYNC_MS = 30_000;

/** Knows the claims that pods use, once it follows them. */
export interface PodUse {
  /** Resolves once {@link isUsed} is reliable, or after a timeout; then the driver is asked again. */
  follow(signal: AbortSignal): Promise<void>;
  /** Whether a pod that has not ended is known to use the claim of this key (`namespace/name`). */
  isUsed(claimKey: string): boolean;
}

/** Follows pods when first asked to. @param freed called with claims that a pod no longer uses */
export function podUse(
  env: { readonly clock: Clock; readonly logger: Logger },
  informers: SharedInformers,
  scope: ComponentScope,
  freed: (claimKey: string) => void,
): PodUse {
  let pods: ReturnType<typeof cachedPodsUsingClaims> | undefined;
  return {
    async follow(signal) {
      if (pods === undefined) {
        pods = cachedPodsUsingClaims(informers);
        const handler = {
          updated(before: Stored<Pod>, after: Stored<Pod>) {
            const kept = claimKeysOf(after);
            for (const key of claimKeysOf(before)) if (!kept.includes(key)) freed(key);
          },
          deleted: (pod: Stored<Pod>) => claimKeysOf(pod).forEach(freed),
        };
        scope.onStop(pods.onChange(handler));
      }
      const following = pods;
      try {
        // The right to read pods may be missing: that must not block a worker for ever.
        await withDeadline(env.clock, SYNC_MS, signal, (limited) =>
          abortable(following.synced(limited), limited),
        );
      } catch (error) {
        if (!(error instanceof DeadlineError)) throw error;
        env.logger.warn("it is not known which claims are in use: the resizer must be able to list pods", {
          error,
        });
      }
    },
    isUsed: (claimKey) => (pods?.byIndex("byClaim", claimKey).length ?? 0) > 0,
  };
}

/** The claims that a pod of the cache uses: none once it has ended. */
function claimKeysOf(pod: Stored<Pod>): readonly string[] {
  return (pod.spec?.volumes ?? []).flatMap(({ persistentVolumeClaim }) =>
    persistentVolumeClaim ? [`${pod.metadata.namespace ?? ""}/${persistentVolumeClaim.claimName}`] : [],
  );
}
