/**
 * Pods with the node chosen for them, until the cache shows them there. They count on that node while their claims are
 * provisioned and while the cache lags behind the binding, so that two pods never take the same last slot.
 */
import { keyOf, type ObjectKey, type Pod, type Stored } from "@longshore/kube";

interface Assumption {
  readonly pod: Stored<Pod>;
  readonly nodeName: string;
  /** The binding has been written. */
  readonly isBound: boolean;
}

/** What the scheduler has chosen and the cache does not show yet; a key has one assumption at most. */
export class AssumedPods {
  readonly #byKey = new Map<ObjectKey, Assumption>();
  readonly #byNode = new Map<string, Map<ObjectKey, Stored<Pod>>>();

  /** Counts the pod on the node from now on, in place of what was assumed for its key. */
  assume(pod: Stored<Pod>, nodeName: string): void {
    this.#put({ pod, nodeName, isBound: false });
  }

  /** The binding of the pod to the node has been written. */
  markBound(pod: Stored<Pod>, nodeName: string): void {
    this.#put({ pod, nodeName, isBound: true });
  }

  /** Whether something is assumed for the key, for whichever pod of that name. */
  has(key: ObjectKey): boolean {
    return this.#byKey.has(key);
  }

  /** Whether the binding of this very pod has been written; a later pod of its name is another. */
  isBound(pod: Stored<Pod>): boolean {
    const assumption = this.#byKey.get(keyOf(pod));
    return assumption?.isBound === true && assumption.pod.metadata.uid === pod.metadata.uid;
  }

  /** The pods assumed on the node, as they were when it was chosen. */
  on(nodeName: string): readonly Stored<Pod>[] {
    return [...(this.#byNode.get(nodeName)?.values() ?? [])];
  }

  /** All of them, as they were when their nodes were chosen. */
  all(): readonly Stored<Pod>[] {
    return [...this.#byKey.values()].map(({ pod }) => pod);
  }

  forget(key: ObjectKey): void {
    const assumption = this.#byKey.get(key);
    if (assumption === undefined) return;
    this.#byKey.delete(key);
    const pods = this.#byNode.get(assumption.nodeName);
    pods?.delete(key);
    if (pods?.size === 0) this.#byNode.delete(assumption.nodeName);
  }

  #put(assumption: Assumption): void {
    const key = keyOf(assumption.pod);
    this.forget(key);
    this.#byKey.set(key, assumption);
    const pods = this.#byNode.get(assumption.nodeName) ?? new Map<ObjectKey, Stored<Pod>>();
    this.#byNode.set(assumption.nodeName, pods.set(key, assumption.pod));
  }
}
