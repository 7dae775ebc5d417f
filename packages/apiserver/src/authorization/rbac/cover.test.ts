import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { manyRights } from "../../testing/heavy-requests/custom.ts";
import { many } from "../../testing/heavy-requests/heavy-request.ts";
import { ask, paths, rule, user } from "../../testing/policy-words.ts";
import type { Attributes } from "../authorizer.ts";
import { TooManyRightsError, uncovered } from "./cover.ts";
import { compacted, type PolicyRule, ruleAllows, shownRule } from "./policy-rule.ts";

describe("what rules do not cover", () => {
  it.each<[string, PolicyRule[], PolicyRule[], string[]]>([
    ["nothing of themselves", [rule("get,list", "pods")], [rule("list", "pods")], []],
    [
      "verbs",
      [rule("get", "pods")],
      [rule("get,list", "pods")],
      ['{APIGroups:[""], Resources:["pods"], Verbs:["list"]}'],
    ],
    [
      "each resource by itself, its verbs put together",
      [],
      [rule("list,get", "pods,secrets")],
      [
        '{APIGroups:[""], Resources:["pods"], Verbs:["list" "get"]}',
        '{APIGroups:[""], Resources:["secrets"], Verbs:["list" "get"]}',
      ],
    ],
    [
      "all names, when only some are held",
      [rule("get", "pods", "", "a")],
      [rule("get", "pods")],
      ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
    ],
    ["a name among those held", [rule("get", "pods", "", "a,b")], [rule("get", "pods", "", "b")], []],
    [
      "everything, by everything but paths",
      [rule("*", "*", "*")],
      [paths("get", "/x")],
      ['{NonResourceURLs:["/x"], Verbs:["get"]}'],
    ],
    ["paths below one with a star", [paths("get", "/x/*")], [paths("get", "/x/y/*")], []],
    [
      "a star, by a word",
      [rule("get,list", "pods")],
      [rule("*", "pods")],
      ['{APIGroups:[""], Resources:["pods"], Verbs:["*"]}'],
    ],
    [
      "a sub-resource of all, by one of all",
      [rule("get", "*/scale", "apps")],
      [rule("get", "deployments/scale", "apps")],
      [],
    ],
  ])("%s", (_name, held, asked, missing) => {
    expect(compacted(uncovered(held, asked).rules).map(shownRule)).toEqual(missing);
  });
});

const some = <T>(...items: T[]) => fc.uniqueArray(fc.constantFrom(...items), { minLength: 1, maxLength: 3 });
const aRule: fc.Arbitrary<PolicyRule> = fc.oneof(
  fc.record(
    {
      verbs: some("get", "list", "*"),
      apiGroups: some("", "apps", "*"),
      resources: some("pods", "pods/log", "*/log", "*"),
      resourceNames: some("a", "b"),
    },
    { requiredKeys: ["verbs", "apiGroups", "resources"] },
  ),
  fc.record({ verbs: some("get", "*"), nonResourceURLs: some("/a", "/a/*", "*") }),
);
const everyQuestion: Attributes[] = ["get", "list", "escalate"].flatMap((verb) => [
  ...["", "apps", "other"].flatMap((group) =>
    ["pods", "pods/log", "secrets", "secrets/log"].flatMap((what) =>
      [undefined, "a", "b", "c"].map((name) => ask(verb, what, name, group)),
    ),
  ),
  ...["/a", "/a/b", "/c"].map((path) => ({ user, verb, path })),
]);

describe("covering", () => {
  it("is sound: rules that cover others allow whatever those allow", () => {
    let covered = 0;
    fc.assert(
      fc.property(
        fc.array(aRule, { maxLength: 4 }),
        fc.array(aRule, { minLength: 1, maxLength: 2 }),
        (held, asked) => {
          if (uncovered(held, asked).rules.length > 0) return;
          covered++;
          for (const question of everyQuestion) {
            if (!asked.some((one) => ruleAllows(one, question))) continue;
            expect(
              held.some((one) => ruleAllows(one, question)),
              JSON.stringify(question),
            ).toBe(true);
          }
        },
      ),
      { numRuns: 2000, seed: 7 },
    );
    expect(covered).toBeGreaterThan(50);
  });

  it("loses nothing: what is missing, added to what is held, covers all that was asked for", () => {
    fc.assert(
      fc.property(fc.array(aRule, { maxLength: 3 }), fc.array(aRule, { maxLength: 3 }), (held, asked) => {
        const missing = compacted(uncovered(held, asked).rules);
        expect(uncovered([...held, ...missing], asked).rules).toEqual([]);
      }),
      { numRuns: 500, seed: 8 },
    );
  });
});

/** The rule as rules of one verb, one group, one resource (and one name), or of one path. */
function* singleRules(of: PolicyRule): Iterable<PolicyRule> {
  for (const group of of.apiGroups ?? []) {
    for (const resource of of.resources ?? []) {
      for (const verb of of.verbs) {
        const single = { verbs: [verb], apiGroups: [group], resources: [resource] };
        const names = of.resourceNames ?? [];
        if (names.length === 0) yield single;
        for (const name of names) yield { ...single, resourceNames: [name] };
      }
    }
  }
  for (const url of of.nonResourceURLs ?? []) {
    for (const verb of of.verbs) yield { verbs: [verb], nonResourceURLs: [url] };
  }
}

/** Whether one rule covers a rule with single values, value by value. */
function gives(held: PolicyRule, single: PolicyRule): boolean {
  const has = (list: readonly string[] | undefined, value: string | undefined) =>
    list?.some((one) => one === "*" || one === value) === true;
  if (!has(held.verbs, single.verbs[0])) return false;
  const url = single.nonResourceURLs?.[0];
  if (url !== undefined) {
    return (held.nonResourceURLs ?? []).some(
      (one) => one === url || (one.endsWith("*") && url.startsWith(one.replace(/\*+$/, ""))),
    );
  }
  const resource = single.resources?.[0] ?? "";
  const subresource = resource.split("/")[1];
  const isOfResource =
    has(held.resources, resource) ||
    (subresource !== undefined && held.resources?.includes(`*/${subresource}`) === true);
  const name = single.resourceNames?.[0];
  const names = held.resourceNames ?? [];
  return (
    has(held.apiGroups, single.apiGroups?.[0]) &&
    isOfResource &&
    (names.length === 0 || (name !== undefined && names.includes(name)))
  );
}

describe("large rules", () => {
  it("are compared as their rights would be, one by one", () => {
    let missing = 0;
    fc.assert(
      fc.property(fc.array(aRule, { maxLength: 4 }), fc.array(aRule, { maxLength: 3 }), (held, asked) => {
        const expected = asked
          .flatMap((one) => [...singleRules(one)])
          .filter((single) => !held.some((one) => gives(one, single)));
        missing += expected.length;
        expect(uncovered(held, asked).rules).toEqual(expected);
      }),
      { numRuns: 3000, seed: 9 },
    );
    expect(missing).toBeGreaterThan(1000);
  });

  const wide = (count: number): PolicyRule => ({
    verbs: many(count, (i) => `v${i}`),
    apiGroups: many(count, (i) => `g${i}`),
    resources: many(count, (i) => `r${i}`),
  });

  it("take steps by the length of their lists, not by the rights that they stand for", () => {
    const steps = (count: number) => uncovered([wide(count)], [wide(count)]).steps;
    expect(steps(4000) / steps(1000)).toBeLessThan(5);
    expect(uncovered([manyRights], [manyRights]).rules).toEqual([]);
    // One rule for each of 3,600 resources, as a role may be written that grows with its kinds.
    const each = manyRights.apiGroups.flatMap((group) =>
      manyRights.resources.map((what) => ({
        verbs: manyRights.verbs,
        apiGroups: [group],
        resources: [what],
      })),
    );
    const { rules, steps: taken } = uncovered(each, [manyRights]);
    expect(rules).toEqual([]);
    expect(taken).toBeLessThan(2_000_000);
    expect(uncovered([manyRights], each).rules).toEqual([]);
  });

  it("are reported up to the limit", () => {
    const { rules, isMore } = uncovered([], [wide(1000)]);
    expect(rules).toHaveLength(500);
    expect(isMore).toBe(true);
  });

  it("are refused when the comparison takes too long", () => {
    const diagonal = many(3000, (i) => ({ verbs: [`v${i}`], apiGroups: [`g${i}`], resources: ["*"] }));
    const grid = { ...wide(3000), resources: ["a"] };
    const apart = many(3000, (i) => ({ verbs: ["*"], apiGroups: ["*"], resources: [`r${i}`] }));
    expect(() => uncovered([...diagonal, ...apart], [grid])).toThrow(TooManyRightsError);
  });
});
