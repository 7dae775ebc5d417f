/** A client for stories in which much happens before a lost answer is known. */
import {
  interceptWrites,
  type KubeClient,
  type KubeObject,
  KubeTransportError,
  type WatchEvent,
} from "@longshore/kube";
import type { World } from "./world.ts";

/** What is lost, and what is late. */
export interface LostCreation {
  /** The first object of this kind is stored without an answer. */
  readonly kind: string;
  /** Its watches deliver nothing while `isLate` is set. */
  readonly lateKind: string;
  isLate: boolean;
  /** Happens after the object was stored, before the connection is lost. */
  readonly happens: (name: string) => Promise<unknown>;
}

/** The client of `world` with the loss. */
export function losingCreation({ kube, clock, signal }: World, lost: LostCreation): KubeClient {
  async function* late<T extends KubeObject>(events: AsyncIterable<WatchEvent<T>>) {
    for await (const event of events) {
      while (lost.isLate) await clock.sleep(1000, signal);
      yield event;
    }
  }
  let isLost = false;
  return {
    ...interceptWrites(kube, (_, passSignal, send) => send(passSignal)),
    async create(resource, object, options) {
      const stored = await kube.create(resource, object, options);
      if (resource.kind !== lost.kind || isLost) return stored;
      isLost = true;
      await lost.happens(stored.metadata.name);
      throw new KubeTransportError("the answer was lost");
    },
    watch(resource, options) {
      const events = kube.watch(resource, options);
      return resource.kind === lost.lateKind ? late(events) : events;
    },
  };
}
