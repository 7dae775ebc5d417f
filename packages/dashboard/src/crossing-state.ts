/** The crossing as the page shows it. Pure. */
import { type CrossingStatus, doneCountOf, waitWords } from "@longshore/migration";
import type { CrossingState } from "./state.ts";

const interruptions = {
  timedOut: "a step took too long",
  interrupted: "it was interrupted",
  failed: "it failed",
  paused: "it has paused",
  gone: "its process is gone",
} as const;

/** The crossing in words. */
export function crossingStateOf(status: CrossingStatus): CrossingState {
  const { state, direction, plugin, by, step, waiting, interruption, finishedAt } = status;
  const name = step?.nodeName === undefined ? step?.name : `${step.nodeName}: ${step.name}`;
  return {
    state,
    direction,
    plugin,
    nodesDone: doneCountOf(status),
    by: by === undefined ? "" : `${by.user}@${by.host}, process ${by.pid}`,
    ...(step === undefined ? {} : { step: { name: name ?? "", since: step.since } }),
    ...(waiting === undefined ? {} : { waiting: { for: waitWords(waiting), since: waiting.since } }),
    ...(interruption === undefined
      ? {}
      : { interruption: { why: interruptions[interruption.how], since: interruption.at } }),
    ...(finishedAt === undefined ? {} : { finishedAt }),
  };
}
