/** Waiting for kinds that an API server may get later, by an upgrade. */
import type { KubeEnv } from "./kube-env.ts";
import type { KubeObject } from "./kube-objects.ts";
import type { Resource } from "./resources.ts";

/** How often a server without the kind is asked again, in milliseconds. */
const askAgainMs = 10 * 60_000;

/**
 * Waits until the API server has the kind, for what a component can do without. A server that does not answer is asked
 * again like one that has not got it.
 *
 * @returns false when it is aborted before
 */
export async function untilServed(
  { kube, clock, logger }: KubeEnv,
  resource: Resource<KubeObject>,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    try {
      if ((await kube.servedVersion(resource, { signal })) !== undefined) return true;
    } catch (error) {
      signal.throwIfAborted();
      logger.warn("cannot ask whether the API server has a kind", { kind: resource.kind, error });
    }
    await clock.sleep(askAgainMs, signal);
  }
  return false;
}
