/** What is known of the pods of this node: which there are, which have ended, and whose volumes are resolved. */
import { isDeleting, isPodTerminal, type Pod, type Stored } from "@longshore/kube";

/** A pod that is bound to this node; a value. */
export interface NodePod {
  readonly pod: Stored<Pod>;
  /** All its volumes are in the desired state. */
  readonly isResolved: boolean;
  /** Failures to resolve its volumes, one after the other. */
  readonly failures: number;
  /** Monotonic time in milliseconds before which it is not tried again. */
  readonly retryAtMs: number;
  /** Why its volumes could not be resolved at the last try. */
  readonly errors: readonly string[];
  /** How often it was asked to be resolved again: what was read before the last time is outdated. */
  readonly requests: number;
}

/** The pods of the node. */
export class NodePods {
  readonly #pods = new Map<string, NodePod>();
  /** Pods that are gone or ended, and of which the runtime has no container. */
  readonly #over = new Set<string>();
  #areKnown = false;

  /** True once all pods that are bound here have been named. */
  get areKnown(): boolean {
    return this.#areKnown;
  }

  /** Takes every pod bound to this node. @returns the UIDs of those that came, changed or went */
  setPods(pods: readonly Stored<Pod>[]): readonly string[] {
    this.#areKnown = true;
    const changed: string[] = [];
    const uids = new Set<string>();
    for (const pod of pods) {
      const { uid } = pod.metadata;
      uids.add(uid);
      if (this.#setPod(uid, pod)) changed.push(uid);
    }
    for (const uid of [...this.#pods.keys()].filter((known) => !uids.has(known))) {
      this.#pods.delete(uid);
      changed.push(uid);
    }
    return changed;
  }

  /** Asks that claims and volumes of the pod are read again, at once. */
  reprocess(podUID: string): void {
    const known = this.#pods.get(podUID);
    if (known === undefined) return;
    const requests = known.requests + 1;
    this.#pods.set(podUID, { ...known, isResolved: false, retryAtMs: 0, errors: [], requests });
  }

  /**
   * The same, unless the pod is being resolved for the first time: what that reads is of now, so that one start of a pod
   * reads each of its claims and volumes once.
   */
  reprocessForStart(podUID: string): void {
    const known = this.#pods.get(podUID);
    const isFirst = known?.isResolved === false && known.failures === 0 && known.requests === 0;
    if (!isFirst) this.reprocess(podUID);
  }

  get(podUID: string): NodePod | undefined {
    return this.#pods.get(podUID);
  }

  uids(): readonly string[] {
    return [...this.#pods.keys()];
  }

  /** The pod is gone, or will not start containers any more. Whether any still run, the runtime knows. */
  hasEnded(podUID: string): boolean {
    const known = this.#pods.get(podUID);
    return known === undefined || startsNothing(known.pod);
  }

  /** Gone or ended, and no container of it is left. */
  isOver(podUID: string): boolean {
    return this.#over.has(podUID);
  }

  markOver(podUID: string): void {
    this.#over.add(podUID);
  }

  /** The pod and all of its volumes are gone: nothing more will be asked about it. */
  forgetOver(podUID: string): void {
    this.#over.delete(podUID);
  }

  /** The outcome of resolving the pod's volumes. @param retryAtMs counts where there are errors */
  markResolved(podUID: string, errors: readonly string[], retryAtMs: number): void {
    const known = this.#pods.get(podUID);
    if (known === undefined) return;
    const isResolved = errors.length === 0;
    const failures = isResolved ? 0 : known.failures + 1;
    this.#pods.set(podUID, { ...known, isResolved, failures, retryAtMs, errors });
  }

  /**
   * Whether what is mounted for the pod and not desired may be unmounted. Not while the pod may want
   * volumes that could not be resolved, or may have a container that uses them.
   */
  mayUnmount(podUID: string): boolean {
    return this.#over.has(podUID) || this.#pods.get(podUID)?.isResolved === true;
  }

  /** True when some pod may want volumes that are not known. */
  hasUnresolved(): boolean {
    for (const [uid, { isResolved }] of this.#pods) if (!isResolved && !this.#over.has(uid)) return true;
    return false;
  }

  /** @returns whether that is news */
  #setPod(uid: string, pod: Stored<Pod>): boolean {
    const known = this.#pods.get(uid);
    const wasOver = !startsNothing(pod) && this.#over.delete(uid);
    if (known === undefined) this.#pods.set(uid, { ...unresolved, pod });
    else if (known.pod !== pod) this.#pods.set(uid, { ...known, pod });
    return wasOver || known?.pod.metadata.resourceVersion !== pod.metadata.resourceVersion;
  }
}

const unresolved = { isResolved: false, failures: 0, retryAtMs: 0, errors: [], requests: 0 };

/** The pod starts no container any more. */
export function startsNothing(pod: Pod): boolean {
  return isPodTerminal(pod) || isDeleting(pod);
}
