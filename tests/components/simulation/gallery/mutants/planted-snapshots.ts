/** Conditions taken out of decisions, one at a time. */
import { type Mutant, never } from "../mutant.ts";

export const snapshots: readonly Mutant[] = [
  never({
    name: "decide-content-never-progress-failure",
    file: "packages/sidecars/src/snapshotter/decide-content.ts",
    find: "if (progress.failure !== undefined) return decideFailure(rules, observed, asked, progress.failure);",
    condition: "progress.failure !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/stories.test.ts",
      test: "is looked for again after an answer that never came, and is not made twice",
    },
  }),
  never({
    name: "decide-content-never-known",
    file: "packages/sidecars/src/snapshotter/decide-content.ts",
    find: `if (known === undefined) {
    const request = rules.creationRequest(content, contentClass);`,
    condition: "known === undefined",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the snapshotter ends well",
    },
  }),
  never({
    name: "decide-content-never-storing",
    file: "packages/sidecars/src/snapshotter/decide-content.ts",
    find: "if (storing !== undefined) return storing;",
    condition: "storing !== undefined",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the snapshotter ends well",
    },
  }),
  never({
    name: "decide-content-never-known-2",
    file: "packages/sidecars/src/snapshotter/decide-content.ts",
    find: `if (known === undefined) {
    const reference = rules.lookSecretOf(content, contentClass);`,
    condition: "known === undefined",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/stories.test.ts",
      test: "is bound both ways and 'looked up'",
    },
  }),
  never({
    name: "decide-content-never-progress-is-status-stored",
    file: "packages/sidecars/src/snapshotter/decide-content.ts",
    find: "if (progress.isStatusStored) return undefined;",
    condition: "progress.isStatusStored",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/stories.test.ts",
      test: "holds its claim until it is ready, and asks again until then, later each time",
    },
  }),
  never({
    name: "decide-content-never-progress-is-deleted",
    file: "packages/sidecars/src/snapshotter/decide-content.ts",
    find: "if (progress.isDeleted) return decideRelease(rules, observed);",
    condition: "progress.isDeleted",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the snapshotter ends well",
    },
  }),
  never({
    name: "decide-content-never-failure-is-emitted",
    file: "packages/sidecars/src/snapshotter/decide-content.ts",
    find: 'if (!failure.isEmitted) return { step: "emitFailure", reason, message, error };',
    condition: "!failure.isEmitted",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/stories.test.ts",
      test: "that the driver refuses, says so and can be deleted at once",
    },
  }),
  never({
    name: "decide-snapshot-never-failure",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: "if (failure !== undefined) return decideSubjectFailure(facts.snapshot.status?.error?.message, failure);",
    condition: "failure !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/stories.test.ts",
      test: "is not created again when its content was removed",
    },
  }),
  never({
    name: "decide-snapshot-never-work-chosen-class",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: 'if (work.chosenClass !== undefined) return { step: "storeClass", chosen: work.chosenClass };',
    condition: "work.chosenClass !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/stories.test.ts",
      test: "holds its claim until it is ready, and asks again until then, later each time",
    },
  }),
  never({
    name: "decide-snapshot-never-work-is-content-created",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: 'if (work.isContentCreated) return { step: "reportCreating" };',
    condition: "work.isContentCreated",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/snapshots.test.ts",
      test: "are made of a claim with the default class of its driver, and deleted with it",
    },
  }),
  never({
    name: "decide-snapshot-never-work-new-content",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: 'if (work.newContent === undefined) return { step: "prepareContent", claim };',
    condition: "work.newContent === undefined",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the snapshotter ends well",
    },
  }),
  never({
    name: "decide-snapshot-never-work-is-claim-held-has-finalizer",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: "if (work.isClaimHeld || hasFinalizer(claim, snapshotClaimFinalizer)) return undefined;",
    condition: "work.isClaimHeld || hasFinalizer(claim, snapshotClaimFinalizer)",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the snapshotter ends well",
    },
  }),
  never({
    name: "decide-snapshot-never-is-deleting-claim",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: 'if (!isDeleting(claim)) return { step: "holdClaim", claim };',
    condition: "!isDeleting(claim)",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the snapshotter ends well",
    },
  }),
  never({
    name: "decide-snapshot-never-work-is-status-stored",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: 'if (!work.isStatusStored) return { step: "storeStatus", status };',
    condition: "!work.isStatusStored",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the snapshotter ends well",
    },
  }),
  never({
    name: "decide-snapshot-never-content-name",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: "if (content === undefined && name !== undefined) {",
    condition: "content === undefined && name !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/stale-caches.test.ts",
      test: "keeps its snapshot, and goes with it in the end",
    },
  }),
  never({
    name: "decide-snapshot-never-work-content-on-server-there",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: `if (work.contentOnServer === "there") return { step: "awaitCache" };
  }
  return { step: "removeFinalizers", finalizers: goal.finalizers };`,
    condition: 'work.contentOnServer === "there"',
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/stale-caches.test.ts",
      test: "keeps its snapshot, and goes with it in the end",
    },
  }),
  never({
    name: "decide-bound-content-never-is-deleting",
    file: "packages/sidecars/src/snapshot-controller/contents/decide-bound-content.ts",
    find: 'if (!observed.isDeleting) return { step: isHeld ? "settle" : "addFinalizer" };',
    condition: "!observed.isDeleting",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/stories.test.ts",
      test: "is bound both ways and 'looked up'",
    },
  }),
  never({
    name: "decide-bound-content-never-snapshot-on-server",
    file: "packages/sidecars/src/snapshot-controller/contents/decide-bound-content.ts",
    find: 'if (snapshotOnServer === undefined) return { step: "readSnapshot" };',
    condition: "snapshotOnServer === undefined",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/stories.test.ts",
      test: "whose content is deleted first, keeps it until it is deleted itself",
    },
  }),
];
