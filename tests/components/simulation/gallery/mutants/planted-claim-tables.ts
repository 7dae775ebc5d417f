/** Conditions taken out of decisions of the provisioner on a claim, one at a time, that the tables of the decisions catch. */
import { type Mutant, never } from "../mutant.ts";

export const claimTables: readonly Mutant[] = [
  never({
    name: "decide-claim-never-is-cached-is-deleting",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (isCached && isDeleting(cached)) return false;",
    condition: "isCached && isDeleting(cached)",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "the claim is being deleted meanwhile",
    },
  }),
  never({
    name: "decide-claim-never-is-cached-storing-certain",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (isCached && !attempt?.isStoringUncertain) return true;",
    condition: "isCached && !attempt?.isStoringUncertain",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "the driver has made it",
    },
  }),
  never({
    name: "decide-claim-never-vanished-storing-uncertain",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (attempt.isStoringUncertain) return forget;",
    condition: "attempt.isStoringUncertain",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "with a volume that may have been stored, kept and given up",
    },
  }),
  never({
    name: "claim-goal-never-bound-to-own-gone",
    file: "packages/sidecars/src/provisioner/claims/claim-goal.ts",
    find: 'if (claim.boundToOwn && !claim.pvStored) return { kind: "release" };',
    condition: "claim.boundToOwn && !claim.pvStored",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/claim-goal.test.ts",
      test: "a volume that was bound, and given up since, is not looked for",
    },
  }),
  never({
    name: "decide-claim-never-work-is-intent-removed",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (!work.isIntentRemoved) return { step: "removeIntent" };',
    condition: "!work.isIntentRemoved",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "all is accounted for",
    },
  }),
  never({
    name: "decide-claim-never-work-is-forgotten",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (!work.isForgotten) return { step: "forget" };',
    condition: "!work.isForgotten",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "the intent is removed",
    },
  }),
  never({
    name: "claim-goal-never-claim-ours-claim-deleting-claim-bound-claim-pv-stored",
    file: "packages/sidecars/src/provisioner/claims/claim-goal.ts",
    find: 'if (!claim.ours || claim.deleting || claim.bound || claim.pvStored) return { kind: "none" };',
    condition: "!claim.ours || claim.deleting || claim.bound || claim.pvStored",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/claim-goal.test.ts",
      test: "another's claim is left alone",
    },
  }),
  never({
    name: "claim-goal-never-claim-class-found",
    file: "packages/sidecars/src/provisioner/claims/claim-goal.ts",
    find: "if (!claim.classFound) return classMissing;",
    condition: "!claim.classFound",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/claim-goal.test.ts",
      test: "a missing class is a failure to report",
    },
  }),
  never({
    name: "claim-goal-never-claim-delayed-claim-selected-node",
    file: "packages/sidecars/src/provisioner/claims/claim-goal.ts",
    find: `if (claim.delayed && claim.selectedNode === undefined) return { kind: "none" };
  if (claim.selectedNode !== undefined && !claim.nodeFound) return { kind: "reschedule" };`,
    condition: "claim.delayed && claim.selectedNode === undefined",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/claim-goal.test.ts",
      test: "with delayed binding the scheduler comes first",
    },
  }),
  never({
    name: "claim-goal-never-claim-selected-node-claim-node-found",
    file: "packages/sidecars/src/provisioner/claims/claim-goal.ts",
    find: 'if (claim.selectedNode !== undefined && !claim.nodeFound) return { kind: "reschedule" };',
    condition: "claim.selectedNode !== undefined && !claim.nodeFound",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/claim-goal.test.ts",
      test: "a claim whose node does not exist is rescheduled",
    },
  }),
  never({
    name: "claim-goal-never-claim-pv-stored-claim-pv-foreign-is-known",
    file: "packages/sidecars/src/provisioner/claims/claim-goal.ts",
    find: 'if (claim.pvStored && !claim.pvForeign && isKnown) return { kind: "release" };',
    condition: "claim.pvStored && !claim.pvForeign && isKnown",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/claim-goal.test.ts",
      test: "once the volume is stored the intent goes",
    },
  }),
  never({
    name: "claim-goal-never-claim-ours-claim-last-answer-unknown",
    file: "packages/sidecars/src/provisioner/claims/claim-goal.ts",
    find: 'if (!claim.ours && claim.lastAnswer === "unknown") return { kind: "none" };',
    condition: '!claim.ours && claim.lastAnswer === "unknown"',
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/claim-goal.test.ts",
      test: "another provisioner's intent is not touched",
    },
  }),
  never({
    name: "claim-goal-never-unwanted",
    file: "packages/sidecars/src/provisioner/claims/claim-goal.ts",
    find: "if (unwanted) {",
    condition: "unwanted",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/claim-goal.test.ts",
      test: "a deleted claim's volume is looked for",
    },
  }),
  never({
    name: "claim-goal-never-is-certainly-gone-claim",
    file: "packages/sidecars/src/provisioner/claims/claim-goal.ts",
    find: 'if (isCertainlyGone(claim)) return { kind: "release" };',
    condition: "isCertainlyGone(claim)",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/claim-goal.test.ts",
      test: "so does one that no longer has a node",
    },
  }),
  never({
    name: "claim-goal-never-claim-class-found-2",
    file: "packages/sidecars/src/provisioner/claims/claim-goal.ts",
    find: 'if (!claim.classFound) return claim.lastAnswer === "uncertain"',
    condition: "!claim.classFound",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/claim-goal.test.ts",
      test: "but not without its class",
    },
  }),
  never({
    name: "claim-goal-never-claim-delayed-claim-selected-node-2",
    file: "packages/sidecars/src/provisioner/claims/claim-goal.ts",
    find: `if (claim.delayed && claim.selectedNode === undefined) return { kind: "none" };
  if (claim.selectedNode !== undefined && !claim.nodeFound) {`,
    condition: "claim.delayed && claim.selectedNode === undefined",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/claim-goal.test.ts",
      test: "nor before the scheduler has chosen a node again",
    },
  }),
  never({
    name: "claim-goal-never-claim-selected-node-claim-node-found-2",
    file: "packages/sidecars/src/provisioner/claims/claim-goal.ts",
    find: "if (claim.selectedNode !== undefined && !claim.nodeFound) {",
    condition: "claim.selectedNode !== undefined && !claim.nodeFound",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/claim-goal.test.ts",
      test: "a node that vanished with the outcome unknown leaves no volume there",
    },
  }),
  never({
    name: "claim-goal-never-claim-last-answer-final",
    file: "packages/sidecars/src/provisioner/claims/claim-goal.ts",
    find: 'if (claim.lastAnswer === "final") return { kind: "reschedule" };',
    condition: 'claim.lastAnswer === "final"',
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/claim-goal.test.ts",
      test: "a claim whose node vanished after a refusal is rescheduled",
    },
  }),
  never({
    name: "claim-goal-never-claim-last-answer-final-2",
    file: "packages/sidecars/src/provisioner/claims/claim-goal.ts",
    find: 'if (claim.lastAnswer === "final") return true;',
    condition: 'claim.lastAnswer === "final"',
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/claim-goal.test.ts",
      test: "a deleted claim whose creation was refused goes at once",
    },
  }),
];
