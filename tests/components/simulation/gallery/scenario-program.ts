/** Runs tests of the bundle that it is in, and sends to its parent how they ended: at the first failure it is over. */
import { startTests, type Test, type VitestRunner } from "@vitest/runner";

/** How the tests of a scenario ended. */
export interface ScenarioOutcome {
  /** The first test that failed, with its error; undefined where all have passed. */
  readonly failure?: string;
}

/**
 * Runs the tests whose full names contain `part`; `load` imports the file of tests.
 * @throws Error where no test has run: neither did any fail, then
 */
export async function runScenario(part: string, load: () => Promise<unknown>): Promise<void> {
  let ran = 0;
  const end = (outcome: ScenarioOutcome): void => {
    process.send?.(outcome, () => process.exit(0));
  };
  const ended = (test: Test): void => {
    if (test.mode !== "run") return;
    ran++;
    const [error] = test.result?.errors ?? [];
    if (error !== undefined) end({ failure: `${test.fullTestName}: ${error.message}` });
  };
  process.on("disconnect", () => process.exit(1)); // Its parent is gone.
  // A rejection that is not handled fails the scenario, as it fails a run of tests.
  process.on("unhandledRejection", (reason) => end({ failure: `unhandled: ${String(reason)}` }));
  const runner: VitestRunner = {
    config: {
      root: "/",
      setupFiles: [],
      name: undefined,
      passWithNoTests: false,
      testNamePattern: new RegExp(part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")),
      allowOnly: false,
      sequence: { seed: 0, hooks: "stack", setupFiles: "list" },
      chaiConfig: undefined,
      maxConcurrency: 1,
      testTimeout: 0,
      hookTimeout: 0,
      retry: 0,
      includeTaskLocation: false,
      tags: [],
      tagsFilter: undefined,
      strictTags: false,
    },
    importFile: load,
    onAfterRunTask: ended,
  };
  const files = await startTests(["scenario"], runner);
  const [failed] = files.flatMap(({ result }) => result?.errors ?? []);
  if (ran === 0) throw new Error(failed?.message ?? `no test has "${part}" in its name`);
  end(failed === undefined ? {} : { failure: failed.message });
}
