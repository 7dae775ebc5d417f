/** Conditions taken out of decisions, one at a time, that the tables of the decisions catch. */
import { type Mutant, never } from "../mutant.ts";

export const tables: readonly Mutant[] = [
  never({
    name: "decide-claim-step-never-migrated-claim",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: 'if (migrated !== claim) return { step: "markMigration", claim: migrated };',
    condition: "migrated !== claim",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.test.ts",
      test: "the migration annotation is set (B2)",
    },
  }),
  never({
    name: "decide-expand-step-never-claim-status-phase-bound",
    file: "packages/volumes/src/controllers/expand/decide-expand-step.ts",
    find: 'if (claim.status?.phase !== "Bound") return false;',
    condition: 'claim.status?.phase !== "Bound"',
    caughtBy: {
      file: "packages/volumes/src/controllers/expand/decide-expand-step.test.ts",
      test: "a claim asks for more: not bound",
    },
  }),
  never({
    name: "decide-expand-step-never-volume-undefined",
    file: "packages/volumes/src/controllers/expand/decide-expand-step.ts",
    find: 'if (volume === undefined) return refuse(claim, "does not exist");',
    condition: "volume === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/expand/decide-expand-step.test.ts",
      test: "no volume",
    },
  }),
  never({
    name: "decide-claim-never-claim-undefined",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (claim === undefined) return settle;",
    condition: "claim === undefined",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "no claim and no attempt",
    },
  }),
  never({
    name: "decide-expand-step-never-volume-spec-claim-ref-uid-claim-metadata-uid",
    file: "packages/volumes/src/controllers/expand/decide-expand-step.ts",
    find: "if (volume.spec?.claimRef?.uid !== claim.metadata.uid) {",
    condition: "volume.spec?.claimRef?.uid !== claim.metadata.uid",
    caughtBy: {
      file: "packages/volumes/src/controllers/expand/decide-expand-step.test.ts",
      test: "a volume of another claim",
    },
  }),
  never({
    name: "decide-node-migration-step-never-current-wanted",
    file: "packages/volumes/src/node/migration/decide-node-migration-step.ts",
    find: "if (current === wanted) return { inTreeName, path: wanted, heldBy: [] };",
    condition: "current === wanted",
    caughtBy: {
      file: "packages/volumes/src/node/migration/decide-node-migration-step.test.ts",
      test: "nothing is to be done on the way that is wanted",
    },
  }),
  never({
    name: "decide-claim-never-observed-needs-live-claim",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (observed.needsLiveClaim) return { step: "readClaim" };',
    condition: "observed.needsLiveClaim",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "the intent of an earlier process: is the cache stale?",
    },
  }),
  never({
    name: "decide-content-never-is-deleting-content",
    file: "packages/sidecars/src/snapshotter/decide-content.ts",
    find: 'if (isDeleting(content)) return { step: "decideAgain", isReady: known.state.ready };',
    condition: "isDeleting(content)",
    caughtBy: {
      file: "packages/sidecars/src/snapshotter/decide-content.test.ts",
      test: "with that in its status, deleted meanwhile",
    },
  }),
  never({
    name: "decide-expand-step-never-observed-is-finished-true",
    file: "packages/volumes/src/controllers/expand/decide-expand-step.ts",
    find: "if (observed.isFinished === true) {",
    condition: "observed.isFinished === true",
    caughtBy: {
      file: "packages/volumes/src/controllers/expand/decide-expand-step.test.ts",
      test: "what is done is reported",
    },
  }),
  never({
    name: "decide-claim-step-never-claim-spec-volume-name",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: 'if ((claim.spec?.volumeName ?? "") === "") {',
    condition: '(claim.spec?.volumeName ?? "") === ""',
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.test.ts",
      test: "becomes Lost without a name",
    },
  }),
  never({
    name: "decide-resize-step-never-progress-store-failure-undefined",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: "if (progress.storeFailure !== undefined) {",
    condition: "progress.storeFailure !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/resizer/decide-resize-step.test.ts",
      test: "of a claim that could not be stored",
    },
  }),
  never({
    name: "decide-claim-never-share-foreign",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (share === "foreign") return decideForeign(observed);',
    condition: 'share === "foreign"',
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "another node's claim",
    },
  }),
  never({
    name: "decide-claim-step-never-volume-undefined",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: "if (volume === undefined) {",
    condition: "volume === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.test.ts",
      test: "becomes Lost without a volume",
    },
  }),
  never({
    name: "decide-content-never-rules-reads-served-version-progress-served-undef",
    file: "packages/sidecars/src/snapshotter/decide-content.ts",
    find: 'if (rules.readsServedVersion && progress.served === undefined) return { step: "readServedVersion" };',
    condition: "rules.readsServedVersion && progress.served === undefined",
    caughtBy: {
      file: "packages/sidecars/src/snapshotter/decide-content.test.ts",
      test: "of a group reads the version of the API that is served before it writes the status",
    },
  }),
  never({
    name: "decide-attach-never-live-undefined-live-node-name-node-name-live-uni",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: "if (live === undefined || live.nodeName !== nodeName || live.uniqueName !== uniqueName) {\n    const otherNodes = rivals.map((rival) => rival.nodeName);",
    condition: "live === undefined || live.nodeName !== nodeName || live.uniqueName !== uniqueName",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "C2: uncertain elsewhere, and not used by the cache: the node is asked",
    },
  }),
  never({
    name: "decide-claim-never-attempt-undefined",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (attempt === undefined) return settle;",
    condition: "attempt === undefined",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "deletes no volume before the server has said that no object stands for it",
    },
  }),
  never({
    name: "decide-claim-step-never-has-new-phase-true-is-reported-true",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: 'if (hasNewPhase !== true || isReported === true) return { step: "settle" };',
    condition: "hasNewPhase !== true || isReported === true",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.test.ts",
      test: "is reported once",
    },
  }),
  never({
    name: "decide-expand-step-never-by-this-pass-true",
    file: "packages/volumes/src/controllers/expand/decide-expand-step.ts",
    find: "if (byThisPass === true) return true;",
    condition: "byThisPass === true",
    caughtBy: {
      file: "packages/volumes/src/controllers/expand/decide-expand-step.test.ts",
      test: "nor one that this pass has marked",
    },
  }),
  never({
    name: "decide-content-never-progress-is-live",
    file: "packages/sidecars/src/snapshotter/decide-content.ts",
    find: 'if (!progress.isLive) return { step: "readLive" };',
    condition: "!progress.isLive",
    caughtBy: {
      file: "packages/sidecars/src/snapshotter/decide-content.test.ts",
      test: "deleted with its snapshot, by the cache",
    },
  }),
  never({
    name: "decide-resize-step-never-reference-undefined-progress-secrets-undefined",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: 'if (reference !== undefined && progress.secrets === undefined) return { step: "readSecret", reference };',
    condition: "reference !== undefined && progress.secrets === undefined",
    caughtBy: {
      file: "packages/sidecars/src/resizer/decide-resize-step.test.ts",
      test: "of a claim that needs a secret",
    },
  }),
  never({
    name: "decide-expand-step-never-claim-metadata-annotations-storage-resizer-annot",
    file: "packages/volumes/src/controllers/expand/decide-expand-step.ts",
    find: "if (claim.metadata.annotations?.[storageResizerAnnotation] !== resizer) return false;",
    condition: "claim.metadata.annotations?.[storageResizerAnnotation] !== resizer",
    caughtBy: {
      file: "packages/volumes/src/controllers/expand/decide-expand-step.test.ts",
      test: "a mark of another expander is replaced",
    },
  }),
  never({
    name: "decide-claim-step-never-volume-undefined-may-take-volume-claim",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: "if (volume === undefined || !mayTake(volume, claim)) return stayPending(observed);",
    condition: "volume === undefined || !mayTake(volume, claim)",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.test.ts",
      test: "nor the one that it names",
    },
  }),
  never({
    name: "decide-expand-step-never-expander-kind-external",
    file: "packages/volumes/src/controllers/expand/decide-expand-step.ts",
    find: 'if (expander.kind === "external") {',
    condition: 'expander.kind === "external"',
    caughtBy: {
      file: "packages/volumes/src/controllers/expand/decide-expand-step.test.ts",
      test: "could not be named: that is reported",
    },
  }),
  never({
    name: "decide-attach-step-never-observed-is-volume-released",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: 'if (observed.isVolumeReleased) return { step: "waitForVolumeRelease" };',
    condition: "observed.isVolumeReleased",
    caughtBy: {
      file: "packages/sidecars/src/attacher/decide-attach-step.test.ts",
      test: "a volume that is being released is not held by its cached finalizer",
    },
  }),
  never({
    name: "decide-content-never-in-status-has-error-content-message",
    file: "packages/sidecars/src/snapshotter/decide-content.ts",
    find: 'if (inStatus && hasError(content, message)) return { step: "fail", error };',
    condition: "inStatus && hasError(content, message)",
    caughtBy: {
      file: "packages/sidecars/src/snapshotter/decide-content.test.ts",
      test: "whose failure is known already",
    },
  }),
  never({
    name: "decide-resize-step-never-progress-is-end-emitted",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: 'if (progress.isEndEmitted) return { step: "settle" };',
    condition: "progress.isEndEmitted",
    caughtBy: {
      file: "packages/sidecars/src/resizer/decide-resize-step.test.ts",
      test: "of a claim that is done",
    },
  }),
  never({
    name: "decide-attach-never-in-tree-plugin-undefined",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: 'if (inTreePlugin === undefined) return { step: "attachInTree", ...on };',
    condition: "inTreePlugin === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "then a plugin that cannot migrate attaches",
    },
  }),
  never({
    name: "decide-ephemeral-step-never-name-undefined",
    file: "packages/volumes/src/controllers/ephemeral/decide-ephemeral-step.ts",
    find: "if (name === undefined) continue;",
    condition: "name === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/ephemeral/ephemeral-volume-controller.test.ts",
      test: "a pod without such a volume",
    },
  }),
  never({
    name: "decide-claim-step-never-default-class-undefined-observed-is-class-fixed",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: "if (defaultClass !== undefined && observed.isClassFixed !== true && !isDeleting(claim)) {",
    condition: "defaultClass !== undefined && observed.isClassFixed !== true && !isDeleting(claim)",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.test.ts",
      test: "gets the default class that came after it (KEP-3333)",
    },
  }),
  never({
    name: "observe-volumes-left-never-error-instanceof-kube-api-error-error-code-403",
    file: "packages/volumes/src/node/migration/observe-volumes-left.ts",
    find: "if (error instanceof KubeApiError && error.code === 403) return undefined;",
    condition: "error instanceof KubeApiError && error.code === 403",
    caughtBy: {
      file: "packages/volumes/src/node/migration/observe-volumes-left.test.ts",
      test: "is not a volume whose VolumeAttachment the node may not read",
    },
  }),
  never({
    name: "decide-snapshot-never-reason-undefined-work-is-wait-reported",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: 'if (reason === undefined || work.isWaitReported) return { step: "lookLater" };',
    condition: "reason === undefined || work.isWaitReported",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.test.ts",
      test: "deleted, its content going",
    },
  }),
  never({
    name: "decide-resize-step-never-has-equals-parse-quantity-capacity-notes",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: "if (has.equals(parseQuantity(capacity)) && !notes) return undefined;",
    condition: "has.equals(parseQuantity(capacity)) && !notes",
    caughtBy: {
      file: "packages/sidecars/src/resizer/decide-resize-step.test.ts",
      test: "of a claim that has grown already",
    },
  }),
  never({
    name: "decide-snapshot-never-reason-snapshot-content-missing-name-undefined",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: 'if (reason === "SnapshotContentMissing" && name !== undefined) {',
    condition: 'reason === "SnapshotContentMissing" && name !== undefined',
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.test.ts",
      test: "its content is lost",
    },
  }),
  never({
    name: "decide-claim-protection-never-is-protected-is-used",
    file: "packages/volumes/src/controllers/protection/decide-claim-protection.ts",
    find: 'if (!isProtected || isUsed) return { step: "settle" };',
    condition: "!isProtected || isUsed",
    caughtBy: {
      file: "packages/volumes/src/controllers/protection/decide-protection.test.ts",
      test: "being deleted without it goes",
    },
  }),
  never({
    name: "decide-attach-never-live-kind-failed",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: 'if (live.kind === "failed") {\n    const { message } = live;\n    return { step: "refuseAttach", ...on, part: "NewAttacher", message, volumeAttachment: undefined };',
    condition: 'live.kind === "failed"',
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "the API server does not answer before an attach",
    },
  }),
  never({
    name: "observe-volumes-left-never-data-unreadable",
    file: "packages/volumes/src/node/migration/observe-volumes-left.ts",
    find: 'if (data === "unreadable") unreadable.push(directory);',
    condition: 'data === "unreadable"',
    caughtBy: {
      file: "packages/volumes/src/node/migration/observe-volumes-left.test.ts",
      test: "is a directory whose data file is damaged",
    },
  }),
  never({
    name: "decide-snapshot-never-work-content-on-server-there-3",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: 'if (work.contentOnServer === "there") return { step: "awaitCache" };\n  }\n  const error = new SnapshotFailedError(',
    condition: 'work.contentOnServer === "there"',
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.test.ts",
      test: "its content is lost in the cache only",
    },
  }),
  never({
    name: "decide-attach-step-never-volume-undefined",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: "if (volume === undefined) throw new AttachmentError(",
    condition: "volume === undefined",
    caughtBy: {
      file: "packages/sidecars/src/attacher/decide-attach-step.test.ts",
      test: "is a reported error for no volume",
    },
  }),
  never({
    name: "observe-volumes-left-never-data-volume-lifecycle-mode-ephemeral",
    file: "packages/volumes/src/node/migration/observe-volumes-left.ts",
    find: 'if (data.volumeLifecycleMode === "Ephemeral") continue;',
    condition: 'data.volumeLifecycleMode === "Ephemeral"',
    caughtBy: {
      file: "packages/volumes/src/node/migration/observe-volumes-left.test.ts",
      test: "is not a volume that was made for one pod",
    },
  }),
  never({
    name: "decide-resize-step-never-infeasible",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: 'if (infeasible) return { step: "wait", delayMs: rules.infeasibleRetryMs };',
    condition: "infeasible",
    caughtBy: {
      file: "packages/sidecars/src/resizer/decide-resize-step.test.ts",
      test: "of a claim that can never be had",
    },
  }),
  never({
    name: "decide-snapshot-never-claim-undefined",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: 'if (claim === undefined) return claimMissing(observed);\n  if (work.newContent === undefined) return { step: "prepareContent", claim };',
    condition: "claim === undefined",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.test.ts",
      test: "fail without their claim, and say so",
    },
  }),
  never({
    name: "attach-steps-never-pass-signal-aborted-is-conflict-error",
    file: "packages/sidecars/src/attacher/attach-steps.ts",
    find: "if (pass.signal.aborted || isConflict(error)) throw error;",
    condition: "pass.signal.aborted || isConflict(error)",
    caughtBy: {
      file: "packages/sidecars/src/attacher/attacher.test.ts",
      test: "reports no failure for a conflict of the write to csi-1",
    },
  }),
  never({
    name: "decide-csi-node-step-never-failure-undefined",
    file: "packages/volumes/src/node/csi-node/decide-csi-node-step.ts",
    find: "if (failure !== undefined) return afterFailure(failure, oldDrivers);",
    condition: "failure !== undefined",
    caughtBy: {
      file: "packages/volumes/src/node/csi-node/node-info.test.ts",
      test: "is left out when the server refuses what it says",
    },
  }),
  never({
    name: "decide-claim-protection-never-live-claim-undefined-live-claim-metadata-uid-cla",
    file: "packages/volumes/src/controllers/protection/decide-claim-protection.ts",
    find: 'if (live.claim === undefined || live.claim.metadata.uid !== claim.metadata.uid) return { step: "settle" };',
    condition: "live.claim === undefined || live.claim.metadata.uid !== claim.metadata.uid",
    caughtBy: {
      file: "packages/volumes/src/controllers/protection/decide-protection.test.ts",
      test: "that has gone meanwhile",
    },
  }),
  never({
    name: "attach-steps-never-is-not-found-error",
    file: "packages/sidecars/src/attacher/attach-steps.ts",
    find: "if (!isNotFound(error)) throw error;",
    condition: "!isNotFound(error)",
    caughtBy: {
      file: "packages/sidecars/src/attacher/attacher.test.ts",
      test: "lets an attachment go in a later try",
    },
  }),
  never({
    name: "decide-claim-step-never-is-volume-taken",
    file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.ts",
    find: 'if (isVolumeTaken) return { step: "waitForVolume" };',
    condition: "isVolumeTaken",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/decide-claim-step.test.ts",
      test: "waits for one that another claim is about to take",
    },
  }),
  never({
    name: "decide-volume-protection-never-is-deleting-volume",
    file: "packages/volumes/src/controllers/protection/decide-volume-protection.ts",
    find: 'if (!isDeleting(volume)) return { step: isProtected ? "settle" : "addFinalizer" };',
    condition: "!isDeleting(volume)",
    caughtBy: {
      file: "packages/volumes/src/controllers/protection/decide-protection.test.ts",
      test: "without the finalizer gets it",
    },
  }),
  never({
    name: "decide-volume-protection-never-is-protected-is-bound-volume",
    file: "packages/volumes/src/controllers/protection/decide-volume-protection.ts",
    find: 'if (!isProtected || isBound(volume)) return { step: "settle" };',
    condition: "!isProtected || isBound(volume)",
    caughtBy: {
      file: "packages/volumes/src/controllers/protection/decide-protection.test.ts",
      test: "being deleted without it goes",
    },
  }),
  never({
    name: "decide-csi-node-step-never-is-invalid-error-old-drivers-length-0",
    file: "packages/volumes/src/node/csi-node/decide-csi-node-step.ts",
    find: 'if (isInvalid(error) && oldDrivers.length > 0) return { step: "dropOldDrivers", error };',
    condition: "isInvalid(error) && oldDrivers.length > 0",
    caughtBy: {
      file: "packages/volumes/src/node/csi-node/node-info.test.ts",
      test: "is left out when the server refuses what it says",
    },
  }),
  never({
    name: "decide-snapshot-never-work-group-on-server-there",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: 'if (work.groupOnServer === "there") return { step: "awaitGroup" };',
    condition: 'work.groupOnServer === "there"',
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.test.ts",
      test: "deleted, of a group on the server",
    },
  }),
  never({
    name: "decide-volume-step-never-reports-0",
    file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.ts",
    find: "if (reports === 0) {",
    condition: "reports === 0",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.test.ts",
      test: "of another mode: an event on the volume",
    },
  }),
  never({
    name: "decide-volume-step-never-reports-1",
    file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.ts",
    find: 'if (reports > 1) return { step: "settle" };',
    condition: "reports > 1",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.test.ts",
      test: "and that is all",
    },
  }),
  never({
    name: "decide-volume-step-never-volume-metadata-annotations-migrated-to-annotati",
    file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.ts",
    find: 'if ((volume.metadata.annotations?.[migratedToAnnotation] ?? "") !== "") return { step: "settle" };',
    condition: '(volume.metadata.annotations?.[migratedToAnnotation] ?? "") !== ""',
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.test.ts",
      test: "Delete, an external provisioner's",
    },
  }),
  never({
    name: "decide-bound-content-never-is-held-is-announced",
    file: "packages/sidecars/src/snapshot-controller/contents/decide-bound-content.ts",
    find: 'if (!isHeld || isAnnounced) return { step: "settle" };',
    condition: "!isHeld || isAnnounced",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/contents/decide-bound-content.test.ts",
      test: "deleted, announced",
    },
  }),
  never({
    name: "decide-attach-never-present-is-confirmed-true-demand-is-node-managed",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: "if (present?.isConfirmed === true || !demand.isNodeManaged) return undefined;",
    condition: "present?.isConfirmed === true || !demand.isNodeManaged",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "attached already",
    },
  }),
  never({
    name: "decide-attach-never-demand-is-unidentified",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: 'if (demand.isUnidentified) return wait("what is attached under its in-tree name is not identified yet");',
    condition: "demand.isUnidentified",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "A6: what is attached under its in-tree name is not identified yet",
    },
  }),
  never({
    name: "decide-node-migration-step-never-retry-at-ms-now-ms",
    file: "packages/volumes/src/node/migration/decide-node-migration-step.ts",
    find: 'if (retryAtMs > nowMs) return { step: "wait", ms: retryAtMs - nowMs };',
    condition: "retryAtMs > nowMs",
    caughtBy: {
      file: "packages/volumes/src/node/migration/decide-node-migration-step.test.ts",
      test: "and is not repeated before its time",
    },
  }),
  never({
    name: "decide-resize-step-never-progress-is-in-use-emitted",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: 'if (progress.isInUseEmitted) return { step: "wait", delayMs: rules.infeasibleRetryMs };',
    condition: "progress.isInUseEmitted",
    caughtBy: {
      file: "packages/sidecars/src/resizer/decide-resize-step.test.ts",
      test: "of a claim that is in use, which was said",
    },
  }),
  never({
    name: "decide-attach-never-others-some-other-other-node-name-node-name",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: "if (others.some((other) => other.nodeName === nodeName)) {",
    condition: "others.some((other) => other.nodeName === nodeName)",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "the other form is detached first",
    },
  }),
  never({
    name: "decide-attach-never-is-pending",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: 'if (isPending) return wait("an operation of the disk is under way");',
    condition: "isPending",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "A7 attach: an operation is pending",
    },
  }),
  never({
    name: "decide-attach-never-demand-has-pending-pods",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: 'if (demand.hasPendingPods) return wait("its pods are not decided");',
    condition: "demand.hasPendingPods",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "its pod is not decided as it is now",
    },
  }),
  never({
    name: "decide-attach-never-demand-retry-at-ms-observed-now-ms",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: 'if (demand.retryAtMs > observed.nowMs) return wait("back-off", demand.retryAtMs - observed.nowMs);',
    condition: "demand.retryAtMs > observed.nowMs",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "a failed attach waits",
    },
  }),
  never({
    name: "decide-attach-never-refusal-undefined",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: "if (refusal !== undefined) return refusal;",
    condition: "refusal !== undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "C2: uncertain elsewhere, and not used by the cache: the node is asked",
    },
  }),
  never({
    name: "decide-claim-never-contention-undefined",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (contention !== undefined) return decideContention(contention);",
    condition: "contention !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "unassigned, and not ours",
    },
  }),
  never({
    name: "decide-attach-never-unwritten-undefined",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: "if (unwritten !== undefined) return wait(",
    condition: "unwritten !== undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "C2: uncertain elsewhere, and the node could still mount it by its list",
    },
  }),
  never({
    name: "decide-claim-never-observed-needs-live-volume",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (observed.needsLiveVolume) return { step: "readVolume" };',
    condition: "observed.needsLiveVolume",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "the volume of an earlier process may be stored",
    },
  }),
  never({
    name: "decide-attach-never-is-multi-attach-reported",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: "if (isMultiAttachReported) return wait(",
    condition: "isMultiAttachReported",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "C2: and is looked at again, since no event of the disk says that it is gone",
    },
  }),
  never({
    name: "decide-attach-never-unlisted-why-demand-is-wait-reported",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: 'if (unlisted.why === "" || demand.isWaitReported) {',
    condition: 'unlisted.why === "" || demand.isWaitReported',
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "0019: the provider is being asked",
    },
  }),
  never({
    name: "decide-claim-never-prepared-undefined",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (prepared !== undefined) return { step: "account", prepared, isProvisioned: false };',
    condition: "prepared !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "an object stands for it",
    },
  }),
  never({
    name: "decide-attach-never-is-compat",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: 'if (isCompat) return { step: "attachInTree", ...on };',
    condition: "isCompat",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "compat does not ask",
    },
  }),
  never({
    name: "decide-claim-never-storage-class-undefined",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (storageClass === undefined) {",
    condition: "storageClass === undefined",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "its class is gone",
    },
  }),
  never({
    name: "decide-attach-never-has-changed-over",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: "if (hasChangedOver) return refuse(",
    condition: "hasChangedOver",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "0019: the node has changed over",
    },
  }),
  never({
    name: "decide-csi-node-step-never-change-kind-remove-driver",
    file: "packages/volumes/src/node/csi-node/decide-csi-node-step.ts",
    find: 'if (change.kind === "removeDriver") return { step: "settle" };',
    condition: 'change.kind === "removeDriver"',
    caughtBy: {
      file: "packages/volumes/src/node/csi-node/decide-csi-node-step.test.ts",
      test: "that removes a driver does nothing",
    },
  }),
  never({
    name: "decide-csi-node-step-never-node-undefined",
    file: "packages/volumes/src/node/csi-node/decide-csi-node-step.ts",
    find: 'if (node === undefined) return { step: "waitForNode" };',
    condition: "node === undefined",
    caughtBy: {
      file: "packages/volumes/src/node/csi-node/decide-csi-node-step.test.ts",
      test: "waits for the Node",
    },
  }),
  never({
    name: "resize-goal-never-infeasible-undefined-infeasible-request-size-now",
    file: "packages/sidecars/src/resizer/resize-goal.ts",
    find: "if (infeasible !== undefined && infeasible.request === size && nowMs < infeasible.untilMs) {",
    condition: "infeasible !== undefined && infeasible.request === size && nowMs < infeasible.untilMs",
    caughtBy: {
      file: "packages/sidecars/src/resizer/decide-resize-step.test.ts",
      test: "of a claim that is impossible for now",
    },
  }),
  never({
    name: "decide-detach-never-attachment-is-wanted",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-detach.ts",
    find: "if (attachment.isWanted) return keep(attachment, isPending);",
    condition: "attachment.isWanted",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "wanted and listed",
    },
  }),
  never({
    name: "decide-detach-never-is-pending",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-detach.ts",
    find: 'if (isPending) return wait("an operation of the disk is under way");',
    condition: "isPending",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "A7 detach 1: an operation is pending",
    },
  }),
  never({
    name: "decide-csi-node-step-never-existing-undefined-same-entry-existing-entry",
    file: "packages/volumes/src/node/csi-node/decide-csi-node-step.ts",
    find: "if (existing !== undefined && sameEntry(existing, entry)) return node;",
    condition: "existing !== undefined && sameEntry(existing, entry)",
    caughtBy: {
      file: "packages/volumes/src/node/csi-node/decide-csi-node-step.test.ts",
      test: "leaves an equal entry",
    },
  }),
  never({
    name: "decide-snapshot-never-status-creation-time-undefined-work-is-creation",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: 'if (status.creationTime !== undefined && !work.isCreationReported) return { step: "reportCreated" };',
    condition: "status.creationTime !== undefined && !work.isCreationReported",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.test.ts",
      test: "its status is stored",
    },
  }),
  never({
    name: "decide-detach-never-attachment-is-asked",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-detach.ts",
    find: 'if (!attachment.isAsked) return { step: "forgetIntent", ...on };',
    condition: "!attachment.isAsked",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "an intent whose pod is gone was asked of no provider",
    },
  }),
  never({
    name: "decide-csi-node-step-never-drivers-length-drivers-of-node-length",
    file: "packages/volumes/src/node/csi-node/decide-csi-node-step.ts",
    find: "if (drivers.length === driversOf(node).length) return node;",
    condition: "drivers.length === driversOf(node).length",
    caughtBy: {
      file: "packages/volumes/src/node/csi-node/decide-csi-node-step.test.ts",
      test: "leaves drivers without the one to remove",
    },
  }),
  never({
    name: "decide-claim-never-attempt-undefined-work-is-begin-reported",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: 'if (attempt === undefined && !work.isBeginReported) return { step: "reportBegin" };',
    condition: "attempt === undefined && !work.isBeginReported",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "it was, when the intent was stored",
    },
  }),
  never({
    name: "decide-snapshot-never-group-undefined-work-group-on-server-undefined",
    file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.ts",
    find: 'if (group !== undefined && work.groupOnServer === undefined) return { step: "readGroup", ...group };',
    condition: "group !== undefined && work.groupOnServer === undefined",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/snapshots/decide-snapshot.test.ts",
      test: "deleted, of a group that the cache has lost",
    },
  }),
  never({
    name: "decide-detach-never-attachment-has-pending-pods",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-detach.ts",
    find: "if (attachment.hasPendingPods) return wait(",
    condition: "attachment.hasPendingPods",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "A2: pods of the node are not decided",
    },
  }),
  never({
    name: "decide-leftover-step-never-is-known-again",
    file: "packages/volumes/src/node/volume-manager/leftovers/decide-leftover-step.ts",
    find: 'if (isKnownAgain) return { step: "forget" };',
    condition: "isKnownAgain",
    caughtBy: {
      file: "packages/volumes/src/node/volume-manager/leftovers/decide-leftover-step.test.ts",
      test: "a directory that was not understood belongs to the volume that is mounted there again",
    },
  }),
  never({
    name: "decide-leftover-step-never-may-unmount",
    file: "packages/volumes/src/node/volume-manager/leftovers/decide-leftover-step.ts",
    find: 'if (!mayUnmount) return { step: "settle" };',
    condition: "!mayUnmount",
    caughtBy: {
      file: "packages/volumes/src/node/volume-manager/leftovers/decide-leftover-step.test.ts",
      test: "a directory that was not understood stays while a pod may use it",
    },
  }),
  never({
    name: "decide-pod-step-never-may-begin",
    file: "packages/volumes/src/node/volume-manager/pods/decide-pod-step.ts",
    find: 'if (!mayBegin) return { step: "awaitStart" };',
    condition: "!mayBegin",
    caughtBy: {
      file: "packages/volumes/src/node/volume-manager/pods/decide-pod-step.test.ts",
      test: "nothing is decided before all pods are known",
    },
  }),
  never({
    name: "decide-pod-step-never-known-undefined-has-volumes",
    file: "packages/volumes/src/node/volume-manager/pods/decide-pod-step.ts",
    find: 'if (known === undefined && !hasVolumes) return { step: "forget" };',
    condition: "known === undefined && !hasVolumes",
    caughtBy: {
      file: "packages/volumes/src/node/volume-manager/pods/decide-pod-step.test.ts",
      test: "one that is gone with its volumes is forgotten",
    },
  }),
  never({
    name: "decide-bound-content-never-invalid-undefined",
    file: "packages/sidecars/src/snapshot-controller/contents/decide-bound-content.ts",
    find: 'if (invalid !== undefined) return { step: "reportInvalid", ...invalid };',
    condition: "invalid !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/contents/decide-bound-content.test.ts",
      test: "with a wrong source",
    },
  }),
  never({
    name: "decide-detach-never-retry-at-ms-observed-now-ms",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-detach.ts",
    find: 'if (retryAtMs > observed.nowMs) return wait("back-off", retryAtMs - observed.nowMs);',
    condition: "retryAtMs > observed.nowMs",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "a failed detach waits",
    },
  }),
  never({
    name: "decide-bound-content-never-is-bound",
    file: "packages/sidecars/src/snapshot-controller/contents/decide-bound-content.ts",
    find: 'if (!isBound) return { step: "settle" };',
    condition: "!isBound",
    caughtBy: {
      file: "packages/sidecars/src/snapshot-controller/contents/decide-bound-content.test.ts",
      test: "not bound yet",
    },
  }),
  never({
    name: "decide-pod-step-never-is-over",
    file: "packages/volumes/src/node/volume-manager/pods/decide-pod-step.ts",
    find: 'if (isOver) return { step: "settle" };',
    condition: "isOver",
    caughtBy: {
      file: "packages/volumes/src/node/volume-manager/pods/decide-pod-step.test.ts",
      test: "once",
    },
  }),
  never({
    name: "decide-detach-never-attachment-detach-requested-at-ms-undefined",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-detach.ts",
    find: 'if (attachment.detachRequestedAtMs !== undefined) return { step: "keep", ...on };',
    condition: "attachment.detachRequestedAtMs !== undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "wanted again before its detach began",
    },
  }),
  never({
    name: "decide-detach-never-is-pending-4",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-detach.ts",
    find: "if (isPending) return undefined;",
    condition: "isPending",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "wanted again while its detach is under way",
    },
  }),
  never({
    name: "decide-volume-step-never-has-new-phase-true-reports-0",
    file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.ts",
    find: 'if (hasNewPhase !== true || reports > 0) return { step: "settle" };',
    condition: "hasNewPhase !== true || reports > 0",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/decide-volume-step.test.ts",
      test: "once",
    },
  }),
  never({
    name: "decide-pod-step-never-step-step-resolve-step-step-adopt",
    file: "packages/volumes/src/node/volume-manager/pods/decide-pod-step.ts",
    find: 'if (step?.step === "resolve" || step?.step === "adopt") return step;',
    condition: 'step?.step === "resolve" || step?.step === "adopt"',
    caughtBy: {
      file: "packages/volumes/src/node/volume-manager/pods/decide-pod-step.test.ts",
      test: "what containers of an ended pod use is resolved after a restart",
    },
  }),
  never({
    name: "decide-claim-never-work-removal-is-stored-true",
    file: "packages/sidecars/src/provisioner/claims/decide-claim.ts",
    find: "if (work.removal?.isStored !== true) return account;",
    condition: "work.removal?.isStored !== true",
    caughtBy: {
      file: "packages/sidecars/src/provisioner/claims/decide-claim.test.ts",
      test: "so that ours is deleted",
    },
  }),
  never({
    name: "decide-detach-never-attachment-is-detach-tried",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-detach.ts",
    find: 'if (attachment.isDetachTried) return { step: "doubt", ...on };',
    condition: "attachment.isDetachTried",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disks/decide-disk.test.ts",
      test: "wanted again after a detach was tried",
    },
  }),
  never({
    name: "decide-pod-step-never-is-resolved",
    file: "packages/volumes/src/node/volume-manager/pods/decide-pod-step.ts",
    find: 'if (isResolved) return { step: "settle" };',
    condition: "isResolved",
    caughtBy: {
      file: "packages/volumes/src/node/volume-manager/pods/decide-pod-step.test.ts",
      test: "a resolved pod is left alone",
    },
  }),
];
