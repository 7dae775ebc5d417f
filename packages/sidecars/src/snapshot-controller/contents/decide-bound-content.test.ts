/** Every step of a pass over a content by itself. */
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { decideBoundContent, type ObservedBoundContent } from "./decide-bound-content.ts";

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
