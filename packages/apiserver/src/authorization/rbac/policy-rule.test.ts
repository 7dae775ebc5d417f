import { describe, expect, it } from "vitest";
import { ask, paths, rule, user } from "../../testing/policy-words.ts";
import type { Attributes } from "../authorizer.ts";
import { type PolicyRule, ruleAllows } from "./policy-rule.ts";

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
