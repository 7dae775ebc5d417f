/** What happened to objects, in the order of storing: one etcd issues all versions, so they can be compared. */
import type { HttpKubeClient, KubeObject, Resource, Stored } from "@longshore/kube";
import { signal } from "./clients.ts";
import { eventually } from "./processes.ts";

/** A history that is being recorded. */
export interface History<T extends KubeObject> {
  /** Every state, in order; that of a deleted object is its last. */
  readonly states: readonly Stored<T>[];
  /** The version of the first state that is so, as a number; waits for it. */
  versionWhen(isSo: (state: Stored<T>) => boolean): Promise<number>;
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
    async versionWhen(isSo) {
      const found = await eventually("a state of the history is so", async () => states.find(isSo));
      return Number(found.metadata.resourceVersion);
    },
    async stop() {
      controller.abort();
      await watching;
    },
  };
}
