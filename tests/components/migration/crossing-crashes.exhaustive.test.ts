/** A crossing that is killed at any of its calls, and resumed, here or on another machine, loses and strands nothing. */
import { expect, test } from "vitest";
import { crashCrossing, crashCrossingTwice } from "./crossing-crashes.ts";

test.each(["migrate", "rollback"] as const)(
  "%s is killed at every call, and resumed (migration-controllers.md C1)",
  { timeout: 1_800_000 },
  async (direction) => {
    const { points, failures } = await crashCrossing(direction);
    console.log(`${direction}: ${points - failures.length}/${points} crash points`);
    expect(failures).toEqual([]);
    expect(points).toBeGreaterThan(200);
  },
);

test.each(["migrate", "rollback"] as const)(
  "%s is killed, the run that goes on is killed too, and a third one ends it (migration-controllers.md C1)",
  { timeout: 1_800_000 },
  async (direction) => {
    const { pairs, played, ended, failures } = await crashCrossingTwice(direction, 15);
    const reached = played - ended;
    console.log(
      `${direction}: ${reached - failures.length}/${reached} of ${pairs} pairs of crash points; in ${ended} more the second run had ended`,
    );
    expect(failures).toEqual([]);
    expect(reached).toBeGreaterThan(3);
  },
);
