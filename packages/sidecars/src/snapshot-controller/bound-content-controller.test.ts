/** Every step of a pass over a content by itself, and over a claim of which snapshots are made. */
import type { PersistentVolumeClaim, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { decideBoundContent, type ObservedBoundContent } from "./bound-content-controller.ts";
import { decideSourceClaim } from "./source-claims.ts";

const held: ObservedBoundContent = {
  name: "c",
  isDeleting: false,
  invalid: undefined,
  isBound: true,
  isHeld: true,
  isAnnounced: false,
  snapshotOnServer: undefined,
};
const going = { isDeleting: true };

describe("the steps over a content", () => {
  const decide = pureDecision(decideBoundContent);
  it.each<[string, Partial<ObservedBoundContent>, string]>([
    ["held", {}, "settle"],
    ["not held", { isHeld: false }, "addFinalizer"],
    ["not bound yet", { isHeld: false, isBound: false }, "settle"],
    ["with a wrong source", { invalid: { reason: "R", message: "M" } }, "reportInvalid"],
    ["deleted by itself", going, "readSnapshot"],
    ["deleted, its snapshot there", { ...going, snapshotOnServer: "there" }, "settle"],
    ["deleted, its snapshot gone", { ...going, snapshotOnServer: "none" }, "announceDeletion"],
    ["deleted, announced", { ...going, isAnnounced: true }, "settle"],
    ["deleted, not held", { ...going, isHeld: false }, "settle"],
  ])("%s", (_, content, step) => {
    expect(decide({ ...held, ...content }).step).toBe(step);
  });
});

describe("the steps over a source claim", () => {
  const decide = pureDecision(decideSourceClaim);
  const claim = (finalizers: readonly string[]) =>
    ({ metadata: { name: "c", finalizers } }) as unknown as Stored<PersistentVolumeClaim>;
  const ours = "snapshot.storage.kubernetes.io/pvc-as-source-protection";
  it.each([
    ["held, and all its snapshots are ready", claim(["x", ours]), false, "removeFinalizer"],
    ["held, and one is not ready", claim([ours]), true, "settle"],
    ["not held", claim(["x"]), false, "settle"],
  ] as const)("%s", (_, of, isInUse, step) => {
    expect(decide({ claim: of, isInUse }).step).toBe(step);
  });
});
