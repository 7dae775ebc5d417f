/** Calls made at once. */
import type { GrpcCode } from "@longshore/csi";
import type { CheckContext } from "../check-context.ts";
import { mustEnd } from "../expect.ts";

/**
 * Makes the call several times at once; each must end with one of the codes. Returns the answers of those that ended
 * with OK.
 */
export async function sideBySide<T>(
  context: CheckContext,
  what: string,
  codes: readonly GrpcCode[],
  call: (index: number) => Promise<T>,
): Promise<readonly T[]> {
  const calls = Array.from({ length: context.options.parallel }, (_, index) =>
    mustEnd(`${what}, ${context.options.parallel} at once,`, call(index), ...codes),
  );
  // All of them are waited for: one that is left behind would disturb the next check.
  const endings = await Promise.allSettled(calls);
  const answers: T[] = [];
  for (const ending of endings) {
    if (ending.status === "rejected") throw ending.reason;
    if (ending.value.code === "OK") answers.push(ending.value.answer);
  }
  return answers;
}
