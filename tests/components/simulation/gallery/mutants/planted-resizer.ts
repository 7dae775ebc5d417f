/** Conditions taken out of decisions, one at a time. */
import { type Mutant, never } from "../mutant.ts";

export const resizer: readonly Mutant[] = [
  never({
    name: "decide-resize-step-never-attempt-in-use-rules-follows-pods",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: 'if (attempt.inUse && rules.followsPods && !progress.arePodsFollowed) return { step: "followPods" };',
    condition: "attempt.inUse && rules.followsPods && !progress.arePodsFollowed",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resizer.test.ts",
      test: "is tried again once its pods are gone",
    },
  }),
  never({
    name: "decide-resize-step-never-must-store-intent-goal",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: "if (!mustStoreIntent(observed, goal)) return decideExpansion(observed, size);",
    condition: "!mustStoreIntent(observed, goal)",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resizer.test.ts",
      test: "keeps to the classic sequence where the server does not keep the size that is under way",
    },
  }),
  never({
    name: "decide-resize-step-never-progress-refusal",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: "if (progress.refusal !== undefined) return decideRefusal(observed, size, progress.refusal);",
    condition: "progress.refusal !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resizer.test.ts",
      test: "is reported, and retried with growing delays",
    },
  }),
  never({
    name: "decide-resize-step-never-progress-grown",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: "if (progress.grown !== undefined) return decideStoring(observed, progress.grown);",
    condition: "progress.grown !== undefined",
    caughtBy: { file: "tests/components/sidecars/faults.test.ts", test: "the work of the resizer ends well" },
  }),
  never({
    name: "decide-resize-step-never-progress-is-resizing-emitted",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: 'if (!progress.isResizingEmitted) return { step: "emitResizing" };',
    condition: "!progress.isResizingEmitted",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resizer.test.ts",
      test: "expands in three writes and leaves the file system to the kubelet",
    },
  }),
  never({
    name: "decide-resize-step-never-trivial",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: 'if (observed.trivial) return { step: "leaveToNode", size };',
    condition: "observed.trivial",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resizer.test.ts",
      test: "leaves it to the kubelet where just nodes expand",
    },
  }),
  never({
    name: "decide-resize-step-never-change",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: 'if (change !== undefined) return { step: "storeCapacity", change };',
    condition: "change !== undefined",
    caughtBy: { file: "tests/components/sidecars/faults.test.ts", test: "the work of the resizer ends well" },
  }),
  never({
    name: "decide-resize-step-never-grown-node-expansion-required",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: "if (grown.nodeExpansionRequired) {",
    condition: "grown.nodeExpansionRequired",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resizer.test.ts",
      test: "expands in three writes and leaves the file system to the kubelet",
    },
  }),
  never({
    name: "decide-resize-step-never-progress-is-reported",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: 'if (progress.isReported) return { step: "emitNodePending" };',
    condition: "progress.isReported",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resizer.test.ts",
      test: "expands in three writes and leaves the file system to the kubelet",
    },
  }),
  never({
    name: "decide-resize-step-never-progress-is-reported-2",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: 'if (progress.isReported) return { step: "emitFinished" };',
    condition: "progress.isReported",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resizer.test.ts",
      test: "finishes by itself where the node has nothing to do, and says so to kubelets",
    },
  }),
  never({
    name: "decide-resize-step-never-refusal-is-remembered",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: 'if (!refusal.isRemembered) return { step: "rememberRefusal", size, error };',
    condition: "!refusal.isRemembered",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resizer.test.ts",
      test: "with a sure answer lets the user ask for less",
    },
  }),
  never({
    name: "decide-resize-step-never-refusal-is-emitted",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: 'if (!refusal.isEmitted) return { step: "emitRefused", message: text };',
    condition: "!refusal.isEmitted",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resizer.test.ts",
      test: "is reported, and retried with growing delays",
    },
  }),
  never({
    name: "decide-resize-step-never-patch",
    file: "packages/sidecars/src/resizer/decide-resize-step.ts",
    find: 'if (patch !== undefined) return { step: "reportRefused", patch };',
    condition: "patch !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resizer.test.ts",
      test: "is reported, and retried with growing delays",
    },
  }),
  never({
    name: "resize-goal-never-is-bound-to-volume-claim-is",
    file: "packages/sidecars/src/resizer/resize-goal.ts",
    find: "if (!isBoundTo(volume, claim) || !isExpandedBy(driver, claim, volume)) return none;",
    condition: "!isBoundTo(volume, claim) || !isExpandedBy(driver, claim, volume)",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resizer.test.ts",
      test: "expands an in-tree volume once its claim names the driver, and not before",
    },
  }),
  never({
    name: "resize-goal-never-attempt-in-use-facts-is-in",
    file: "packages/sidecars/src/resizer/resize-goal.ts",
    find: 'if (attempt.inUse && facts.isInUse) return { kind: "inUse" };',
    condition: "attempt.inUse && facts.isInUse",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resizer.test.ts",
      test: "is tried again once its pods are gone",
    },
  }),
  never({
    name: "resize-goal-never-wants-no-more",
    file: "packages/sidecars/src/resizer/resize-goal.ts",
    find: 'if (!wantsMore(claim)) return hasOldSize(claim, volume) ? { kind: "forgetOldSize" } : none;',
    condition: "!wantsMore(claim)",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resize-goal.test.ts",
      test: "of a claim that has what it asks for",
    },
  }),
  never({
    name: "resize-goal-never-size-undefined",
    file: "packages/sidecars/src/resizer/resize-goal.ts",
    find: "if (size === undefined) return none;",
    condition: "size === undefined",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resize-goal.test.ts",
      test: "of a claim that waits for its node",
    },
  }),
  never({
    name: "resize-goal-never-not-bound",
    file: "packages/sidecars/src/resizer/resize-goal.ts",
    find: 'if (claim.status?.phase !== "Bound" || !claim.spec?.volumeName) return false;',
    condition: 'claim.status?.phase !== "Bound" || !claim.spec?.volumeName',
    caughtBy: {
      file: "packages/sidecars/src/resizer/resize-goal.test.ts",
      test: "has no goal while the claim is not bound",
    },
  }),
  never({
    name: "resize-goal-never-smaller-than-wanted",
    file: "packages/sidecars/src/resizer/resize-goal.ts",
    find: "if (isSmaller(wanted)) return wanted;",
    condition: "isSmaller(wanted)",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resize-goal.test.ts",
      test: "begins again when more is asked for meanwhile",
    },
  }),
  never({
    name: "resize-goal-never-allocated-is-more",
    file: "packages/sidecars/src/resizer/resize-goal.ts",
    find: "if (allocated !== undefined && quantity(allocated).compare(capacityOf(claim)) > 0) return allocated;",
    condition: "allocated !== undefined && quantity(allocated).compare(capacityOf(claim)) > 0",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resize-goal.test.ts",
      test: "of a claim that was begun on a server that has since lost the state",
    },
  }),
  never({
    name: "resize-goal-never-without-old-size",
    file: "packages/sidecars/src/resizer/resize-goal.ts",
    find: "if (volume.metadata?.annotations?.[preResizeCapacityAnnotation] === undefined) return false;",
    condition: "volume.metadata?.annotations?.[preResizeCapacityAnnotation] === undefined",
    caughtBy: {
      file: "packages/sidecars/src/resizer/resize-goal.test.ts",
      test: "of a claim that has what it asks for",
    },
  }),
];
