/** Every step of a pass over a PersistentVolume, reached from the observation that calls for it. */
import type { PersistentVolume, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decideVolume, type ObservedVolume } from "./decide-volume.ts";

const decide = pureDecision(decideVolume);

const finalizers = ["external-provisioner.volume.kubernetes.io/finalizer"];
const pv = {
  metadata: { name: "pv", uid: "u", resourceVersion: "1", finalizers },
} as Stored<PersistentVolume>;
const bare = { metadata: { name: "pv", uid: "u", resourceVersion: "1" } } as Stored<PersistentVolume>;
const keptInTree = {
  metadata: { name: "pv", uid: "u", resourceVersion: "1", finalizers: ["kubernetes.io/pv-controller"] },
} as Stored<PersistentVolume>;
const secret = { name: "s", namespace: "d" };
const deletion = { volumeId: "vol-1", migrated: false, secret: undefined };
const values = () => ({ key: "value" });
const error = new Error("x");

const released: ObservedVolume = {
  pv,
  isLive: false,
  isHere: true,
  goal: "delete",
  deletion,
  attachedTo: undefined,
  secrets: undefined,
  isDiskDeleted: false,
  isObjectDeleted: false,
  isFinalizerRemoved: false,
  startedMs: 0,
  failure: undefined,
};
const withSecret = { deletion: { ...deletion, secret } };

const rows: readonly [name: string, observed: Partial<ObservedVolume>, step: string][] = [
  ["nothing to do", { goal: "none" }, "settle"],
  ["a bound volume", { goal: "protect" }, "addFinalizer"],
  ["one that is to be retained", { goal: "unprotect" }, "removeProtection"],
  ["a released one, as a cache shows it", {}, "readVolume"],
  ["a released one of another node", { isHere: false }, "settle"],
  ["with a secret", withSecret, "readSecret"],
  ["with a secret, on the server", { ...withSecret, isLive: true }, "readSecret"],
  [
    "with the secret read: the server is asked after it",
    { ...withSecret, secrets: { from: secret, values } },
    "readVolume",
  ],
  [
    "with another secret than was read",
    { ...withSecret, isLive: true, secrets: { from: { ...secret, name: "t" }, values } },
    "readSecret",
  ],
  ["shown by the server", { isLive: true }, "deleteDisk"],
  [
    "shown by the server, with its secret",
    { ...withSecret, isLive: true, secrets: { from: secret, values } },
    "deleteDisk",
  ],
  ["shown by the server as not to be deleted", { isLive: true, goal: "none" }, "settle"],
  ["shown by the server as out of reach", { isLive: true, isHere: false }, "settle"],
  ["still attached", { isLive: true, attachedTo: "node-a" }, "fail"],
  ["that cannot be deleted, as a cache shows it", { deletion: { error } }, "readVolume"],
  ["that cannot be deleted", { isLive: true, deletion: { error } }, "fail"],
  ["whose disk is deleted", { isLive: true, isDiskDeleted: true }, "deleteObject"],
  [
    "whose object is being deleted",
    { isLive: true, isDiskDeleted: true, isObjectDeleted: true },
    "removeFinalizer",
  ],
  [
    "whose object had no protection",
    { pv: bare, isDiskDeleted: true, isObjectDeleted: true },
    "countDeletion",
  ],
  [
    "whose object was kept in-tree",
    { pv: keptInTree, isDiskDeleted: true, isObjectDeleted: true },
    "removeFinalizer",
  ],
  [
    "whose finalizer is removed",
    { isDiskDeleted: true, isObjectDeleted: true, isFinalizerRemoved: true },
    "countDeletion",
  ],
  ["that failed", { failure: { error, isReported: false } }, "reportFailure"],
  ["that failed, reported", { failure: { error, isReported: true } }, "retry"],
];

describe("the steps over a volume", () => {
  it.each(rows)("%s", (_, observed, step) => {
    expect(decide({ ...released, ...observed }).step).toBe(step);
  });

  it("deletes a disk only on a live reading that shows it as to be deleted, with nothing attached", () => {
    const any = fc.record({
      isLive: fc.boolean(),
      isHere: fc.boolean(),
      goal: fc.constantFrom("none" as const, "protect" as const, "unprotect" as const, "delete" as const),
      attachedTo: fc.constantFrom(undefined, "node-a"),
      deletion: fc.constantFrom(undefined, deletion, { ...deletion, secret }, { error }),
      secrets: fc.constantFrom(undefined, { from: secret, values }),
    });
    fc.assert(
      fc.property(any, (some) => {
        if (decide({ ...released, ...some }).step !== "deleteDisk") return true;
        return some.isLive && some.isHere && some.goal === "delete" && some.attachedTo === undefined;
      }),
    );
  });
});
