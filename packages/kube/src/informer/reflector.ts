/**
 * Keeps a local copy of one list of the API server: lists it once, then watches what changes.
 *
 *     ┌────► list all pages ──► replace ──► watch ──► event ──► apply ─┐
 *     │        (or the watch streams them)     ▲  ▲──────────────────────┘
 *     │  410, or versions went back            │
 *     └────────────── probe ◄── back-off ◄── closed, broken or idle
 *
 * Invariants
 *  - Never stops on an error: whatever list or watch throw, it retries after a back-off, until its signal aborts.
 *  - At most one list is in flight.
 *  - A watch resumes from the last version seen. A watch that carries neither event nor bookmark for
 *    `idleMs` is closed: a half-open connection never ends by itself.
 *  - Before a watch resumes, one item is listed: a server that was restored from a backup has an older
 *    version than ours, and would keep a watch from the future silent until its versions caught up.
 *    In that case everything is listed again. (If the versions of a restored server have already passed
 *    ours when we reconnect, versions do not show that it was restored.)
 */
import { abortable, errorChain, withDeadline } from "@longshore/runtime";
import {
  isExpired,
  KubeApiError,
  KubeTransportError,
  type ListPage,
  type WatchEvent,
} from "../kube-client.ts";
import type { KubeEnv } from "../kube-env.ts";
import { type KubeObject, keyOf, type ObjectKey, type Stored } from "../kube-objects.ts";
import type { Resource } from "../resources.ts";
import { compareResourceVersions } from "./compare-resource-versions.ts";
import { reflectorPauseMs } from "./reflector-pause.ts";
import { watchSilence } from "./watch-silence.ts";

/** Receives what the reflector sees. Must not throw. */
export interface ReflectorTarget<T extends KubeObject> {
  /** A complete list begins. */
  listing(): void;
  /** The list is exactly this now. */
  replace(items: readonly Stored<T>[]): void;
  apply(type: "ADDED" | "MODIFIED" | "DELETED", object: Stored<T>): void;
  /** The position moved on: by a change of this object, or altogether. */
  moved(key: ObjectKey | undefined): void;
}

/** What to reflect. */
export interface ReflectorOptions<T extends KubeObject> {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly metadataOnly?: boolean;
  readonly keepManagedFields?: boolean;
  readonly initialList?: "paged" | "streamed";
  /** Applied to every object before it is kept. */
  readonly transform: (object: Stored<T>) => Stored<T>;
}

/** Items of one page; the size keeps the peak of memory low at no cost in time. */
const PAGE_LIMIT = 500;
/** Deadline of one page. */
const LIST_DEADLINE_MS = 60_000;
/** A server sends a bookmark about every minute, so this long a silence is a dead peer. */
const IDLE_MS = 150_000;
/** The server is asked to end a watch after this time, and up to as much again. */
const WATCH_SECONDS = 300;
/** A watch that lasted this long was healthy, even if nothing happened. */
const HEALTHY_MS = 10_000;

interface PassProgress {
  /** The watch carried something, or lasted. */
  healthy: boolean;
}

/** Items of a streamed list, until its final bookmark arrives. */
type Streamed<T extends KubeObject> = Map<ObjectKey, Stored<T>>;

/** Reflects one list into its target. */
export class Reflector<T extends KubeObject> {
  readonly #env: KubeEnv;
  readonly #resource: Resource<T>;
  readonly #target: ReflectorTarget<T>;
  readonly #options: ReflectorOptions<T>;
  /** Everything up to this version has been applied; undefined: list first. */
  #position: string | undefined;
  #hasWatched = false;
  #refreshWanted = false;
  #canStream: boolean;
  #watching: AbortController | undefined;

  constructor(env: KubeEnv, resource: Resource<T>, target: ReflectorTarget<T>, options: ReflectorOptions<T>) {
    this.#env = env;
    this.#resource = resource;
    this.#target = target;
    this.#options = options;
    this.#canStream = options.initialList === "streamed";
  }

  /** Everything up to this version is in the target; undefined when that is not known. */
  get position(): string | undefined {
    return this.#position;
  }

  /** Starts a new list of everything, after a list that is in progress has ended. */
  refresh(): void {
    this.#refreshWanted = true;
    this.#watching?.abort(new WatchEndedError());
  }

  /** Reflects until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    let wasUnreachable = false;
    while (!signal.aborted) {
      let problem: unknown;
      const progress: PassProgress = { healthy: false };
      try {
        await this.#pass(progress, signal);
      } catch (error) {
        if (signal.aborted) return;
        problem = error;
      }
      if (progress.healthy) failures = 0;
      // The first relist after a healthy watch need not wait; all else does, so that no loop spins.
      if ((problem === undefined || isExpired(problem)) && progress.healthy) continue;
      // Any HTTP answer ends the outage: reset the back-off.
      const isUnreachable = problem instanceof KubeTransportError;
      if (isUnreachable !== wasUnreachable) failures = 0;
      wasUnreachable = isUnreachable;
      failures++;
      const pauseMs = reflectorPauseMs(problem, failures, this.#env.random);
      this.#log(problem, failures, pauseMs);
      await this.#env.clock.sleep(pauseMs, signal).catch(() => {});
    }
  }

  #log(problem: unknown, failures: number, pauseMs: number): void {
    if (problem === undefined) return;
    const text = `list and watch of ${this.#resource.plural} failed`;
    const fields = { error: errorChain(problem), retryInMs: Math.round(pauseMs) };
    this.#env.logger[failures > 1 ? "warn" : "debug"](text, fields);
  }

  /** Lists if need be and watches once. Returns when the watch ended in good order. */
  async #pass(progress: PassProgress, signal: AbortSignal): Promise<void> {
    if (this.#refreshWanted) this.#position = undefined;
    if (this.#position !== undefined && this.#hasWatched && (await this.#wentBackwards(signal))) {
      this.#env.logger.warn(`versions of ${this.#resource.plural} went backwards: listing again`);
      this.#position = undefined;
    }
    try {
      if (this.#position === undefined && this.#canStream) await this.#listAndWatch(progress, signal);
      else {
        if (this.#position === undefined) await this.#list(signal);
        if (!this.#refreshWanted) await this.#watch(progress, undefined, signal);
      }
    } catch (error) {
      if (isExpired(error)) this.#position = undefined;
      // What was asked for is no failure.
      if (this.#refreshWanted && error instanceof WatchEndedError) progress.healthy = true;
      else throw error;
    } finally {
      this.#hasWatched = true;
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    this.#beginList();
    const listed = await this.#listAll(signal);
    // Before `replace`: what it calls asks which versions have been seen.
    this.#position = listed.resourceVersion;
    this.#target.replace(listed.items);
  }

  /** One watch that begins with the list. If the server does not support that, later lists use pages. */
  async #listAndWatch(progress: PassProgress, signal: AbortSignal): Promise<void> {
    this.#beginList();
    const streamed: Streamed<T> = new Map();
    try {
      await this.#watch(progress, streamed, signal);
    } catch (error) {
      const isRefused = error instanceof KubeApiError && (error.code === 400 || error.code === 422);
      if (this.#position === undefined && isRefused) {
        this.#canStream = false;
        progress.healthy = true; // Nothing is wrong: the next pass lists.
        return;
      }
      throw error;
    }
  }

  #beginList(): void {
    this.#refreshWanted = false;
    this.#target.listing();
  }

  async #listAll(
    signal: AbortSignal,
  ): Promise<{ readonly items: readonly Stored<T>[]; readonly resourceVersion: string }> {
    try {
      return await this.#listPages(PAGE_LIMIT, signal);
    } catch (error) {
      // The token of a slow paged list expires with its version; one undivided list cannot.
      if (!isExpired(error)) throw error;
      return await this.#listPages(undefined, signal);
    }
  }

  async #listPages(limit: number | undefined, signal: AbortSignal) {
    const items: Stored<T>[] = [];
    let page: ListPage<T> | undefined;
    do {
      page = await this.#listPage(limit, page?.continue, signal);
      for (const item of page.items) items.push(this.#options.transform(item));
    } while (page.continue !== undefined && page.continue !== "");
    return { items, resourceVersion: page.resourceVersion };
  }

  #listPage(limit: number | undefined, token: string | undefined, parent: AbortSignal): Promise<ListPage<T>> {
    return withDeadline(this.#env.clock, LIST_DEADLINE_MS, parent, (signal) =>
      abortable(
        this.#env.kube.list(this.#resource, {
          ...this.#selection(),
          ...(limit === undefined ? {} : { limit }),
          ...(token === undefined ? {} : { continue: token }),
          signal,
        }),
        signal,
      ),
    );
  }

  async #wentBackwards(signal: AbortSignal): Promise<boolean> {
    if (this.#position === undefined) return false;
    const page = await this.#listPage(1, undefined, signal);
    const order = compareResourceVersions(page.resourceVersion, this.#position);
    // Versions that cannot be compared show nothing: list again, to be safe.
    return order === undefined || order < 0;
  }

  async #watch(
    progress: PassProgress,
    streamed: Streamed<T> | undefined,
    parent: AbortSignal,
  ): Promise<void> {
    const { clock, random, kube } = this.#env;
    const stop = new AbortController();
    this.#watching = stop;
    const onParentAbort = () => stop.abort(parent.reason);
    parent.addEventListener("abort", onParentAbort, { once: true });
    const startedMs = clock.monotonicMs();
    let heardMs = startedMs;
    const watchdog = watchSilence(clock, IDLE_MS, () => heardMs, stop);
    // Random, as in client-go: watches that began together do not all reconnect together.
    const timeoutSeconds = WATCH_SECONDS + random.below(WATCH_SECONDS, "watch timeout");
    let onStop: (reason: unknown) => void = () => {};
    stop.signal.addEventListener("abort", () => onStop(stop.signal.reason), { once: true });
    const iterator = kube
      .watch(this.#resource, {
        ...this.#selection(),
        ...(this.#position === undefined ? {} : { resourceVersion: this.#position }),
        ...(streamed === undefined ? {} : { sendInitialEvents: true }),
        timeoutSeconds,
        signal: stop.signal,
      })
      [Symbol.asyncIterator]();
    let initial = streamed;
    try {
      for (;;) {
        // As `abortable`, with one listener for the whole watch and not one an event. A handler may have ended the watch.
        stop.signal.throwIfAborted();
        // What is ready came with a chunk whose arrival `heardMs` has noted.
        let event = iterator.ready?.();
        if (event === undefined) {
          const next = await new Promise<IteratorResult<WatchEvent<T>>>((resolve, reject) => {
            onStop = reject;
            iterator.next().then(resolve, reject);
          });
          stop.signal.throwIfAborted();
          if (next.done === true) return;
          event = next.value;
          heardMs = clock.monotonicMs();
        }
        if (initial !== undefined) {
          if (this.#gather(initial, event)) initial = undefined;
          continue;
        }
        progress.healthy = true;
        if (!this.#follow(event)) return;
      }
    } finally {
      if (clock.monotonicMs() - startedMs >= HEALTHY_MS) progress.healthy = true;
      watchdog.cancel();
      parent.removeEventListener("abort", onParentAbort);
      this.#watching = undefined;
      stop.abort(new WatchEndedError());
      // Not awaited: a generator that waits for a dead peer would hold us here.
      Promise.resolve(iterator.return?.()).catch(() => {});
    }
  }

  /** Takes one event of a streamed list; true once the list is complete, and in the target. */
  #gather(items: Streamed<T>, event: WatchEvent<T>): boolean {
    if (event.type === "BOOKMARK") {
      if (event.initialEventsEnd !== true) return false;
      this.#position = event.resourceVersion;
      this.#target.replace([...items.values()]);
      return true;
    }
    const object = this.#options.transform(event.object);
    if (event.type === "DELETED") items.delete(keyOf(object));
    else items.set(keyOf(object), object);
    return false;
  }

  /** Applies one event; false when the watch is of no more use. */
  #follow(event: WatchEvent<T>): boolean {
    if (event.type === "BOOKMARK") {
      if (!this.#advance(event.resourceVersion, "bookmark")) return false;
      this.#target.moved(undefined);
    } else if (this.#advance(event.object.metadata.resourceVersion, "event")) {
      const object = this.#options.transform(event.object);
      this.#target.apply(event.type, object);
      this.#target.moved(keyOf(object));
    }
    return true;
  }

  /**
   * Moves the position on; false when what came is not after it. An event that is not after it is a
   * repetition; a bookmark that is before it shows that the server's versions went backwards.
   */
  #advance(version: string, by: "bookmark" | "event"): boolean {
    const order = this.#position === undefined ? 1 : compareResourceVersions(version, this.#position);
    if (order === undefined || order > 0) {
      this.#position = version;
      return true;
    }
    if (by === "bookmark" && order < 0) {
      this.#position = undefined;
      return false;
    }
    return by === "bookmark";
  }

  #selection(): {
    namespace?: string;
    labelSelector?: string;
    fieldSelector?: string;
    metadataOnly?: boolean;
    dropManagedFields: boolean;
    shareParts: boolean;
  } {
    const { namespace, labelSelector, fieldSelector, metadataOnly, keepManagedFields } = this.#options;
    return {
      dropManagedFields: keepManagedFields !== true,
      shareParts: true,
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...(metadataOnly === true ? { metadataOnly } : {}),
    };
  }
}

class WatchEndedError extends Error {
  override readonly name = "WatchEndedError";
  constructor() {
    super("the watch is no longer needed");
  }
}
