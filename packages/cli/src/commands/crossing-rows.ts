/** A crossing as rows of `longshore cluster status`. */
import { type CrossingStatus, doneCountOf, waitWords } from "@longshore/migration";

const interruptions = {
  timedOut: "a step took too long",
  interrupted: "it was interrupted",
  failed: "it failed",
  paused: "it has paused",
  gone: "its process is gone",
} as const;

/** The rows; a crossing that has come to its end has one. */
export function crossingRows(status: CrossingStatus, nodes: number): string[][] {
  const { state, direction, plugin, by, step, waiting, interruption } = status;
  const head = [
    "CROSSING",
    `${direction} ${plugin}: ${state}, ${doneCountOf(status)} of ${nodes} nodes done`,
  ];
  if (state === "finished") return [[head[0] ?? "", `${direction} ${plugin}: finished ${status.finishedAt}`]];
  const where = step?.nodeName === undefined ? step?.name : `${step.nodeName}: ${step.name}`;
  return [
    head,
    ...(interruption === undefined
      ? []
      : [["INTERRUPTED", `${interruptions[interruption.how]}, ${interruption.at}; run it again to go on`]]),
    ...(step === undefined ? [] : [["STEP", `${where}, since ${step.since}`]]),
    ...(waiting === undefined ? [] : [["WAITING FOR", `${waitWords(waiting)}, since ${waiting.since}`]]),
    ...(by === undefined ? [] : [["BY", `${by.user}@${by.host}, process ${by.pid}`]]),
  ];
}
