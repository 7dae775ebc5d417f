/** A crossing that is killed at any of its calls, and resumed, here or on another machine, loses and strands nothing. */
import { expect, test } from "vitest";
import { crashCrossing, crashCrossingTwice } from "./crossing-crashes.ts";

test.each(["migrate", "rollback"] as const)(
  "%s is killed at every call, and resumed (migration-controllers.md C1)",
  async (direction) => {
    const { played, failures, summary } = await crashCrossing(direction);
    console.log(summary);
    expect(failures).toEqual([]);
    expect(played).toBeGreaterThan(200);
  },
);

test.each(["migrate", "rollback"] as const)(
  "%s is killed, the run that goes on is killed too, and a third one ends it (migration-controllers.md C1)",
  async (direction) => {
    const { failures, summary } = await crashCrossingTwice(direction, 8);
    console.log(summary);
    expect(failures).toEqual([]);
  },
);
