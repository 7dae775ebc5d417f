import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ClaimFacts, decideClaimGoal } from "./claim-goal.ts";

const wanted: ClaimFacts = {
  ours: true,
  deleting: false,
  bound: false,
  boundToOwn: false,
  intended: false,
  pvStored: false,
  pvForeign: false,
  pvOfDriver: false,
  classFound: true,
  delayed: false,
  selectedNode: undefined,
  nodeFound: false,
  lastAnswer: "unknown",
};
const intended: ClaimFacts = { ...wanted, intended: true };
const waiting = { delayed: true, selectedNode: undefined };
const givenUp = { bound: true, boundToOwn: true };
const nodeGone = { delayed: true, selectedNode: "node-1", nodeFound: false };

const cases: readonly [name: string, claim: ClaimFacts, step: string][] = [
  ["a new claim of ours is provisioned", wanted, "provision"],
  ["another's claim is left alone", { ...wanted, ours: false }, "none"],
  ["a claim that is deleted before anything happened is left alone", { ...wanted, deleting: true }, "none"],
  ["a bound claim is left alone", { ...wanted, bound: true }, "none"],
  ["a claim whose volume is stored waits to be bound", { ...wanted, pvStored: true }, "none"],
  ["a missing class is a failure to report", { ...wanted, classFound: false }, "fail"],
  ["with delayed binding the scheduler comes first", { ...wanted, ...waiting }, "none"],
  ["a claim whose node does not exist is rescheduled", { ...wanted, ...nodeGone }, "reschedule"],
  ["after a restart the call is repeated", intended, "provision"],
  ["but not without its class", { ...intended, classFound: false }, "fail"],
  ["nor before the scheduler has chosen a node again", { ...intended, ...waiting }, "none"],
  [
    "a call that is under way goes on without its class",
    { ...intended, classFound: false, lastAnswer: "uncertain" },
    "provision",
  ],
  ["once the volume is stored the intent goes", { ...intended, pvStored: true }, "release"],
  [
    "and goes also when the claim is no longer ours",
    { ...intended, ours: false, pvStored: true, pvOfDriver: true },
    "release",
  ],
  [
    "another driver's provisioner takes its own intent off",
    { ...intended, ours: false, pvStored: true },
    "none",
  ],
  [
    "a volume that another client made in its place leaves ours to be looked for",
    { ...intended, pvStored: true, pvForeign: true },
    "cancel release",
  ],
  [
    "a volume that was bound, and given up since, is not looked for",
    { ...intended, ...givenUp, deleting: true, lastAnswer: "uncertain" },
    "release",
  ],
  ["nor after a restart", { ...intended, ...givenUp, deleting: true }, "release"],
  [
    "one that never was stored is, though its claim is bound to another of its name",
    { ...intended, ...givenUp, pvStored: true, pvForeign: true, lastAnswer: "uncertain" },
    "cancel release",
  ],
  ["another provisioner's intent is not touched", { ...intended, ours: false }, "none"],
  ["nor when its claim is deleted", { ...intended, ours: false, deleting: true }, "none"],
  [
    "an uncertain creation goes on though the claim went back to in-tree",
    { ...intended, ours: false, lastAnswer: "uncertain" },
    "provision",
  ],
  ["a refused one lets such a claim go", { ...intended, ours: false, lastAnswer: "final" }, "release"],
  ["a deleted claim's volume is looked for", { ...intended, deleting: true }, "cancel release"],
  ["a claim bound elsewhere needs no second volume", { ...intended, bound: true }, "cancel release"],
  [
    "a deleted claim whose creation was refused goes at once",
    { ...intended, deleting: true, lastAnswer: "final" },
    "release",
  ],
  ["so does one that no longer has a node", { ...intended, deleting: true, ...waiting }, "release"],
  [
    "but not while its call is uncertain",
    { ...intended, deleting: true, ...waiting, lastAnswer: "uncertain" },
    "cancel release",
  ],
  [
    "a node that vanished with the outcome unknown leaves no volume there",
    { ...intended, ...nodeGone },
    "cancel reschedule",
  ],
  [
    "a claim whose node vanished after a refusal is rescheduled",
    { ...intended, ...nodeGone, lastAnswer: "final" },
    "reschedule",
  ],
  ["a refused claim is tried again", { ...intended, lastAnswer: "final" }, "provision"],
];

describe("the decision for a claim", () => {
  it.each(cases)("%s", (_, claim, step) => {
    const decided = decideClaimGoal(claim);
    expect(decided.kind === "cancel" ? `cancel ${decided.afterwards}` : decided.kind).toBe(step);
  });

  const anyClaim = fc.record({
    ours: fc.boolean(),
    deleting: fc.boolean(),
    bound: fc.boolean(),
    boundToOwn: fc.boolean(),
    intended: fc.boolean(),
    pvStored: fc.boolean(),
    pvForeign: fc.boolean(),
    pvOfDriver: fc.boolean(),
    classFound: fc.boolean(),
    delayed: fc.boolean(),
    selectedNode: fc.constantFrom(undefined, "node-1"),
    nodeFound: fc.boolean(),
    lastAnswer: fc.constantFrom("unknown", "uncertain", "final"),
  }) as fc.Arbitrary<ClaimFacts>;

  it("never lets go of a volume that may exist", () => {
    fc.assert(
      fc.property(anyClaim, (claim) => {
        const { kind } = decideClaimGoal(claim);
        const isOurs = claim.pvStored && !claim.pvForeign;
        // A disk whose PersistentVolume the claim was bound to is that of who deleted the PersistentVolume.
        if (claim.boundToOwn && !claim.pvStored) return true;
        const mayExist = claim.intended && !isOurs && claim.lastAnswer === "uncertain";
        return !mayExist || (kind !== "release" && kind !== "reschedule");
      }),
    );
  });

  it("never begins a volume for a claim that does not want one", () => {
    fc.assert(
      fc.property(anyClaim, (claim) => {
        const isUnwanted = claim.deleting || claim.bound || claim.pvStored;
        return !isUnwanted || decideClaimGoal(claim).kind !== "provision";
      }),
    );
  });
});
