import type { Pod, Stored } from "@longshore/kube";
import { expect, test } from "vitest";
import { AssumedPods } from "./assumed-pods.ts";

const aPod = (uid: string): Stored<Pod> => ({
  metadata: { name: "p", namespace: "default", uid, resourceVersion: "1" },
  spec: { containers: [] },
});
const uids = (pods: readonly Stored<Pod>[]) => pods.map(({ metadata }) => metadata.uid);

test("a pod counts on one node, and no more once it is forgotten", () => {
  const assumed = new AssumedPods();
  assumed.assume(aPod("a"), "n1");
  assumed.assume(aPod("a"), "n2");
  expect([uids(assumed.on("n1")), uids(assumed.on("n2"))]).toEqual([[], ["a"]]);
  expect(assumed.has("default/p")).toBe(true);
  assumed.forget("default/p");
  assumed.forget("default/p");
  expect([assumed.on("n2"), assumed.has("default/p")]).toEqual([[], false]);
});

test("a later pod of the name is not the one that was bound", () => {
  const assumed = new AssumedPods();
  assumed.assume(aPod("a"), "n1");
  expect(assumed.isBound(aPod("a"))).toBe(false);
  assumed.markBound(aPod("a"), "n1");
  expect([assumed.isBound(aPod("a")), assumed.isBound(aPod("b"))]).toEqual([true, false]);
  expect(uids(assumed.on("n1"))).toEqual(["a"]);
});
