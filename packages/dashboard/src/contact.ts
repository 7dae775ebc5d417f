/**
 * Whether the shown state is current: when each list was last followed, and whether the API server answers. It looks
 * at what passes through the client, and asks the server itself every {@link askMs}: a watch does not end when its
 * peer is gone without closing the connection.
 */
import {
  isExpired,
  type KubeClient,
  type KubeEnv,
  type KubeObject,
  type Resource,
  resources,
  type WatchEvent,
  type WatchEvents,
} from "@longshore/kube";
import { type Component, errorChain, TaskGroup, withDeadline } from "@longshore/runtime";
import type { StaleSource } from "./state.ts";

/** Follows the contact. */
export interface Contact extends Component {
  /** The client to be used: what passes through it is contact. */
  readonly kube: KubeClient;
  /** Sources that are not followed now; empty when all of the picture is fresh. */
  stale(): readonly StaleSource[];
}

/** The name of the source that all others come from. */
export const apiServer = "API server";

const askMs = 5000;
/** Sooner while there is no answer, so that a server that is back is soon seen. */
const askAgainMs = 1000;
const answersWithinMs = 5000;

/** Starts following; `changed` is called when a source becomes stale or fresh again. */
export function followContact(env: KubeEnv, changed: () => void): Contact {
  const lost = new Map<string, StaleSource>();
  let heardAt = env.clock.now();
  let ask = new AbortController();
  const heard = (source: string) => {
    heardAt = env.clock.now();
    // An answer about any list is an answer of the server.
    const wasStale = [source, apiServer].map((name) => lost.delete(name));
    if (wasStale.includes(true)) changed();
  };
  const lose = (source: string, error: unknown, since: Date) => {
    if (lost.has(source)) return;
    lost.set(source, { source, since: since.toISOString(), error: errorChain(error) });
    changed();
  };
  const failed = (source: string, error: unknown) => {
    if (isExpired(error)) return heard(source); // The server has answered; the list is made again.
    lose(source, error, env.clock.now());
    // One list may be gone or the whole server: the next question says which.
    ask.abort(new AskNowError());
  };

  const tasks = new TaskGroup((error) => env.logger.error("the look at the API server failed", { error }));
  tasks.spawn(async (signal) => {
    for (;;) {
      const error = await asked(env, signal);
      signal.throwIfAborted();
      if (error === undefined) heard(apiServer);
      else lose(apiServer, error, heardAt);
      ask = new AbortController();
      const onStop = () => ask.abort(signal.reason);
      signal.addEventListener("abort", onStop, { once: true });
      await env.clock.sleep(error === undefined ? askMs : askAgainMs, ask.signal).catch(() => {});
      signal.removeEventListener("abort", onStop);
      signal.throwIfAborted();
    }
  });
  return {
    kube: watchedClient(env.kube, heard, failed),
    stale: () => [...lost.values()].sort((a, b) => (a.source < b.source ? -1 : 1)),
    stop: () => tasks.stop(),
  };
}

class AskNowError extends Error {
  override readonly name = "AskNowError";
}

/** Why the server does not answer, or undefined when it does. */
async function asked({ clock, kube }: KubeEnv, parent: AbortSignal): Promise<unknown> {
  try {
    await withDeadline(clock, answersWithinMs, parent, (signal) =>
      kube.list(resources.nodes, { limit: 1, metadataOnly: true, signal }),
    );
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The client, with every list and watch seen. */
function watchedClient(
  kube: KubeClient,
  heard: (source: string) => void,
  failed: (source: string, error: unknown) => void,
): KubeClient {
  return {
    ...boundClient(kube),
    async list(resource, options) {
      try {
        const page = await kube.list(resource, options);
        heard(resource.plural);
        return page;
      } catch (error) {
        if (!options.signal.aborted) failed(resource.plural, error);
        throw error;
      }
    },
    watch: <T extends KubeObject>(resource: Resource<T>, options: Parameters<KubeClient["watch"]>[1]) => ({
      [Symbol.asyncIterator]: () =>
        watchedEvents(
          kube.watch(resource, options)[Symbol.asyncIterator](),
          () => heard(resource.plural),
          (error) => {
            if (!options.signal.aborted) failed(resource.plural, error);
          },
        ),
    }),
  };
}

function boundClient(kube: KubeClient): KubeClient {
  return {
    get: (...call) => kube.get(...call),
    list: (...call) => kube.list(...call),
    watch: (...call) => kube.watch(...call),
    create: (...call) => kube.create(...call),
    update: (...call) => kube.update(...call),
    updateStatus: (...call) => kube.updateStatus(...call),
    patch: (...call) => kube.patch(...call),
    delete: (...call) => kube.delete(...call),
    createSubresource: (...call) => kube.createSubresource(...call),
    servedVersion: (...call) => kube.servedVersion(...call),
  };
}

function watchedEvents<T extends KubeObject>(
  events: WatchEvents<T>,
  heard: () => void,
  failed: (error: unknown) => void,
): WatchEvents<T> {
  const { ready } = events;
  const next = async (): Promise<IteratorResult<WatchEvent<T>>> => {
    try {
      const result = await events.next();
      if (result.done !== true) heard();
      return result;
    } catch (error) {
      failed(error);
      throw error;
    }
  };
  return {
    next,
    ...(ready === undefined ? {} : { ready: () => ready.call(events) }),
    return: async (value) => (await events.return?.(value)) ?? { done: true, value: undefined },
  };
}
