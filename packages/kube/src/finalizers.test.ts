import { describe, expect, test } from "vitest";
import {
  addFinalizerPatch,
  finalizersMergePatch,
  hasFinalizer,
  removeFinalizerPatch,
  withFinalizer,
  withoutFinalizer,
} from "./finalizers.ts";

const ours = "ours.example.com/held";
const theirs = "theirs.example.com/held";
const held = (...finalizers: string[]) => ({ metadata: { name: "a", finalizers } });

describe("one finalizer among those of others", () => {
  test.each<[string, object, boolean]>([
    ["no metadata", {}, false],
    ["no list", { metadata: {} }, false],
    ["another alone", held(theirs), false],
    ["it among others", held(theirs, ours), true],
  ])("%s: has it %j %s", (_, object, expected) => {
    expect(hasFinalizer(object, ours)).toBe(expected);
  });

  test("it is added after the others, and taken from between them", () => {
    expect(withFinalizer(held(theirs), ours)).toEqual(held(theirs, ours));
    expect(withFinalizer({ metadata: { name: "a" } }, ours)).toEqual(held(ours));
    expect(withoutFinalizer(held("a/b", ours, theirs), ours)).toEqual(held("a/b", theirs));
  });

  test("what need not change is the same object", () => {
    const [without, withIt] = [held(theirs), held(ours)];
    expect(withoutFinalizer(without, ours)).toBe(without);
    expect(withFinalizer(withIt, ours)).toBe(withIt);
  });

  test("a merge patch has the whole list, null for an empty one, and the version it was made from", () => {
    const stored = (...finalizers: string[]) => ({
      metadata: { name: "a", uid: "u", resourceVersion: "7", finalizers },
    });
    const body = (finalizers: readonly string[] | null) => ({
      metadata: { resourceVersion: "7", finalizers },
    });
    const added = withFinalizer(stored(theirs), ours);
    const removed = withoutFinalizer(stored(theirs, ours), ours);
    expect(JSON.stringify(finalizersMergePatch(added))).toBe(JSON.stringify(body([theirs, ours])));
    expect(JSON.stringify(finalizersMergePatch(removed))).toBe(JSON.stringify(body([theirs])));
    expect(finalizersMergePatch(withoutFinalizer(stored(ours), ours))).toEqual(body(null));
    expect(finalizersMergePatch({ metadata: { name: "a", uid: "u", resourceVersion: "7" } })).toEqual(
      body(null),
    );
  });

  test("a patch tests what it replaces, so that it fails on a list that has changed", () => {
    const path = "/metadata/finalizers";
    expect(addFinalizerPatch(undefined, ours)).toEqual([
      { op: "test", path, value: null },
      { op: "add", path, value: [ours] },
    ]);
    expect(addFinalizerPatch([], ours)).toEqual([
      { op: "test", path, value: [] },
      { op: "replace", path, value: [ours] },
    ]);
    expect(addFinalizerPatch([theirs], ours)).toEqual([{ op: "add", path: `${path}/-`, value: ours }]);
    expect(removeFinalizerPatch([theirs, ours], ours)).toEqual([
      { op: "test", path: `${path}/1`, value: ours },
      { op: "remove", path: `${path}/1` },
    ]);
    expect(() => removeFinalizerPatch([theirs], ours)).toThrow(`finalizer "${ours}" not found in list`);
  });
});
