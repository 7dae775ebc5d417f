import { CsiCallError, grpcCodes } from "@longshore/csi";
import { describe, expect, it } from "vitest";
import { isFinalCreateError } from "./create-outcome.ts";
import { groupStatusPatch } from "./group-state.ts";
import { apiTimeOf, nanoseconds, type SnapshotState, statusPatch } from "./snapshot-state.ts";

const at = { seconds: 1_700_000_000n, nanos: 123_456_789 } as NonNullable<Parameters<typeof nanoseconds>[0]>;
const state: SnapshotState = { handle: "h", ready: true, creationTime: 5, sizeBytes: 7, groupHandle: "" };

describe("times", () => {
  it("are nanoseconds that a number holds exactly, to the microsecond", () => {
    const ns = nanoseconds(at) ?? 0;
    expect(JSON.stringify(ns)).toBe("1700000000123456000");
    expect(apiTimeOf(ns)).toBe("2023-11-14T22:13:20Z");
  });

  it("that the driver does not report are none", () => {
    expect(nanoseconds(undefined)).toBeUndefined();
    expect(nanoseconds({ ...at, seconds: 0n, nanos: 0 })).toBeUndefined();
  });
});

describe("what is written of a snapshot", () => {
  it.each([
    [
      "all of it at first",
      undefined,
      state,
      { snapshotHandle: "h", readyToUse: true, creationTime: 5, restoreSize: 7 },
    ],
    [
      "nothing twice",
      { snapshotHandle: "h", readyToUse: true, creationTime: 5, restoreSize: 7 },
      state,
      undefined,
    ],
    [
      "that it is ready now",
      { snapshotHandle: "h", readyToUse: false, creationTime: 5, restoreSize: 7 },
      state,
      { readyToUse: true },
    ],
    [
      "what is known stays",
      { snapshotHandle: "old", readyToUse: true, creationTime: 1, restoreSize: 1 },
      state,
      undefined,
    ],
    [
      "an error that is over goes",
      { snapshotHandle: "h", readyToUse: true, creationTime: 5, restoreSize: 7, error: { message: "m" } },
      state,
      { error: null },
    ],
    [
      "a size that is unknown is none",
      { snapshotHandle: "h", readyToUse: true, creationTime: 5 },
      { ...state, sizeBytes: 0 },
      undefined,
    ],
    [
      "its group",
      { snapshotHandle: "h", readyToUse: true, creationTime: 5, restoreSize: 7 },
      { ...state, groupHandle: "g" },
      { volumeGroupSnapshotHandle: "g" },
    ],
    [
      "now, where the driver does not say when",
      { snapshotHandle: "h", readyToUse: true, restoreSize: 7 },
      { ...state, creationTime: undefined },
      { creationTime: 99 },
    ],
  ])("%s", (_, status, snapshot, patch) => {
    expect(statusPatch(status, snapshot, 99)).toEqual(patch);
  });

  it("of a group: pairs in v1beta1, more of each snapshot from then on", () => {
    const snapshots = [{ volumeHandle: "v", snapshotHandle: "h", readyToUse: true }];
    const group = { handle: "g", ready: true, creationTime: undefined, snapshots };
    const first = { volumeGroupSnapshotHandle: "g", readyToUse: true, creationTime: "1970-01-01T00:00:00Z" };
    expect(groupStatusPatch(undefined, group, 99, false)).toEqual({
      ...first,
      volumeSnapshotInfoList: snapshots,
    });
    const pairs = [{ volumeHandle: "v", snapshotHandle: "h" }];
    expect(groupStatusPatch(undefined, group, 99, true)).toEqual({
      ...first,
      volumeSnapshotHandlePairList: pairs,
    });
    expect(
      groupStatusPatch({ ...first, volumeSnapshotInfoList: snapshots }, group, 99, false),
    ).toBeUndefined();
    expect(
      groupStatusPatch({ ...first, volumeSnapshotHandlePairList: pairs }, group, 99, true),
    ).toBeUndefined();
  });
});

describe("a failed CreateSnapshot", () => {
  const uncertain = ["CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"];
  it.each(grpcCodes.filter((code) => code !== "OK"))("%s", (code) => {
    const error = new CsiCallError("CreateSnapshot", code, "");
    expect(isFinalCreateError(error)).toBe(!uncertain.includes(code));
  });

  it("without an answer of the driver says nothing", () => {
    expect(isFinalCreateError(new CsiCallError("CreateSnapshot", "INTERNAL", "", { answered: false }))).toBe(
      false,
    );
    expect(isFinalCreateError(new Error("before it was asked"))).toBe(false);
  });
});
