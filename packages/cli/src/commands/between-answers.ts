/**
 * When the garbage of a server's requests is collected. Left to itself V8 does it in the middle of a request, since the
 * young generation becomes full only while one is worked on. Done a moment after an answer it delays only who asks
 * right then.
 */
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Answers after which the heap is looked at: a look takes some ten microseconds. */
const answersPerLook = 8;

/** Part of the young generation that is in use when it is collected; V8 does it by itself at 0.8. */
const fullEnough = 0.6;

/** Time from an answer until then, in milliseconds: who was answered may need the processor to take notice of it. */
const pauseMs = 1;

/** What a server calls after each answer. */
export function collectBetweenAnswers(): () => void {
  let answers = 0;
  let isDue = false;
  let collect: ((options: { readonly type: "minor" }) => void) | undefined;
  return () => {
    answers = (answers + 1) % answersPerLook;
    if (answers > 0 || isDue || youngPartInUse() < fullEnough) return;
    isDue = true;
    const later = () => {
      isDue = false;
      // Under load V8 may have been first.
      if (youngPartInUse() < fullEnough) return;
      collect ??= exposedCollector();
      collect({ type: "minor" });
    };
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

/** V8 shows its collector in contexts that are made while this flag is set. */
function exposedCollector(): (options: { readonly type: "minor" }) => void {
  setFlagsFromString("--expose-gc");
  const collector = runInNewContext("gc");
  setFlagsFromString("--no-expose-gc");
  return collector;
}
