/**
 * The suite as tests of a runner: each check is a test of vitest, node:test, mocha or jest, whose `describe`,
 * `test` and `afterAll` are given.
 */
import type { Check } from "./check.ts";
import { type CheckGroup, checkGroups, groupOf } from "./check-result.ts";
import { checks } from "./checks/index.ts";
import type { ConformanceEnv, ConformanceOptions } from "./conformance-options.ts";
import { CleanupError, ConformanceSession } from "./run-conformance.ts";

/** What is used of a test runner. */
export interface TestRunner {
  describe(name: string, body: () => void): unknown;
  /** A test; what it is given (node:test, mocha, vitest) is asked to skip it. */
  test(name: string, body: (this: unknown, context: unknown) => Promise<void>): unknown;
  /** Runs after all tests of the file: `afterAll` (vitest, jest), `after` (node:test, mocha). */
  afterAll(body: () => void): unknown;
}

/** Where the driver is, and the seams to reach it; a function when it is only known once tests run. */
export type ConformanceTarget =
  | { readonly env: ConformanceEnv; readonly options: ConformanceOptions }
  | (() => Promise<{ readonly env: ConformanceEnv; readonly options: ConformanceOptions }>);

/**
 * Declares a test for each check. A check that does not apply skips its test where the runner has a way to do
 * so, and passes otherwise.
 * @param select which checks become tests, by id; default all
 */
export function conformanceSuite(
  runner: TestRunner,
  target: ConformanceTarget,
  select: (id: string) => boolean = () => true,
): void {
  const never = new AbortController().signal;
  let opening: Promise<ConformanceSession> | undefined;
  const session = () => {
    opening ??= (async () => {
      const { env, options } = typeof target === "function" ? await target() : target;
      return ConformanceSession.open(env, options, never);
    })();
    return opening;
  };
  const selected = checks.filter(({ id }) => select(id));
  runner.describe("CSI conformance", () => {
    for (const [group, own] of byGroup(selected)) {
      runner.describe(group, () => {
        for (const check of own) {
          runner.test(`${check.id}: ${check.sentence}`, async function (this: unknown, context: unknown) {
            const open = await session();
            const before = open.leftovers.length;
            const result = await open.run(check, never);
            const left = open.leftovers.slice(before);
            if (result.outcome === "skipped") skip(this, context, result.message ?? "");
            if (result.outcome === "failed")
              throw new Error(`${result.message} (CSI specification, ${check.spec})`);
            if (left.length > 0) throw new CleanupError(`could not remove ${left.join("; ")}`);
          });
        }
      });
    }
    runner.afterAll(() => {
      void opening?.then(
        (open) => open.close(),
        () => {},
      );
    });
  });
}

/** Groups in their order, checks within in theirs. A check that others wait for in another group runs first there. */
function byGroup(selected: readonly Check[]): readonly (readonly [CheckGroup, readonly Check[]])[] {
  return checkGroups
    .map((group) => [group, selected.filter(({ id }) => groupOf(id) === group)] as const)
    .filter(([, own]) => own.length > 0);
}

/** Asks the runner to skip: by the test's argument (vitest, node:test) or by `this` (mocha). */
function skip(self: unknown, context: unknown, reason: string): void {
  for (const asked of [context, self]) {
    const way = (asked as { readonly skip?: unknown } | undefined)?.skip;
    if (typeof way === "function") {
      way.call(asked, reason);
      return;
    }
  }
}
