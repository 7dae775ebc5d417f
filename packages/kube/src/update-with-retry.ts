/** Read, change, write, and again when someone else was faster. */
import { isConflict, type KubeClient } from "./kube-client.ts";
import type { KubeObject, ObjectRef, Stored } from "./kube-objects.ts";
import type { Resource } from "./resources.ts";

/** How to write. */
export interface UpdateWithRetryOptions {
  readonly signal: AbortSignal;
  /** Writes the status instead of the rest. */
  readonly subresource?: "status";
  /** Attempts before the last conflict is thrown; default 5. */
  readonly attemptsMax?: number;
}

/**
 * Reads the object, computes the new one with `change` (undefined: nothing to do) and updates it; starts again
 * after a conflict. Returns what is stored now, or undefined when there is no such object.
 * @throws what the client throws; the conflict itself once the attempts are used up
 */
export async function updateWithRetry<T extends KubeObject>(
  kube: KubeClient,
  resource: Resource<T>,
  ref: ObjectRef,
  change: (current: Stored<T>) => T | undefined,
  options: UpdateWithRetryOptions,
): Promise<Stored<T> | undefined> {
  const { signal, attemptsMax = 5 } = options;
  for (let attempt = 1; ; attempt++) {
    const current = await kube.get(resource, ref, { signal });
    if (current === undefined) return undefined;
    const changed = change(current);
    if (changed === undefined) return current;
    try {
      return options.subresource === "status"
        ? await kube.updateStatus(resource, changed, { signal })
        : await kube.update(resource, changed, { signal });
    } catch (error) {
      if (!isConflict(error) || attempt >= attemptsMax) throw error;
    }
  }
}
