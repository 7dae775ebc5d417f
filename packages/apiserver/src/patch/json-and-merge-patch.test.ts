import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { own } from "../api/own.ts";
import { applyJsonPatch } from "./apply-json-patch.ts";
import { applyMergePatch } from "./apply-merge-patch.ts";

describe("a merge patch", () => {
  // The examples of RFC 7386, appendix A.
  it.each([
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b" }, { a: null }, {}],
    [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [
      ["a", "b"],
      ["c", "d"],
      ["c", "d"],
    ],
    [{ a: "b" }, ["c"], ["c"]],
    [{ a: "foo" }, null, null],
    [{ a: "foo" }, "bar", "bar"],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: "b", c: null }, { a: "b" }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])("of %j by %j gives %j", (target, patch, result) => {
    expect(applyMergePatch(target, patch)).toEqual(result);
  });

  it("applied again changes nothing more, and never touches its target", () => {
    const value = fc.dictionary(fc.string({ maxLength: 2 }), fc.jsonValue({ maxDepth: 2 }), {
      noNullPrototype: true,
    });
    fc.assert(
      fc.property(value, value, (target, patch) => {
        const before = structuredClone(target);
        const once = applyMergePatch(target, patch);
        expect(applyMergePatch(once, patch)).toEqual(once);
        expect(target).toEqual(before);
      }),
    );
  });
});

describe("a JSON patch", () => {
  const target = own({ metadata: { labels: { "a/b": "1", "c~d": "2" }, finalizers: ["x", "y"] } });

  it.each([
    ["adds a member", [{ op: "add", path: "/spec", value: {} }], { ...target, spec: {} }],
    [
      "puts an item before the one that is there",
      [{ op: "add", path: "/metadata/finalizers/1", value: "z" }],
      { metadata: { ...target.metadata, finalizers: ["x", "z", "y"] } },
    ],
    [
      "puts an item at the end",
      [{ op: "add", path: "/metadata/finalizers/-", value: "z" }],
      { metadata: { ...target.metadata, finalizers: ["x", "y", "z"] } },
    ],
    [
      "reads escaped names",
      [
        { op: "remove", path: "/metadata/labels/a~1b" },
        { op: "replace", path: "/metadata/labels/c~0d", value: "3" },
      ],
      { metadata: { ...target.metadata, labels: { "c~d": "3" } } },
    ],
    [
      "moves and copies",
      [
        { op: "move", from: "/metadata/finalizers/0", path: "/metadata/finalizers/1" },
        { op: "copy", from: "/metadata/labels/a~1b", path: "/metadata/name" },
      ],
      { metadata: { ...target.metadata, finalizers: ["y", "x"], name: "1" } },
    ],
    [
      "goes on after a test that holds",
      [
        { op: "test", path: "/metadata/finalizers", value: ["x", "y"] },
        { op: "remove", path: "/metadata/finalizers" },
      ],
      { metadata: { labels: target.metadata.labels } },
    ],
    [
      "copies what is not there as null",
      [{ op: "copy", from: "/spec", path: "/status" }],
      { ...target, status: null },
    ],
    [
      "counts from behind the end when it adds",
      [{ op: "add", path: "/metadata/finalizers/-1", value: "z" }],
      { metadata: { ...target.metadata, finalizers: ["x", "y", "z"] } },
    ],
    ["leaves everything when there is no patch", null, target],
    [
      "adds what a replace does not find",
      [{ op: "replace", path: "/spec", value: 1 }],
      { ...target, spec: 1 },
    ],
    [
      "counts from the end for a negative place",
      [{ op: "remove", path: "/metadata/finalizers/-1" }],
      { metadata: { ...target.metadata, finalizers: ["x"] } },
    ],
    [
      "takes names that objects have by nature for names",
      [{ op: "add", path: "/metadata/labels/constructor", value: "3" }],
      { metadata: { ...target.metadata, labels: { ...target.metadata.labels, constructor: "3" } } },
    ],
    ["takes what is absent for null in a test", [{ op: "test", path: "/spec", value: null }], target],
  ])("%s", (_name, patch, result) => {
    expect(applyJsonPatch(target, patch)).toEqual(result);
  });

  it.each([
    ["what is no list", { op: "add" }, 400],
    ["an item that is no operation", ["add"], 400],
    ["null as an operation", [null], 400],
    ["an unknown operation", [{ op: "increment", path: "/a" }], 422],
    ["an operation without a path", [{ op: "add", value: 1 }], 422],
    ["a path that does not begin with a slash", [{ op: "add", path: "metadata", value: 1 }], 422],
    ["a removal of what is not there", [{ op: "remove", path: "/spec" }], 422],
    ["a place beyond the list", [{ op: "add", path: "/metadata/finalizers/9", value: "z" }], 422],
    ["the whole object as its place", [{ op: "replace", path: "", value: {} }], 422],
    ["a place in a list that is no number", [{ op: "remove", path: "/metadata/finalizers/x" }], 422],
    ["a copy from where nothing leads", [{ op: "copy", from: "/spec/x", path: "/status" }], 422],
    ["a test that fails", [{ op: "test", path: "/metadata/finalizers", value: [] }], 422],
    ["a path through the prototype", [{ op: "add", path: "/__proto__/polluted", value: 1 }], 422],
    [
      "a path through the constructor",
      [{ op: "add", path: "/constructor/prototype/polluted", value: 1 }],
      422,
    ],
    ["more operations than allowed", Array(10_001).fill({ op: "test", path: "/spec", value: null }), 413],
  ])("refuses %s", (_name, patch, code) => {
    expect(() => applyJsonPatch(target, patch)).toThrow(expect.objectContaining({ code }));
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it("leaves its target as it was when a later operation fails", () => {
    const before = structuredClone(target);
    const patch = [
      { op: "remove", path: "/metadata/labels" },
      { op: "remove", path: "/none" },
    ];
    expect(() => applyJsonPatch(target, patch)).toThrow();
    expect(target).toEqual(before);
  });
});
