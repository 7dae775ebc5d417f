/** Conditions taken out of decisions, one at a time. */
import { type Mutant, never } from "../mutant.ts";

export const attachDetach: readonly Mutant[] = [
  never({
    name: "decide-attach-never-demand-is-detached-by-name",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: 'if (demand.isDetachedByName) return wait("its VolumeAttachment is being deleted");',
    condition: "demand.isDetachedByName",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/missing-volumes.test.ts",
      test: "a volume that returns while its VolumeAttachment is being deleted waits for the end of that",
    },
  }),
  never({
    name: "decide-attach-never-demand-elsewhere-by-name-length-0",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: "if (demand.elsewhereByName.length > 0 && !demand.isShared) {",
    condition: "demand.elsewhereByName.length > 0 && !demand.isShared",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/missing-volumes.test.ts",
      test: "a volume that returns for a pod on another node waits while the first node uses it",
    },
  }),
  never({
    name: "decide-attach-never-step",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: "if (step !== undefined) return step;",
    condition: "step !== undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/uncertain-volumes.test.ts",
      test: "before its detach has an effect leaves the disk to its successor, who ends the detach in-tree before CSI attaches",
    },
  }),
  never({
    name: "decide-attach-never-demand-is-csi",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: 'if (demand.isCsi) return { step: "createVolumeAttachment", nodeName, uniqueName };',
    condition: "demand.isCsi",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/data-risks.test.ts",
      test: "does not go to a second node while the first, where it is uncertain, may use it",
    },
  }),
  never({
    name: "decide-attach-never-unlisted-unlisted-has-volume",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: "if (unlisted === undefined || unlisted.hasVolumeAttachment) return undefined;",
    condition: "unlisted === undefined || unlisted.hasVolumeAttachment",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/data-risks.test.ts",
      test: "does not go to a second node while the first, where it is uncertain, may use it",
    },
  }),
  never({
    name: "decide-attach-never-present",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: 'if (present === undefined) return { step: "recordIntent", ...on };',
    condition: "present === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/data-risks.test.ts",
      test: "does not go to a second node while the first, whose record names it, uses it after a restart",
    },
  }),
  never({
    name: "decide-attach-never-live-live-node-name-node-name",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: `if (live === undefined || live.nodeName !== nodeName || live.uniqueName !== uniqueName) {
    return { step: "readBeforeAttach", ...on };`,
    condition: "live === undefined || live.nodeName !== nodeName || live.uniqueName !== uniqueName",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/data-risks.test.ts",
      test: "does not go to a second node while the first, whose record names it, uses it after a restart",
    },
  }),
  never({
    name: "decide-attach-never-refusal",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: 'if (refusal === undefined) return { step: "attachInTree", ...on };',
    condition: "refusal === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/data-risks.test.ts",
      test: "does not go to a second node while the first, whose record names it, uses it after a restart",
    },
  }),
  never({
    name: "decide-attach-never-volume",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-attach.ts",
    find: "if (volumeAttachment === undefined) return undefined;",
    condition: "volumeAttachment === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/data-risks.test.ts",
      test: "does not go to a second node while the first, whose record names it, uses it after a restart",
    },
  }),
  never({
    name: "decide-detach-never-disk-is-pending",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-detach.ts",
    find: 'if (disk !== undefined && !isPending) return { step: "identify", ...on, disk };',
    condition: "disk !== undefined && !isPending",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/disk-identity.test.ts",
      test: "two images of one name in two clusters of Ceph are two disks, also to the next controller",
    },
  }),
  never({
    name: "decide-detach-never-unknown",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-detach.ts",
    find: "if (attachment.unknown !== undefined) {",
    condition: "attachment.unknown !== undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/missing-volumes.test.ts",
      test: "a volume that returns under its pod keeps its VolumeAttachment, and is detached once when the pod goes",
    },
  }),
  never({
    name: "decide-detach-never-detach-requested-at-ms",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-detach.ts",
    find: 'if (detachRequestedAtMs === undefined) return { step: "requestDetach", ...on };',
    condition: "detachRequestedAtMs === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/attach-detach-controller.test.ts",
      test: "detaches by force after six minutes where that is switched on, without asking the node",
    },
  }),
  never({
    name: "decide-detach-never-node-is-in-use-true-force",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-detach.ts",
    find: "if (attachment.node?.isInUse === true && force === undefined) {",
    condition: "attachment.node?.isInUse === true && force === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/uncertain-volumes.test.ts",
      test: "keeps a volume that the provider says is not attached, until a detach has confirmed it",
    },
  }),
  never({
    name: "decide-detach-never-is-reported",
    file: "packages/volumes/src/controllers/attach-detach/disks/decide-detach.ts",
    find: 'if (attachment.isReported) return { step: "unlist", nodeName, uniqueName };',
    condition: "attachment.isReported",
    caughtBy: {
      file: "packages/volumes/src/controllers/attach-detach/data-risks.test.ts",
      test: "nothing is detached before the write that takes it off the node's list has succeeded",
    },
  }),
];
