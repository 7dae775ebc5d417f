/** What tests import as `vitest`, in a bundle: its runner and its assertions, without the worker around them. */
import {
  ASYMMETRIC_MATCHERS_OBJECT,
  chai,
  GLOBAL_EXPECT,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
  setState,
} from "@vitest/expect";

export {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  it,
  onTestFinished,
  test,
} from "@vitest/runner";

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin);

const globals = globalThis as Record<symbol, unknown>;

/** `expect` without snapshots, `poll` and `soft`. */
export const expect = Object.assign(
  (value: unknown, message?: string) => chai.expect(value, message),
  chai.expect,
  globals[ASYMMETRIC_MATCHERS_OBJECT],
);

globals[GLOBAL_EXPECT] = expect;
const state = { assertionCalls: 0, isExpectingAssertions: false };
setState(state as Parameters<typeof setState>[0], expect as unknown as Parameters<typeof setState>[1]);
