/** How the contents of VolumeSnapshots and VolumeGroupSnapshots are stored, so that none that was given up comes back. */
import {
  isAlreadyExists,
  isDeleting,
  KubeApiError,
  type KubeEnv,
  type KubeObject,
  type Resource,
  refOf,
  type Stored,
} from "@longshore/kube";

/**
 * Stores contents of one kind.
 *
 * Invariant: after a request without an answer, the content is stored again only while the server has its snapshot, not
 * being deleted: it may have been stored, set to Retain and given up since (docs/contract.md C3).
 */
export class ContentCreations<T extends KubeObject, C extends KubeObject> {
  readonly #kube: KubeEnv["kube"];
  readonly #subjects: Resource<T>;
  readonly #contents: Resource<C>;
  /** UIDs of snapshots whose content may have been stored. */
  readonly #uncertain = new Set<string>();

  constructor({ kube }: KubeEnv, subjects: Resource<T>, contents: Resource<C>) {
    this.#kube = kube;
    this.#subjects = subjects;
    this.#contents = contents;
  }

  /**
   * Stores the content of a snapshot. The name has the snapshot's UID in it, so an earlier pass made what is there; the
   * next pass compares the two. Returns whether it is stored; false: only the cache still shows the snapshot as wanted.
   */
  async create(subject: Stored<T>, content: C, signal: AbortSignal): Promise<boolean> {
    const { uid } = subject.metadata;
    if (this.#uncertain.has(uid) && !(await this.#isWanted(subject, signal))) return false;
    try {
      await this.#kube.create(this.#contents, content, { signal });
    } catch (error) {
      if (isAlreadyExists(error)) return true;
      const isRefused = error instanceof KubeApiError && error.code < 500;
      if (!isRefused) this.#uncertain.add(uid);
      throw error;
    }
    return true;
  }

  /** The snapshot of this UID is gone. */
  forget(uid: string): void {
    this.#uncertain.delete(uid);
  }

  async #isWanted(subject: Stored<T>, signal: AbortSignal): Promise<boolean> {
    const live = await this.#kube.get(this.#subjects, refOf(subject), { signal });
    return live?.metadata.uid === subject.metadata.uid && !isDeleting(live);
  }
}
