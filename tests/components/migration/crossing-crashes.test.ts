/** A sample of the crash points that the exhaustive test goes through. */
import { expect, test } from "vitest";
import { crashCrossing } from "./crossing-crashes.ts";

test.each(["migrate", "rollback"] as const)(
  "%s is killed at some of its calls, and resumed (migration-controllers.md C1)",
  { timeout: 120_000 },
  async (direction) => {
    const { played, failures } = await crashCrossing(direction, (call) => call % 29 === 0);
    expect(failures).toEqual([]);
    expect(played).toBeGreaterThan(4);
  },
);
