/**
 * Decides which events are written: limits the events of each object, and combines many messages
 * about one reason into one (the defaults of k8s.io/client-go/tools/record).
 */
import type { Clock } from "@longshore/runtime";
import type { ObjectReference } from "kubernetes-types/core/v1.js";

/** What an event says. */
export interface EventText {
  readonly subject: ObjectReference;
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

/** Events of one object at once. */
const BURST = 25;
/** After the burst, one event of an object in this time. */
const REFILL_MS = 300_000;
/** This many different messages of one object and reason are written separately. */
const SIMILAR_MAX = 10;
/** The count of a reason restarts when no event has it for this time. */
const SIMILAR_WINDOW_MS = 600_000;
/** Objects and reasons remembered, the most recent ones. */
const REMEMBERED_MAX = 4096;

interface Bucket {
  tokens: number;
  refilledMs: number;
}

interface Similar {
  readonly messages: Set<string>;
  lastMs: number;
}

/** Remembers what was said lately. */
export class EventCorrelator {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #buckets = new Map<string, Bucket>();
  readonly #similar = new Map<string, Similar>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Returns the event to write, with a combined message when there are many similar ones; undefined: write nothing. */
  admit(text: EventText): EventText | undefined {
    const { kind, namespace, name, uid } = text.subject;
    const object = JSON.stringify([kind, namespace, name, uid]);
    // Before the token, as in client-go: an event that is dropped counts as similar too.
    const folded = this.#foldSimilar(`${object} ${text.type} ${text.reason}`, text);
    return this.#takeToken(object) ? folded : undefined;
  }

  #foldSimilar(key: string, text: EventText): EventText {
    const nowMs = this.#clock.monotonicMs();
    let similar = this.#similar.get(key);
    if (similar === undefined || nowMs - similar.lastMs > SIMILAR_WINDOW_MS) {
      similar = { messages: new Set(), lastMs: nowMs };
    }
    similar.lastMs = nowMs;
    remember(this.#similar, key, similar);
    if (similar.messages.has(text.message)) return text;
    if (similar.messages.size < SIMILAR_MAX) {
      similar.messages.add(text.message);
      return text;
    }
    // A constant message, so that all that follow are one Event.
    return { ...text, message: `(combined from similar events): ${text.reason}` };
  }

  #takeToken(object: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const bucket = this.#buckets.get(object) ?? { tokens: BURST, refilledMs: nowMs };
    const refill = Math.floor((nowMs - bucket.refilledMs) / REFILL_MS);
    bucket.tokens = Math.min(BURST, bucket.tokens + refill);
    bucket.refilledMs += refill * REFILL_MS;
    remember(this.#buckets, object, bucket);
    if (bucket.tokens === 0) return false;
    bucket.tokens--;
    return true;
  }
}

/** Puts the entry last, and forgets the one that was not touched for the longest time. */
function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= REMEMBERED_MAX) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
