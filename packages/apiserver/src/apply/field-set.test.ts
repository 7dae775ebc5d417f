/** The laws of sets of fields, and their form as FieldsV1. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  difference,
  emptySet,
  type FieldSet,
  FieldsError,
  fromFieldsV1,
  intersection,
  isEmpty,
  leaves,
  pathCount,
  recursiveDifference,
  sameSet,
  setOf,
  shownPaths,
  toFieldsV1,
  union,
  unionOf,
} from "./field-set.ts";

const elements = [
  "f:a",
  "f:b",
  "f:c",
  'k:{"name":"x"}',
  'k:{"containerPort":80,"protocol":"TCP"}',
  'v:"1"',
  "v:2",
  "i:0",
];
const paths = fc.array(fc.array(fc.constantFrom(...elements), { minLength: 1, maxLength: 4 }), {
  maxLength: 8,
});
const sets: fc.Arbitrary<FieldSet> = paths.map((list) => setOf(...list));

const same = (a: FieldSet, b: FieldSet) => expect(toFieldsV1(a)).toEqual(toFieldsV1(b));

describe("sets of fields", () => {
  it("obey the laws of sets", () => {
    fc.assert(
      fc.property(sets, sets, sets, (a, b, c) => {
        same(union(a, b), union(b, a));
        same(union(union(a, b), c), union(a, union(b, c)));
        same(intersection(a, b), intersection(b, a));
        same(union(a, a), a);
        same(intersection(a, a), a);
        same(union(a, emptySet), a);
        same(intersection(a, union(b, c)), union(intersection(a, b), intersection(a, c)));
        same(union(difference(a, b), intersection(a, b)), a);
        same(difference(a, b), difference(a, intersection(a, b)));
        expect(isEmpty(intersection(difference(a, b), b))).toBe(true);
        expect(isEmpty(difference(a, a))).toBe(true);
        expect(sameSet(a, b)).toBe(JSON.stringify(toFieldsV1(a)) === JSON.stringify(toFieldsV1(b)));
      }),
    );
  });

  it("are put together in any number", () => {
    fc.assert(
      fc.property(fc.array(sets, { maxLength: 6 }), (all) => {
        same(unionOf(all), all.reduce(union, emptySet));
      }),
    );
  });

  it("are as large as their FieldsV1 has members", () => {
    const members = (fields: object): number =>
      Object.entries(fields).reduce((sum, [name, below]) => sum + (name === "." ? 0 : 1 + members(below)), 0);
    fc.assert(
      fc.property(sets, (set) => {
        expect(pathCount(set)).toBe(members(toFieldsV1(set)));
      }),
    );
  });

  it("lose with a member what is below it only when asked to", () => {
    const set = setOf(["f:a"], ["f:a", "f:b"], ["f:c"]);
    same(difference(set, setOf(["f:a"])), setOf(["f:a", "f:b"], ["f:c"]));
    same(recursiveDifference(set, setOf(["f:a"])), setOf(["f:c"]));
  });

  it("have leaves: members with nothing below them", () => {
    fc.assert(
      fc.property(sets, (set) => {
        expect(isEmpty(difference(leaves(set), set))).toBe(true);
        same(leaves(leaves(set)), leaves(set));
      }),
    );
    same(leaves(setOf(["f:a"], ["f:a", "f:b"])), setOf(["f:a", "f:b"]));
  });

  it("are the same after they were FieldsV1", () => {
    fc.assert(
      fc.property(sets, (set) => {
        const fields = toFieldsV1(set);
        if (!isEmpty(set)) same(fromFieldsV1(JSON.parse(JSON.stringify(fields))), set);
      }),
    );
  });

  it("are written in one order, whatever order they were made in", () => {
    const set = setOf(
      ["i:1"],
      ["v:2"],
      ['v:"a"'],
      ["v:10"],
      ['k:{"name":"b"}'],
      ['k:{"name":"a"}'],
      ["f:z"],
      ["f:Z"],
    );
    expect(Object.keys(toFieldsV1(set))).toEqual([
      "f:Z",
      "f:z",
      'k:{"name":"a"}',
      'k:{"name":"b"}',
      "v:2",
      "v:10",
      'v:"a"',
      "i:1",
    ]);
  });

  it("take keys that others wrote in another order, or with spaces, for the same", () => {
    const fields = { 'k:{ "protocol": "TCP", "containerPort": 80 }': {} };
    expect(toFieldsV1(fromFieldsV1(fields))).toEqual({ 'k:{"containerPort":80,"protocol":"TCP"}': {} });
  });

  it.each([
    [null],
    ["x"],
    [[]],
    [{ a: {} }],
    [{ "k:{": {} }],
    [{ "k:[]": {} }],
    [{ "i:x": {} }],
    [{ "f:a": 1 }],
  ])("are not %j", (fields) => {
    expect(() => fromFieldsV1(fields)).toThrow(FieldsError);
  });

  it("are shown as paths", () => {
    const set = setOf(
      ["f:spec", "f:containers", 'k:{"name":"x"}', "f:image"],
      ["f:spec", "f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'],
      ["f:metadata", "f:finalizers", 'v:"a/b"'],
      ["f:data"],
    );
    expect(shownPaths(set)).toEqual([
      ".data",
      '.metadata.finalizers[="a/b"]',
      '.spec.containers[name="x"].image',
      '.spec.ports[containerPort=80,protocol="TCP"]',
    ]);
  });
});
