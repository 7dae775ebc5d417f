/** The suite as tests of this very runner, and what it does with one that is made up. */
import { CsiStatusError } from "@longshore/csi";
import { fakeWorld } from "@longshore/testing/conformance";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { conformanceChecks, conformanceSuite } from "./index.ts";

describe("a driver that keeps the contract", () => {
  let world: Awaited<ReturnType<typeof fakeWorld>>;
  beforeAll(async () => {
    world = await fakeWorld();
  });
  // The clock of the fake does not move by itself: checks that wait are left out.
  conformanceSuite(
    { describe, test, afterAll },
    async () => world,
    (id) => /^(identity|controller\.delete)/.test(id),
  );
});

/** Declares the suite for a runner that only records, and runs its tests. */
async function runTests(world: Awaited<ReturnType<typeof fakeWorld>>, select?: (id: string) => boolean) {
  const tests: { name: string; body: (this: unknown, context: unknown) => Promise<void> }[] = [];
  const groups: string[] = [];
  let closed = 0;
  const runner = {
    describe: (name: string, body: () => void) => {
      groups.push(name);
      body();
    },
    test: (name: string, body: (typeof tests)[number]["body"]) => tests.push({ name, body }),
    afterAll: (body: () => void) => {
      closed++;
      body();
    },
  };
  conformanceSuite(runner, world, select);
  const endings: Record<string, string> = {};
  for (const { name, body } of tests) {
    let skipped = "";
    const skip = (reason: string) => {
      skipped = `skipped: ${reason}`;
    };
    await world.clock.run(
      body.call({ skip }, {}).then(
        () => {
          endings[name] = skipped || "passed";
        },
        (error: Error) => {
          endings[name] = `failed: ${error.message}`;
        },
      ),
    );
  }
  return { endings, groups, closed };
}

test("each check is a test, in the group of its service; skips are reported as the runner's skips", async () => {
  const { endings, groups, closed } = await runTests(await fakeWorld());
  expect(Object.keys(endings)).toHaveLength(conformanceChecks.length);
  expect(groups).toEqual([
    "CSI conformance",
    "identity",
    "controller",
    "group-controller",
    "node",
    "snapshot-metadata",
    "protocol",
  ]);
  expect(Object.values(endings).filter((ending) => ending.startsWith("failed"))).toEqual([]);
  expect(Object.values(endings)).toContain("skipped: every capability is declared");
  expect(closed).toBe(1);
});

test("a broken rule and what is left behind fail their test", async () => {
  const world = await fakeWorld({
    fault: (services) => ({
      ...services,
      controller: {
        ...services.controller,
        deleteVolume: async () => {
          throw new CsiStatusError("INTERNAL", "never");
        },
      },
    }),
  });
  const select = (id: string) => /delete-volume\.unknown|create-volume\.works/.test(id);
  const { endings } = await runTests(world, select);
  expect(Object.values(endings)).toEqual([
    expect.stringMatching(
      /^failed: could not remove volume vol-\d+: DeleteVolume failed with INTERNAL: never$/,
    ),
    "failed: DeleteVolume of an unknown volume was refused with INTERNAL (never); must be OK (CSI specification, DeleteVolume)",
  ]);
});
