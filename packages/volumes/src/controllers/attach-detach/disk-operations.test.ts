/** What is in whose way, and how long a failed operation waits (docs/behaviour/node-agent.md 7.1). */
import { describe, expect, it } from "vitest";
import type { DesiredVolume } from "./desired-state.ts";
import { conflictsWith, DiskOperations, type OperationScope } from "./disk-operations.ts";
import { PendingPods } from "./pending-pods.ts";

const at = (nodeName: string, isShared = false): OperationScope => ({ identity: "d", nodeName, isShared });
const of = { uniqueName: "x/y/1", startedAtMs: 0, attachmentName: "csi-1" };

describe("operations of one disk", () => {
  it.each([
    ["one writer, two nodes", at("n1"), at("n2"), true],
    ["one writer, one node", at("n1"), at("n1"), true],
    ["shared, two nodes", at("n1", true), at("n2", true), false],
    ["shared, one node", at("n1", true), at("n1", true), true],
    ["one of the two shared", at("n1", true), at("n2"), true],
  ])("%s", (_what, a, b, expected) => {
    expect(conflictsWith(a, b)).toBe(expected);
    expect(conflictsWith(b, a)).toBe(expected);
  });

  it("double the delay with each failure, up to two minutes, and forget it with success", () => {
    const operations = new DiskOperations();
    const delays: number[] = [];
    for (let failure = 0; failure < 10; failure++) {
      delays.push(operations.fail(operations.begin("attach", at("n1"), of), 1_000));
    }
    expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 122_000, 122_000]);
    expect(operations.retryAtMs("attach", at("n1"))).toBe(123_000);
    // Of a disk of one writer the attach to another node is the same operation.
    expect(operations.retryAtMs("attach", at("n2"))).toBe(123_000);
    expect(operations.retryAtMs("detach", at("n1"))).toBe(0);
    operations.succeed(operations.begin("attach", at("n1"), of));
    expect(operations.retryAtMs("attach", at("n1"))).toBe(0);
  });

  it("drop the delay when an operation of the other kind begins", () => {
    const operations = new DiskOperations();
    operations.refuse("attach", at("n1"), 0);
    operations.begin("detach", at("n1"), of);
    expect(operations.retryAtMs("attach", at("n1"))).toBe(0);
  });

  it("keep the delay when an operation of the other kind begins on another node, so that the two do not drop each other's", () => {
    const operations = new DiskOperations();
    const detachAt = () => operations.retryAtMs("detach", at("n1"));
    const attachAt = () => operations.retryAtMs("attach", at("n2"));
    operations.fail(operations.begin("detach", at("n1"), of), 0);
    operations.fail(operations.begin("attach", at("n2"), of), 0);
    expect([detachAt(), attachAt()]).toEqual([500, 500]);
    operations.fail(operations.begin("detach", at("n1"), of), 500);
    operations.refuse("attach", at("n2"), 500);
    expect([detachAt(), attachAt()]).toEqual([1_500, 1_500]);
  });

  it("keep for which pods they began, also when the desired volume is taken from these and filled again", () => {
    const volume = { pods: new Map([["default/p", {}]]) } as unknown as DesiredVolume;
    const operation = new DiskOperations().begin("attach", at("n1"), { ...of, volume });
    (volume.pods as Map<string, unknown>).clear();
    expect([...(operation.volume?.pods.keys() ?? [])]).toEqual(["default/p"]);
  });

  it("are found by the VolumeAttachment that they wait for, until they end", () => {
    const operations = new DiskOperations();
    const operation = operations.begin("attach", at("n1"), of);
    expect([operations.diskOf("csi-1"), operations.isPending(at("n2"))]).toEqual(["d", true]);
    expect(operations.progress(operation, { seenAttached: true })).toBe(true);
    expect(operations.of("d")[0]?.seenAttached).toBe(true);
    operations.succeed(operation);
    expect([operations.diskOf("csi-1"), operations.isPending(at("n2")), operations.of("d")]).toEqual([
      undefined,
      false,
      [],
    ]);
    // What comes of a call after its operation has ended is of no use.
    expect(operations.progress(operation, { seenAttached: true })).toBe(false);
  });
});

describe("pending pods", () => {
  it("hold up their node until each is decided as it was marked last", () => {
    const pending = new PendingPods();
    pending.mark("p", "n1");
    pending.mark("q", "n1");
    const marks = pending.marksOf("p");
    pending.mark("p", "n1");
    expect(pending.decided("p", marks)).toBeUndefined();
    expect([pending.has("p"), pending.on("n1")]).toEqual([true, true]);
    expect(pending.decided("p", pending.marksOf("p"))).toBeUndefined();
    expect(pending.decided("q", pending.marksOf("q"))).toBe("n1");
    expect(pending.on("n1")).toBe(false);
  });

  it("are not decided by a decision on the pod of that name that is gone", () => {
    const pending = new PendingPods();
    pending.mark("p", "n1");
    const marks = pending.marksOf("p");
    pending.mark("p", undefined);
    pending.mark("p", "n1");
    expect(pending.decided("p", marks)).toBeUndefined();
    expect(pending.on("n1")).toBe(true);
  });

  it("hold up nothing once they are gone, and another node when they come back there", () => {
    const pending = new PendingPods();
    pending.mark("p", "n1");
    expect(pending.mark("p", "n2")).toBe("n1");
    expect([pending.on("n1"), pending.on("n2")]).toEqual([false, true]);
    expect(pending.mark("p", undefined)).toBe("n2");
    expect([pending.on("n2"), pending.marksOf("p")]).toEqual([false, 0]);
  });
});
