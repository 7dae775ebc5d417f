/**
 * When the garbage of a server's requests is collected. Left to itself V8 does it in the middle of a request, since the
 * young generation becomes full only while one is worked on. Done a moment after an answer it delays only who asks
 * right then. Source: docs/decisions/0022-no-engine-switching.md.
 */
import { getHeapSpaceStatistics } from "node:v8";

/** V8's collector, as Node exposes it. */
export type Collector = (options: { readonly type: "minor" }) => unknown;

/** Answers after which the heap is looked at: a look takes some ten microseconds. */
const answersPerLook = 8;

/** Part of the young generation that is in use when it is collected; V8 does it by itself at 0.8. */
const fullEnough = 0.6;

/** Time from an answer until then, in milliseconds: who was answered may need the processor to take notice of it. */
const pauseMs = 1;

/** The collector of this process; undefined unless Node was started with `--expose-gc`. */
export function exposedCollector(): Collector | undefined {
  return (globalThis as { readonly gc?: Collector }).gc;
}

/** Returns what a server calls after each answer: it has `collect` empty the young generation once that is full enough. */
export function collectBetweenAnswers(collect: Collector): () => void {
  let answers = 0;
  let isDue = false;
  const later = () => {
    isDue = false;
    // Under load V8 may have been first.
    if (youngPartInUse() >= fullEnough) collect({ type: "minor" });
  };
  return () => {
    answers = (answers + 1) % answersPerLook;
    if (answers > 0 || isDue || youngPartInUse() < fullEnough) return;
    isDue = true;
    setTimeout(later, pauseMs).unref();
  };
}

/** Part of the young generation that is in use, 0 to 1. */
export function youngPartInUse(): number {
  const young = getHeapSpaceStatistics().find((space) => space.space_name === "new_space");
  if (young === undefined) return 0;
  const { space_used_size: used, space_available_size: free } = young;
  return used / Math.max(1, used + free);
}
