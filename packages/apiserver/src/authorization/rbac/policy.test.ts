import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Attributes } from "../authorizer.ts";
import { compacted, type PolicyRule, ruleAllows, shownRule, uncovered } from "./policy.ts";

const user = { name: "u", groups: [] };
const rule = (verbs: string, resources: string, groups = "", names?: string): PolicyRule => ({
  verbs: verbs.split(","),
  apiGroups: groups.split(","),
  resources: resources.split(","),
  ...(names === undefined ? {} : { resourceNames: names.split(",") }),
});
const paths = (verbs: string, urls: string): PolicyRule => ({
  verbs: verbs.split(","),
  nonResourceURLs: urls.split(","),
});
const ask = (verb: string, what: string, name?: string, group = ""): Attributes => {
  const [resource = "", subresource] = what.split("/");
  return {
    user,
    verb,
    group,
    resource,
    ...(subresource === undefined ? {} : { subresource }),
    ...(name === undefined ? {} : { name }),
  };
};

describe("a rule", () => {
  it.each<[PolicyRule, Attributes, boolean]>([
    [rule("get", "pods"), ask("get", "pods", "a"), true],
    [rule("get", "pods"), ask("list", "pods"), false],
    [rule("get", "pods"), ask("get", "pods/log", "a"), false],
    [rule("get", "pods/log"), ask("get", "pods", "a"), false],
    [rule("get", "pods/log"), ask("get", "pods/log", "a"), true],
    [rule("get", "*/log"), ask("get", "pods/log", "a"), true],
    [rule("get", "*/log"), ask("get", "pods", "a"), false],
    [rule("get", "*"), ask("get", "pods/log", "a"), true],
    [rule("*", "pods"), ask("anything", "pods"), true],
    [rule("get", "pods", "apps"), ask("get", "pods"), false],
    [rule("get", "pods", "*"), ask("get", "pods", undefined, "apps"), true],
    [rule("get", "pods", "", "a,b"), ask("get", "pods", "b"), true],
    [rule("get", "pods", "", "a,b"), ask("get", "pods", "c"), false],
    // A create has no name yet, so it cannot be one of those named.
    [rule("create", "pods", "", "a"), ask("create", "pods"), false],
    [paths("get", "/healthz"), { user, verb: "get", path: "/healthz" }, true],
    [paths("get", "/healthz"), { user, verb: "get", path: "/healthz/ping" }, false],
    [paths("get", "/healthz/*"), { user, verb: "get", path: "/healthz/ping" }, true],
    [paths("get", "/healthz/*"), { user, verb: "get", path: "/healthz" }, false],
    [paths("get", "*"), { user, verb: "get", path: "/metrics" }, true],
    [paths("get", "*"), { user, verb: "post", path: "/metrics" }, false],
    // Rules of resources say nothing of paths, nor the other way round.
    [rule("*", "*", "*"), { user, verb: "get", path: "/metrics" }, false],
    [paths("*", "*"), ask("get", "pods"), false],
  ])("%j on %j: %s", (given, attributes, allowed) => {
    expect(ruleAllows(given, attributes)).toBe(allowed);
  });
});

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
    expect(compacted(uncovered(held, asked)).map(shownRule)).toEqual(missing);
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
          if (uncovered(held, asked).length > 0) return;
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
        expect(uncovered([...held, ...compacted(uncovered(held, asked))], asked)).toEqual([]);
      }),
      { numRuns: 500, seed: 8 },
    );
  });
});
