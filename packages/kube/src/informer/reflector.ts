/**
 * Keeps a local copy of one list of the API server: lists it once, then watches what changes.
 *
 *     ┌────► list all pages ──► replace ──► watch ──► event ──► apply ─┐
 *     │  410, or versions went back            ▲  ▲──────────────────────┘
 *     └────────────── probe ◄── back-off ◄── closed, broken or idle
 *
 * Invariants
 *  - Never dies: whatever list or watch throw, it goes on after a back-off, until its signal aborts.
 *  - At most one list is in flight.
 *  - A watch resumes from the last version seen. A watch that carries neither event nor bookmark for
 *    `idleMs` is given up: a peer that is gone without a goodbye never ends it.
 *  - Before a watch resumes, one item is listed: a server that was restored from a backup has an older
 *    version than ours, and would keep a watch from the future silent until its versions caught up.
 *    Then everything is listed anew. (A restored server that has already counted past our version
 *    when we come back cannot be told from the old one by its versions.)
 */
import { abortable, type BackoffPolicy, backoffMs, errorChain, withDeadline } from "@longshore/runtime";
import { isExpired, type ListPage } from "../client.ts";
import type { KubeEnv } from "../env.ts";
import type { KubeObject, Stored } from "../objects.ts";
import type { Resource } from "../resources.ts";
import { compareResourceVersions } from "./resource-version.ts";

/** Receives what the reflector sees. Must not throw. */
export interface ReflectorTarget<T extends KubeObject> {
  /** The list is exactly this now. */
  replace(items: readonly Stored<T>[]): void;
  apply(type: "ADDED" | "MODIFIED" | "DELETED", object: Stored<T>): void;
}

/** What to reflect. */
export interface ReflectorOptions<T extends KubeObject> {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
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
const BACKOFF: BackoffPolicy = { initialMs: 500, maximumMs: 30_000, jitter: 0.5 };

/** Reflects `resource` into `target` until `signal` aborts. */
export async function runReflector<T extends KubeObject>(
  env: KubeEnv,
  resource: Resource<T>,
  target: ReflectorTarget<T>,
  options: ReflectorOptions<T>,
  signal: AbortSignal,
): Promise<void> {
  const reflector = new Reflector(env, resource, target, options);
  let failures = 0;
  while (!signal.aborted) {
    let problem: unknown;
    const pass: PassProgress = { healthy: false };
    try {
      await reflector.pass(pass, signal);
    } catch (error) {
      if (signal.aborted) return;
      problem = error;
    }
    if (pass.healthy) failures = 0;
    // The first relist after a healthy watch need not wait; all else does, so that no loop spins.
    if (isExpired(problem) && pass.healthy) continue;
    if (problem === undefined && pass.healthy) continue;
    failures++;
    const pauseMs = backoffMs(BACKOFF, failures, env.random);
    if (problem !== undefined) {
      const text = `list and watch of ${resource.plural} failed`;
      const fields = { error: errorChain(problem), retryInMs: Math.round(pauseMs) };
      if (failures > 1) env.logger.warn(text, fields);
      else env.logger.debug(text, fields);
    }
    await env.clock.sleep(pauseMs, signal).catch(() => {});
  }
}

interface PassProgress {
  /** The watch carried something, or lasted. */
  healthy: boolean;
}

class Reflector<T extends KubeObject> {
  readonly #env: KubeEnv;
  readonly #resource: Resource<T>;
  readonly #target: ReflectorTarget<T>;
  readonly #options: ReflectorOptions<T>;
  /** Everything up to this version has been applied; undefined: list first. */
  #position: string | undefined;
  #hasWatched = false;

  constructor(env: KubeEnv, resource: Resource<T>, target: ReflectorTarget<T>, options: ReflectorOptions<T>) {
    this.#env = env;
    this.#resource = resource;
    this.#target = target;
    this.#options = options;
  }

  /** Lists if need be and watches once. Returns when the watch ended in good order. */
  async pass(progress: PassProgress, signal: AbortSignal): Promise<void> {
    if (this.#position !== undefined && this.#hasWatched && (await this.#wentBackwards(signal))) {
      this.#env.logger.warn(`versions of ${this.#resource.plural} went backwards: listing anew`);
      this.#position = undefined;
    }
    if (this.#position === undefined) {
      const listed = await this.#listAll(signal);
      this.#target.replace(listed.items);
      this.#position = listed.resourceVersion;
    }
    try {
      await this.#watch(progress, signal);
    } catch (error) {
      if (isExpired(error)) this.#position = undefined;
      throw error;
    } finally {
      this.#hasWatched = true;
    }
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
    return order === undefined || order < 0;
  }

  async #watch(progress: PassProgress, parent: AbortSignal): Promise<void> {
    const { clock, random, kube } = this.#env;
    const stop = new AbortController();
    const onParentAbort = () => stop.abort(parent.reason);
    parent.addEventListener("abort", onParentAbort, { once: true });
    const startedMs = clock.monotonicMs();
    let heardMs = startedMs;
    const watchdog = watchSilence(clock, IDLE_MS, () => heardMs, stop);
    const timeoutSeconds = WATCH_SECONDS + random.below(WATCH_SECONDS, "watch timeout");
    const iterator = kube
      .watch(this.#resource, {
        ...this.#selection(),
        ...(this.#position === undefined ? {} : { resourceVersion: this.#position }),
        timeoutSeconds,
        signal: stop.signal,
      })
      [Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await abortable(iterator.next(), stop.signal);
        if (next.done === true) return;
        heardMs = clock.monotonicMs();
        progress.healthy = true;
        const event = next.value;
        if (event.type === "BOOKMARK") {
          if (!this.#advance(event.resourceVersion, "bookmark")) return;
        } else if (this.#advance(event.object.metadata.resourceVersion, "event")) {
          this.#target.apply(event.type, this.#options.transform(event.object));
        }
      }
    } finally {
      if (clock.monotonicMs() - startedMs >= HEALTHY_MS) progress.healthy = true;
      watchdog.cancel();
      parent.removeEventListener("abort", onParentAbort);
      stop.abort(new WatchEndedError());
      // Not awaited: a generator that waits for a dead peer would hold us here.
      Promise.resolve(iterator.return?.()).catch(() => {});
    }
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

  #selection(): { namespace?: string; labelSelector?: string; fieldSelector?: string } {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return {
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
    };
  }
}

class WatchEndedError extends Error {
  override readonly name = "WatchEndedError";
  constructor() {
    super("the watch is no longer needed");
  }
}

/** A watch carried nothing for too long and was given up. */
class WatchIdleError extends Error {
  override readonly name = "WatchIdleError";
  constructor(ms: number) {
    super(`the watch carried neither event nor bookmark for ${ms} ms`);
  }
}

/** Aborts `stop` once nothing was heard for `ms`; one timer, not one an event. */
function watchSilence(
  clock: KubeEnv["clock"],
  ms: number,
  heardMs: () => number,
  stop: AbortController,
): { cancel(): void } {
  let timer = clock.timer(ms, check);
  function check(): void {
    const leftMs = heardMs() + ms - clock.monotonicMs();
    if (leftMs > 0) timer = clock.timer(leftMs, check);
    else stop.abort(new WatchIdleError(ms));
  }
  return { cancel: () => timer.cancel() };
}
