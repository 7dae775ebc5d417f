/** A crossing that is killed at any of its calls, and resumed, here or on another machine, loses and strands nothing. */
import { expect, test } from "vitest";
import { crashCrossing } from "./crossing-crashes.ts";

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
