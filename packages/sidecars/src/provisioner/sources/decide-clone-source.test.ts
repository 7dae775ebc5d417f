/** When a claim that others were cloned from is let go. */
import type { PersistentVolumeClaim, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { expect, it } from "vitest";
import { decideCloneSource } from "./decide-clone-source.ts";

const decide = pureDecision(decideCloneSource);
const finalizers = ["provisioner.storage.kubernetes.io/cloning-protection"];
const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const source = (metadata: object) =>
  ({
    metadata: { name: "src", uid: "u", resourceVersion: "1", ...metadata },
  }) as Stored<PersistentVolumeClaim>;

it.each([
  ["deleted, and nothing is cloned from it", source({ finalizers, ...deleted }), false, "removeFinalizer"],
  ["deleted, and a clone is under way", source({ finalizers, ...deleted }), true, "settle"],
  ["not deleted", source({ finalizers }), false, "settle"],
  ["deleted, and not protected", source(deleted), false, "settle"],
] as const)("a clone source that is %s", (_, claim, isBeingCopied, step) => {
  expect(decide({ source: claim, isBeingCopied }).step).toBe(step);
});
