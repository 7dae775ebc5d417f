/** The run of a crossing, as the page shows it: where it is, what it waits for, and who carries it. */
import type { CrossingState } from "../state.ts";
import { element } from "./dom.ts";
import { clockTime } from "./freshness.ts";

const tones = { running: "good", interrupted: "bad", finished: "quiet" } as const;

/** The run. */
export function crossingRun(run: CrossingState): HTMLElement {
  const { state, direction, plugin, by, step, waiting, interruption, finishedAt } = run;
  const verb = direction === "migrate" ? "Crossing of" : "Return of";
  return element(
    "div",
    { class: `run ${state}` },
    element(
      "p",
      {},
      element("span", { class: `badge ${tones[state]}` }, state),
      ` ${verb} ${plugin}`,
      finishedAt === undefined ? undefined : since(" finished at ", finishedAt),
      by === "" ? undefined : element("span", { class: "quiet" }, ` by ${by}`),
    ),
    interruption === undefined
      ? undefined
      : element(
          "p",
          { class: "problem" },
          `${interruption.why}, `,
          since("last seen at ", interruption.since),
          "; run it again to go on",
        ),
    step === undefined || state === "finished"
      ? undefined
      : element("p", {}, element("strong", {}, step.name), since(" since ", step.since)),
    waiting === undefined || state === "finished"
      ? undefined
      : element(
          "p",
          { class: "waiting" },
          `${state === "running" ? "waits" : "waited"} for ${waiting.for}`,
          since(", since ", waiting.since),
        ),
  );
}

function since(words: string, time: string): HTMLElement {
  return element("time", { class: "quiet", datetime: time }, `${words}${clockTime(time)}`);
}
