/** The suite can fail: for every check there is a planted fault that this check sees, and few others do. */

import { fakeWorld, faultTable } from "@longshore/testing/conformance";
import { expect, test } from "vitest";
import { conformanceChecks, runConformance } from "./index.ts";
import { alsoSeen } from "./testing/also-seen.ts";

const never = new AbortController().signal;
const ids: readonly string[] = conformanceChecks.map(({ id }) => id);

test("no check is without a fault, and no fault without a check", () => {
  const without = ids.filter((id) => !Object.hasOwn(faultTable, id));
  expect(without, `${without.length} checks that no fault makes fail`).toEqual([]);
  expect(Object.keys(faultTable).filter((id) => !ids.includes(id))).toEqual([]);
  expect(Object.keys(alsoSeen).filter((id) => !ids.includes(id))).toEqual([]);
});

/** The check, those that it builds on and those about the same subject: who could see the fault. */
function witnesses(id: string): ReadonlySet<string> {
  if (id.startsWith("protocol.")) return new Set(ids); // These look at the calls of all others.
  const subject = id.slice(0, id.lastIndexOf(".") + 1);
  const chosen = new Set<string>();
  const choose = (each: string) => {
    if (chosen.has(each)) return;
    chosen.add(each);
    conformanceChecks.find((check) => check.id === each)?.after?.forEach(choose);
  };
  for (const each of [...ids.filter((other) => other.startsWith(subject)), ...(alsoSeen[id] ?? [])])
    choose(each);
  return chosen;
}

test.each(Object.entries(faultTable))(
  "%s fails where its rule is broken",
  async (id, { fault, hook, without = [] }) => {
    const world = await fakeWorld({ maxVolumes: 8n, fault: fault(), without });
    if (hook !== undefined) world.csi.intercept(hook);
    const chosen = witnesses(id);
    const select = (other: string) => chosen.has(other);
    const { results } = await world.clock.run(runConformance(world.env, { ...world.options, select }, never));
    const failed = results
      .filter(({ outcome }) => outcome === "failed" || outcome === "warned")
      .map((result) => result.id);
    expect(failed).toEqual(ids.filter((other) => other === id || alsoSeen[id]?.includes(other)));
  },
);
