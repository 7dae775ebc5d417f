/** Conditions taken out of decisions, one at a time. */
import { type Mutant, never } from "../mutant.ts";

export const persistentVolume: readonly Mutant[] = [
  never({
    name: "decide-claim-step-never-intent-is-stored-true",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: 'if (intent?.isStored === true) return { step: "removeIntent" };',
    condition: "intent?.isStored === true",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/data-risks.test.ts",
      test: "of storing a volume, stored while its claim is given up: its disk is the reclaim policy's",
    },
  }),
  never({
    name: "decide-claim-step-never-intent-is-deleting-claim",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: 'if (intent !== undefined && isDeleting(claim)) return { step: "provision" };',
    condition: "intent !== undefined && isDeleting(claim)",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/data-risks.test.ts",
      test: "of making a disk for a claim that is then deleted: it is found and deleted",
    },
  }),
  never({
    name: "decide-claim-step-never-claim-metadata-annotations-bind-completed-annotation",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: "if (claim.metadata.annotations?.[bindCompletedAnnotation] !== undefined) return keepBound(observed);",
    condition: "claim.metadata.annotations?.[bindCompletedAnnotation] !== undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/claims-and-volumes.test.ts",
      test: "a claim whose volume is another claim's by now is lost, and says so",
    },
  }),
  never({
    name: "decide-claim-step-never-ref-null-ref-uid-claim-metadata",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: "if (ref == null || ref.uid === claim.metadata.uid) return bind(observed, volume);",
    condition: "ref == null || ref.uid === claim.metadata.uid",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/data-risks.test.ts",
      test: "bind each volume to one claim, and each claim to one volume",
    },
  }),
  never({
    name: "decide-claim-step-never-claim-status-phase-lost",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: 'if (claim.status?.phase !== "Lost") return { step: "setPhase", phase: "Lost" };',
    condition: 'claim.status?.phase !== "Lost"',
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/claims-and-volumes.test.ts",
      test: "a claim whose volume is another claim's by now is lost, and says so",
    },
  }),
  never({
    name: "decide-claim-step-never-is-bound-to-volume-claim",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: "if (isBoundTo(volume, claim)) return bind(observed, volume);",
    condition: "isBoundTo(volume, claim)",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/claims-and-volumes.test.ts",
      test: "not the one that it names, where another claim has it, and says so",
    },
  }),
  never({
    name: "decide-claim-step-never-ref-null",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: "if (ref == null) {",
    condition: "ref == null",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/claims-and-volumes.test.ts",
      test: "not the one that it names, where that is too small, and says so",
    },
  }),
  never({
    name: "decide-claim-step-never-why",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: "if (why === undefined) return bind(observed, volume);",
    condition: "why === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/claims-and-volumes.test.ts",
      test: "not the one that it names, where another claim has it, and says so",
    },
  }),
  never({
    name: "decide-claim-step-never-is-binding-delayed-claim-metadata-annotations",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: "if (isBindingDelayed && claim.metadata.annotations?.[selectedNodeAnnotation] === undefined) {",
    condition: "isBindingDelayed && claim.metadata.annotations?.[selectedNodeAnnotation] === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/claims-and-volumes.test.ts",
      test: "waits for its first pod where the class says so, and no disk is made",
    },
  }),
  never({
    name: "decide-claim-step-never-waiting-pods-length-0",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: "if (waitingPods.length === 0) {",
    condition: "waitingPods.length === 0",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/claims-and-volumes.test.ts",
      test: "waits for its first pod where the class says so, and no disk is made",
    },
  }),
  never({
    name: "decide-claim-step-never-provisioner",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: "if (provisioner === undefined) {",
    condition: "provisioner === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/claims-and-volumes.test.ts",
      test: "whose class is not there says so, and goes on once it is",
    },
  }),
  never({
    name: "decide-claim-step-never-storage-provisioner-of-claim-metadata-annotations",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: "if (storageProvisionerOf(observed.claim.metadata.annotations) !== provisioner) {",
    condition: "storageProvisionerOf(observed.claim.metadata.annotations) !== provisioner",
    caughtBy: {
      file: "tests/components/sidecars/changing-hands.test.ts",
      test: "while a volume is being deleted: its disk goes with the claim, then the object",
    },
  }),
  never({
    name: "decide-volume-step-never-migrated-volume",
    file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.ts",
    find: 'if (migrated !== volume) return { step: "markMigration", volume: migrated };',
    condition: "migrated !== volume",
    caughtBy: {
      file: "tests/components/sidecars/changing-hands.test.ts",
      test: "while a volume is being deleted: its disk goes with the claim, then the object",
    },
  }),
  never({
    name: "decide-volume-step-never-claim",
    file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.ts",
    find: "if (claim === undefined) return release(observed);",
    condition: "claim === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/data-risks.test.ts",
      test: "which shows it released: it goes",
    },
  }),
  never({
    name: "decide-volume-step-never-claimed",
    file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.ts",
    find: 'if (claimed === "") return leaveToClaim(observed, claim);',
    condition: 'claimed === ""',
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/data-risks.test.ts",
      test: "lose a volume that another binds in between, and choose again with fresh state",
    },
  }),
  never({
    name: "decide-volume-step-never-volume-mode-of-volume-volume-mode",
    file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.ts",
    find: 'if (volumeModeOf(volume) === volumeModeOf(claim)) return { step: "wakeClaim" };',
    condition: "volumeModeOf(volume) === volumeModeOf(claim)",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/claims-and-volumes.test.ts",
      test: "is Failed under Recycle, with what to do, and keeps its disk",
    },
  }),
  never({
    name: "decide-volume-step-never-volume-status-phase-failed",
    file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.ts",
    find: 'if (volume.status?.phase !== "Failed") {',
    condition: 'volume.status?.phase !== "Failed"',
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/data-risks.test.ts",
      test: "which shows it released: it goes",
    },
  }),
  never({
    name: "decide-volume-step-never-released",
    file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.ts",
    find: "if (released !== undefined) return released;",
    condition: "released !== undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/data-risks.test.ts",
      test: "which shows it released: it goes",
    },
  }),
  never({
    name: "decide-volume-step-never-failed",
    file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.ts",
    find: "if (failed !== undefined) return failed;",
    condition: "failed !== undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/claims-and-volumes.test.ts",
      test: "is Failed under Recycle, with what to do, and keeps its disk",
    },
  }),
  never({
    name: "decide-deletion-step-never-failure",
    file: "packages/volumes/src/controllers/persistent-volume/decide-deletion-step.ts",
    find: "if (failure !== undefined) return afterFailure(observed, failure.error, failure.retryInMs);",
    condition: "failure !== undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/data-risks.test.ts",
      test: "which shows it released: it goes",
    },
  }),
];
