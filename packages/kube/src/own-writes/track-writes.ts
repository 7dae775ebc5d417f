/**
 * Read-your-own-writes for controllers: each write of a controller is remembered until its caches show it, and
 * no pass of its queues begins before that.
 *
 * Invariants
 *  - A pass never sees a cache that is older than a write of this controller that ended before the pass began.
 *  - A write whose outcome is unknown is looked up before the next pass.
 *  - No pass waits forever: a cache that lags for long is listed again, and a pass that waited too long fails and is
 *    retried like any other.
 *  - Without writes that are yet to be seen, a pass waits for nothing, and a write costs an entry in a map.
 *
 * Objects that no cache of the controller selects are not remembered: of a cache with a label or field selector only
 * what it holds already.
 */
import { abortable, errorChain } from "@longshore/runtime";
import type { Informer } from "../informer/informer.ts";
import { interceptWrites, type WriteRequest } from "../intercept-writes.ts";
import { KubeApiError, type KubeClient } from "../kube-client.ts";
import type { KubeEnv, OwnWrites, WrittenObject } from "../kube-env.ts";
import {
  isDeleting,
  type KubeObject,
  keyOf,
  type ObjectKey,
  refOfKey,
  type Stored,
} from "../kube-objects.ts";
import type { Resource } from "../resources.ts";
import { type OwnWrite, PendingWrites } from "./pending-writes.ts";

/** The informers that a controller reads. */
export interface InformerSource {
  /** Those of this resource that have been started. */
  started(resource: Resource<KubeObject>): readonly Informer<KubeObject>[];
}

/** A cache does not show what its controller wrote; the pass that needs it is to come back. */
export class StaleCacheError extends Error {
  override readonly name = "StaleCacheError";
}

/** A healthy watch delivers a write within milliseconds; after this time the cache is listed again. */
const REFRESH_AFTER_MS = 5_000;
/** A pass waits no longer than this. */
const WAIT_MAX_MS = 30_000;

/** The environment of a controller whose queues read what it wrote: `kube` remembers writes to what `informers` cache. */
export function trackWrites<E extends KubeEnv>(
  env: E,
  informers: InformerSource,
): E & { readonly ownWrites: OwnWrites } {
  const record = new WriteRecord(env, informers);
  return { ...env, kube: record.client, ownWrites: record };
}

class WriteRecord implements OwnWrites {
  readonly client: KubeClient;
  readonly #env: KubeEnv;
  readonly #informers: InformerSource;
  readonly #pending = new Map<Informer<KubeObject>, PendingWrites>();
  /** Writes that failed in a way that leaves open whether they took effect. */
  readonly #uncertain = new Map<string, WrittenObject>();
  /** Those of them that are being looked up. */
  readonly #lookUps = new Map<string, Promise<void>>();

  constructor(env: KubeEnv, informers: InformerSource) {
    this.#env = env;
    this.#informers = informers;
    this.client = interceptWrites(env.kube, async (request, signal, send) => {
      let answer: Awaited<ReturnType<typeof send>>;
      try {
        answer = await send(signal);
      } catch (error) {
        if (!isRefusal(error)) this.#onUncertain(request);
        throw error;
      }
      this.#onWritten(request, answer);
      return answer;
    });
  }

  get isAllSeen(): boolean {
    if (this.#uncertain.size > 0) return false;
    for (const pending of this.#pending.values()) if (pending.size > 0) return false;
    return true;
  }

  async seen(pass: { readonly signal: AbortSignal }): Promise<void> {
    if (this.#uncertain.size > 0) await this.#lookUp(pass.signal);
    const lagging = [...this.#pending.values()].filter((pending) => pending.size > 0);
    const wait = (pending: PendingWrites) =>
      this.#wait(pending, (onSeen) => pending.whenSeen(onSeen), pass.signal);
    if (lagging.length > 0) await Promise.all(lagging.map(wait));
  }

  async seenOf(
    objects: readonly WrittenObject[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<void> {
    if (this.#uncertain.size > 0) {
      await this.#lookUp(
        signal,
        objects.map(({ resource, key }) => uncertainKey(resource, key)),
      );
    }
    for (const { resource, key } of objects) {
      for (const informer of this.#informers.started(resource)) {
        const pending = this.#pending.get(informer);
        if (pending?.has(key)) {
          await this.#wait(pending, (onSeen) => pending.whenSeenOf(key, onSeen), signal);
        }
      }
    }
  }

  #wait(
    pending: PendingWrites,
    whenSeen: (onSeen: () => void) => () => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, logger } = this.#env;
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      let stopWaiting = () => {};
      const end = () => {
        stopWaiting();
        timer.cancel();
        signal.removeEventListener("abort", onAbort);
      };
      const onAbort = () => {
        end();
        reject(signal.reason);
      };
      const onLate = () => {
        end();
        reject(new StaleCacheError(`the cache does not show what was written ${WAIT_MAX_MS} ms ago`));
      };
      let timer = clock.timer(REFRESH_AFTER_MS, () => {
        logger.warn("a cache does not show what was written: listing again", { afterMs: REFRESH_AFTER_MS });
        timer = clock.timer(WAIT_MAX_MS - REFRESH_AFTER_MS, onLate);
        pending.refresh();
      });
      signal.addEventListener("abort", onAbort, { once: true });
      stopWaiting = whenSeen(() => {
        end();
        resolve();
      });
    });
  }

  #onWritten(request: WriteRequest, answer: unknown): void {
    const { resource, verb, subresource } = request;
    const object = asStored(answer);
    const isOfResource = object?.kind === resource.kind;
    const key = isOfResource ? keyOf(object) : request.key;
    if (key === undefined) return;
    const isDeletion = verb === "delete" || subresource === "eviction";
    if (!isDeletion && !isOfResource) return; // A scale, a binding, a token: the answer has no version of the object.
    if (isDeletion && answer === false) return;
    this.#uncertain.delete(uncertainKey(resource, key));
    this.#remember(resource, key, (cached) => {
      if (isDeletion) {
        // The UID distinguishes the deleted object from one that is created later under its name.
        return { version: undefined, uid: request.uid ?? cached?.metadata.uid, deletion: "deleting" };
      }
      const isGone = object !== undefined && hasLastFinalizerGone(object);
      const { resourceVersion: version, uid } = object?.metadata ?? {};
      return { version, uid, deletion: isGone ? "gone" : "none" };
    });
  }

  #onUncertain({ resource, key }: WriteRequest): void {
    if (key === undefined || this.#informers.started(resource).length === 0) return;
    this.#uncertain.set(uncertainKey(resource, key), { resource, key });
  }

  /** Reads the objects of writes with unknown outcome: once each, also when several passes wait for it. */
  async #lookUp(signal: AbortSignal, ids = [...this.#uncertain.keys()]): Promise<void> {
    for (const id of ids) {
      const uncertain = this.#uncertain.get(id);
      if (uncertain === undefined) continue;
      const others = this.#lookUps.get(id);
      // If the other pass fails or stops, this one looks up the object itself.
      if (others !== undefined) await abortable(others, signal).catch(() => signal.throwIfAborted());
      // Another pass has looked it up meanwhile.
      if (this.#uncertain.get(id) !== uncertain) continue;
      const lookUp = this.#lookUpOne(id, uncertain, signal).finally(() => this.#lookUps.delete(id));
      this.#lookUps.set(id, lookUp);
      await lookUp;
    }
  }

  /** What is stored now is at least as new as the write. */
  async #lookUpOne(id: string, uncertain: WrittenObject, signal: AbortSignal): Promise<void> {
    const { resource, key } = uncertain;
    let live: Stored<KubeObject> | undefined;
    try {
      live = await this.#env.kube.get(resource, refOfKey(key), { signal });
    } catch (error) {
      if (signal.aborted || !(error instanceof KubeApiError) || error.code >= 500 || error.code === 429) {
        throw error;
      }
      // Without permission to read the object, the outcome stays unknown.
      this.#env.logger.debug("outcome of a write not known", { key, error: errorChain(error) });
    }
    // Keep the entry if another write has failed meanwhile: this answer says nothing about that one.
    if (this.#uncertain.get(id) === uncertain) this.#uncertain.delete(id);
    this.#remember(resource, key, (cached) => ({
      version: live?.metadata.resourceVersion,
      uid: (live ?? cached)?.metadata.uid,
      deletion: live === undefined ? "gone" : "none",
    }));
  }

  #remember(
    resource: Resource<KubeObject>,
    key: ObjectKey,
    writeOf: (cached: Stored<KubeObject> | undefined) => OwnWrite,
  ): void {
    for (const informer of this.#informers.started(resource)) {
      if (!informer.progress.selects(key)) continue;
      let pending = this.#pending.get(informer);
      if (pending === undefined) {
        pending = new PendingWrites(informer);
        this.#pending.set(informer, pending);
      }
      pending.add(key, writeOf(informer.get(key)));
    }
  }
}

/** The server has answered and refused, so nothing was written. */
function isRefusal(error: unknown): boolean {
  return error instanceof KubeApiError && error.code < 500;
}

function asStored(answer: unknown): Stored<KubeObject> | undefined {
  const object = answer as Partial<Stored<KubeObject>> | undefined;
  return typeof object === "object" && object?.metadata?.resourceVersion !== undefined
    ? (object as Stored<KubeObject>)
    : undefined;
}

/** The write removed the last finalizer of a deleted object, and so removed the object. */
function hasLastFinalizerGone(object: Stored<KubeObject>): boolean {
  const { finalizers = [], deletionGracePeriodSeconds = 0 } = object.metadata;
  return isDeleting(object) && finalizers.length === 0 && deletionGracePeriodSeconds === 0;
}

function uncertainKey(resource: Resource<KubeObject>, key: ObjectKey): string {
  return `${resource.group}/${resource.plural} ${key}`;
}
