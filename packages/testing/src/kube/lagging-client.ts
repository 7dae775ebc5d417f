/** A client whose watches deliver late or never, and whose answers to writes may be lost: for tests of caches. */

import {
  interceptWrites,
  type KubeClient,
  type KubeObject,
  KubeTransportError,
  type WatchEvent,
} from "@longshore/kube";
import type { Clock } from "@longshore/runtime";

/** What the link does; may be changed at any time. */
export interface Link {
  /** Delay of watch events, in milliseconds. */
  lagMs: number;
  /** Open watches, and lists, deliver nothing until they are aborted. */
  isDead: boolean;
  /** Writes take effect, and fail. */
  losesAnswers?: boolean;
}

/** `kube` behind the link. */
export function laggingClient(clock: Clock, kube: KubeClient, link: Link): KubeClient {
  const client = interceptWrites(kube, async (_request, signal, send) => {
    const answer = await send(signal);
    if (link.losesAnswers === true) throw new KubeTransportError("the answer was lost");
    return answer;
  });
  return {
    ...client,
    async list(resource, options) {
      if (link.isDead) await clock.sleep(3_600_000, options.signal);
      return kube.list(resource, options);
    },
    async *watch(resource, options) {
      for await (const { event, dueMs } of stamped(kube.watch(resource, options), clock, link)) {
        const leftMs = dueMs - clock.monotonicMs();
        if (leftMs > 0) await clock.sleep(leftMs, options.signal);
        if (link.isDead) await clock.sleep(3_600_000, options.signal);
        yield event;
      }
    },
  };
}

/** The events with the time at which they may be delivered. Reads them as they arrive, not when the consumer asks. */
async function* stamped<T extends KubeObject>(watch: AsyncIterable<WatchEvent<T>>, clock: Clock, link: Link) {
  const arrived: { readonly event: WatchEvent<T>; readonly dueMs: number }[] = [];
  let wake = () => {};
  let ended = false;
  let failure: unknown;
  void (async () => {
    try {
      for await (const event of watch) {
        arrived.push({ event, dueMs: clock.monotonicMs() + link.lagMs });
        wake();
      }
    } catch (error) {
      failure = error;
    }
    ended = true;
    wake();
  })();
  for (;;) {
    for (let next = arrived.shift(); next !== undefined; next = arrived.shift()) yield next;
    if (failure !== undefined) throw failure;
    if (ended) return;
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
}
