/** What happened to objects, in the order of storing: one etcd gives all versions, so they can be compared. */
import type { HttpKubeClient, KubeObject, Resource, Stored } from "@longshore/kube";
import { signal } from "./clients.ts";

/** A history that is being recorded. */
export interface History<T extends KubeObject> {
  /** Every state, in order; that of a deleted object is its last. */
  readonly states: readonly Stored<T>[];
  stop(): Promise<void>;
}

/** Records every change from now on. */
export async function record<T extends KubeObject>(
  kube: HttpKubeClient,
  resource: Resource<T>,
): Promise<History<T>> {
  const controller = new AbortController();
  const states: Stored<T>[] = [];
  const { resourceVersion } = await kube.list(resource, { signal });
  const watching = (async () => {
    for await (const event of kube.watch(resource, { signal: controller.signal, resourceVersion })) {
      if (event.type !== "BOOKMARK") states.push(event.object);
    }
  })().catch((error: unknown) => {
    if (!controller.signal.aborted) throw error;
  });
  return {
    states,
    async stop() {
      controller.abort();
      await watching;
    },
  };
}

/** The version of the first state that is so, as a number. @throws when there is none */
export function versionWhen<T extends KubeObject>(
  states: readonly Stored<T>[],
  isSo: (state: Stored<T>) => boolean,
): number {
  const found = states.find(isSo);
  if (found === undefined) throw new Error("no state of the history is so");
  return Number(found.metadata.resourceVersion);
}
