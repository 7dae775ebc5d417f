import { expect, it } from "vitest";
import { type CrashPoint, crashInPairs } from "./crash-points.ts";

/** A flow of four calls, of which a life leaves out what those before it have changed; takes down which points were played. */
function aFlow(played: string[], isWrong = (_points: readonly CrashPoint[]) => false) {
  const calls = ["get Pod", "create Node", "update Lease", "delete Pod"];
  return async (points: readonly CrashPoint[]) => {
    const lives: string[][] = [];
    let left = calls;
    for (const { at, side } of points) {
      lives.push(left.slice(0, at));
      const done = left.slice(0, side === "after" ? at : at - 1);
      left = left.filter((call) => !done.includes(call) || call.startsWith("get"));
    }
    lives.push(left);
    if (points.length === 2) played.push(points.map(({ at, side }) => `${side} ${at}`).join(", "));
    if (isWrong(points)) throw new Error("a pod is left");
    return lives;
  };
}

it("all pairs of points are played that lie after a change, and as many others as are asked for", async () => {
  const played: string[] = [];
  const { summary, failures } = await crashInPairs(aFlow(played), 5, { name: "flow" });
  // After the create, the delete is the third call that is left; after the delete, nothing is left to change.
  expect(played.slice(0, 1)).toEqual(["after 2, after 3"]);
  expect(played.length).toBe(6);
  expect(summary).toMatch(
    /^flow: 1\/1 pairs of changes, and: 5\/5 pairs of crash points, a sample of about \d+$/,
  );
  expect(failures).toEqual([]);
});

it("what counts as a change may be said", async () => {
  const played: string[] = [];
  await crashInPairs(aFlow(played), 0, { name: "flow", isChange: (what) => what !== "get Pod" });
  expect(played).toEqual(["after 2, after 2", "after 2, after 3", "after 3, after 2"]);
});

it("a pair that does not end well is named", async () => {
  const isWrong = (points: readonly CrashPoint[]) => points.length === 2;
  const { failures, summary } = await crashInPairs(aFlow([], isWrong), 0, { name: "flow" });
  expect(failures).toEqual(["after call 2, then after call 3: a pod is left"]);
  expect(summary).toMatch(/^flow: 0\/1 pairs of changes/);
});
