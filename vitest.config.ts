import { defineConfig } from "vitest/config";
import { packageEntries } from "./scripts/lib/package-entries.mjs";

/** Tests run against the sources, so that a test never passes on a stale build. */
const alias = packageEntries.map(({ specifier, source }) => ({
  find: new RegExp(`^${specifier}$`),
  replacement: source,
}));

/** What takes minutes, because it goes through every point or every fault: `npm run test:exhaustive`. */
const exhaustive = ["packages/*/src/**/*.exhaustive.test.ts", "tests/components/**/*.exhaustive.test.ts"];
/** One whole crossing of real processes, which every test run includes. */
const crossing = "tests/e2e/crossing.test.ts";
/** Gives descriptors to sockets, which a thread of Node would close a second time at its end. */
const namedPipes = "packages/local/src/containers/container-input.test.ts";

/**
 * Real processes on a machine that others use too: in CI a test of these gets a second try, which the
 * output shows. Unit tests, scenarios and simulation get none.
 */
const retry = process.env.CI === undefined ? 0 : 1;

export default defineConfig({
  resolve: { alias },
  test: {
    reporters: ["default", "./scripts/retried-tests.ts"],
    maxWorkers: 2,
    projects: [
      {
        resolve: { alias },
        test: {
          name: "unit",
          include: [
            "packages/*/src/**/*.test.ts",
            "scripts/**/*.test.ts",
            "tests/components/**/*.test.ts",
            "tests/house-rules/**/*.test.ts",
            "examples/**/*.test.ts",
          ],
          exclude: [...exhaustive, namedPipes],
          isolate: false,
          pool: "threads",
          // What hangs is ended; a busy machine is not.
          testTimeout: 60_000,
        },
      },
      {
        resolve: { alias },
        test: {
          name: "exhaustive",
          include: exhaustive,
          isolate: false,
          pool: "threads",
          // What hangs is ended; a busy machine is not.
          testTimeout: 1_800_000,
          hookTimeout: 300_000,
        },
      },
      {
        resolve: { alias },
        test: {
          name: "crossing",
          include: [crossing],
          pool: "forks",
          // After the unit tests, which some of its processes would slow down.
          sequence: { groupOrder: 1 },
          testTimeout: 120_000,
          hookTimeout: 60_000,
          retry,
        },
      },
      {
        resolve: { alias },
        test: {
          name: "e2e",
          include: ["tests/e2e/**/*.test.ts", namedPipes],
          exclude: [crossing],
          pool: "forks",
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 60_000,
          retry,
        },
      },
      {
        resolve: { alias },
        test: {
          name: "kubernetes",
          include: process.env.LONGSHORE_KUBERNETES === "1" ? ["tests/kubernetes/**/*.test.ts"] : [],
          pool: "forks",
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          retry,
        },
      },
    ],
  },
});
