/** Conditions taken out of decisions, one at a time. */
import { type Mutant, never } from "../mutant.ts";

export const provisioner: readonly Mutant[] = [
  never({
    name: "decide-claim-never-failure",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (failure !== undefined) return decideFailure(observed, failure);",
    condition: "failure !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/leaks.test.ts",
      test: "'a node deleted after an uncertain ans…'",
    },
  }),
  never({
    name: "decide-claim-never-is-vanished",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (isVanished) return decideVanished(observed);",
    condition: "isVanished",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/leaks.test.ts",
      test: "'the intent taken off by force after a…'",
    },
  }),
  never({
    name: "decide-claim-never-attempt-last-answer-final",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (attempt.lastAnswer === "final") return forget;',
    condition: 'attempt.lastAnswer === "final"',
    caughtBy: {
      file: "packages/sidecars/src/provisioner/leaks.test.ts",
      test: "'no answer to the write that takes the…'",
    },
  }),
  never({
    name: "decide-claim-never-work-on-server",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (work.onServer === undefined) return { step: "confirmVanished", attempt };',
    condition: "work.onServer === undefined",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/stale-caches.test.ts",
      test: "keeps the volume that an uncertain call may have made",
    },
  }),
  never({
    name: "decide-claim-never-work-on-server-wanted",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (work.onServer === "wanted") return { step: "awaitCache" };',
    condition: 'work.onServer === "wanted"',
    caughtBy: {
      file: "packages/sidecars/src/provisioner/stale-caches.test.ts",
      test: "keeps the volume that an uncertain call may have made",
    },
  }),
  never({
    name: "decide-claim-never-work-is-accounted",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (!work.isAccounted) {",
    condition: "!work.isAccounted",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/leaks.test.ts",
      test: "'a claim deleted after an uncertain an…'",
    },
  }),
  never({
    name: "decide-claim-never-step",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: `if (step !== undefined) return step;
    const prepared = attempt?.prepared ?? work.lookup?.prepared;`,
    condition: "step !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/leaks.test.ts",
      test: "'a claim deleted after an uncertain an…'",
    },
  }),
  never({
    name: "decide-claim-never-work-is-accounted-2",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (work.isAccounted) return decideRelease(observed);",
    condition: "work.isAccounted",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/stale-caches.test.ts",
      test: "gets the volume that was being made for it",
    },
  }),
  never({
    name: "decide-claim-never-refused",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (refused !== undefined) {",
    condition: "refused !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/sources.test.ts",
      test: "waits, and reports why, for a source that does not exist yet",
    },
  }),
  never({
    name: "decide-claim-never-prepared",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (prepared === undefined) return decidePreparation(observed);",
    condition: "prepared === undefined",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the provisioner ends well",
    },
  }),
  never({
    name: "decide-claim-never-draft",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (draft === undefined) return { step: "draftVolume" };',
    condition: "draft === undefined",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the provisioner ends well",
    },
  }),
  never({
    name: "decide-claim-never-data-source-content-source",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (dataSource !== undefined && contentSource === undefined) {",
    condition: "dataSource !== undefined && contentSource === undefined",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/sources.test.ts",
      test: "is copied from its source, which stays until the copy is made",
    },
  }),
  never({
    name: "decide-claim-never-selected",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (selected === undefined) return { step: "selectTopology", draft };',
    condition: "selected === undefined",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the provisioner ends well",
    },
  }),
  never({
    name: "decide-claim-never-composed-attributes-class",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (composed === undefined || attributesClass === undefined) {",
    condition: "composed === undefined || attributesClass === undefined",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the provisioner ends well",
    },
  }),
  never({
    name: "decide-claim-never-secrets",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (secrets === undefined) return { step: "readSecret", prepared };',
    condition: "secrets === undefined",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the provisioner ends well",
    },
  }),
  never({
    name: "decide-claim-never-data-source-facts-intended-work-is",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (dataSource !== undefined && !facts.intended && !work.isSourceProtected) {",
    condition: "dataSource !== undefined && !facts.intended && !work.isSourceProtected",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/sources.test.ts",
      test: "is copied from its source, which stays until the copy is made",
    },
  }),
  never({
    name: "decide-claim-never-stores-intent-facts-intended-work-is",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (storesIntent && !facts.intended && !work.isIntentStored) return { step: "storeIntent" };',
    condition: "storesIntent && !facts.intended && !work.isIntentStored",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/leaks.test.ts",
      test: "'a node deleted after an uncertain ans…'",
    },
  }),
  never({
    name: "decide-claim-never-unfit",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (unfit === undefined) return { step: "createVolume", prepared, secrets };',
    condition: "unfit === undefined",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the provisioner ends well",
    },
  }),
  never({
    name: "decide-claim-never-made",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (made !== undefined) return decideMade(observed, prepared, made);",
    condition: "made !== undefined",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the provisioner ends well",
    },
  }),
  never({
    name: "decide-claim-never-work-stored",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (work.stored === undefined) {",
    condition: "work.stored === undefined",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the provisioner ends well",
    },
  }),
  never({
    name: "decide-claim-never-is-wanted",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (isWanted === undefined) return { step: "confirmClaim" };',
    condition: "isWanted === undefined",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/stale-caches.test.ts",
      test: "gets the volume that was being made for it",
    },
  }),
  never({
    name: "decide-claim-never-is-wanted-2",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (isWanted) return { step: "storeVolume", prepared, made };',
    condition: "isWanted",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the provisioner ends well",
    },
  }),
  never({
    name: "decide-claim-never-work-stored-taken",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (work.stored === "taken") {',
    condition: 'work.stored === "taken"',
    caughtBy: {
      file: "packages/sidecars/src/provisioner/leaks.test.ts",
      test: "'another\\'s PersistentVolume gets the …'",
    },
  }),
  never({
    name: "decide-claim-never-step-2",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: `if (step !== undefined) return step;
    // Stored: the object of that name is our volume's, from an earlier write whose answer was lost.`,
    condition: "step !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/leaks.test.ts",
      test: "'another\\'s PersistentVolume gets the …'",
    },
  }),
];
