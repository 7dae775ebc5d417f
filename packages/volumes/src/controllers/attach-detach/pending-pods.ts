/**
 * Pods whose volumes are not decided as the caches show them now. Until they are, nothing is detached from their nodes and
 * their own volumes are not attached: at a start no pod is decided, and a pod that has just come may want what another
 * has left. Source: docs/contract.md C2; docs/behaviour/controllers.md A2.
 */

/** The pods that wait for their decision. */
export class PendingPods {
  /** Counts the marks of all pods: the mark of a pod that is gone is not that of its namesake. */
  #marked = 0;
  /** The node of each pod, and the number of its last mark. */
  readonly #pods = new Map<string, { readonly nodeName: string; readonly marks: number }>();
  readonly #byNode = new Map<string, Set<string>>();

  /**
   * Marks a pod; undefined: it is gone or on no node, so it wants nothing attached.
   * @returns the node on which it was the last pending pod, when it is pending there no more
   */
  mark(key: string, nodeName: string | undefined): string | undefined {
    const before = this.#pods.get(key);
    const isElsewhere = before !== undefined && before.nodeName !== nodeName;
    if (isElsewhere) this.#remove(key, before.nodeName);
    if (nodeName !== undefined) this.#add(key, nodeName);
    return isElsewhere && !this.#byNode.has(before.nodeName) ? before.nodeName : undefined;
  }

  #add(key: string, nodeName: string): void {
    this.#pods.set(key, { nodeName, marks: ++this.#marked });
    const pods = this.#byNode.get(nodeName);
    if (pods === undefined) this.#byNode.set(nodeName, new Set([key]));
    else pods.add(key);
  }

  /** To be handed to {@link decided} by who decides on what the caches show now. */
  marksOf(key: string): number {
    return this.#pods.get(key)?.marks ?? 0;
  }

  /**
   * The pod is decided on what the caches showed when this was its last mark.
   * @returns its node, when that was the last pending pod there
   */
  decided(key: string, marks: number): string | undefined {
    const pod = this.#pods.get(key);
    if (pod === undefined || pod.marks !== marks) return undefined;
    this.#remove(key, pod.nodeName);
    return this.#byNode.has(pod.nodeName) ? undefined : pod.nodeName;
  }

  /** Whether any pod on the node is pending. */
  on(nodeName: string): boolean {
    return this.#byNode.has(nodeName);
  }

  /** Whether the pod is pending. */
  has(key: string): boolean {
    return this.#pods.has(key);
  }

  #remove(key: string, nodeName: string): void {
    this.#pods.delete(key);
    const pods = this.#byNode.get(nodeName);
    pods?.delete(key);
    if (pods?.size === 0) this.#byNode.delete(nodeName);
  }
}
