/** Conditions taken out of decisions, one at a time. */
import { type Mutant, never } from "../mutant.ts";

export const claims: readonly Mutant[] = [
  never({
    name: "decide-expand-step-never-failure",
    file: "packages/volumes/src/controllers/expand/decide-expand-step.ts",
    find: "if (failure !== undefined) return afterFailure(observed, failure.error);",
    condition: "failure !== undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/expand/expand-controller.test.ts",
      test: "in-tree of a device that takes too long is reported, and tried again",
    },
  }),
  never({
    name: "decide-expand-step-never-is-marked-plugin-plugin-name-resizing",
    file: "packages/volumes/src/controllers/expand/decide-expand-step.ts",
    find: "if (!isMarked(observed, plugin.pluginName, resizing)) {",
    condition: "!isMarked(observed, plugin.pluginName, resizing)",
    caughtBy: {
      file: "packages/volumes/src/controllers/expand/expand-controller.test.ts",
      test: "in-tree grows the disk, then waits for the file system",
    },
  }),
  never({
    name: "decide-expand-step-never-grown-to-from-compare-to-0",
    file: "packages/volumes/src/controllers/expand/decide-expand-step.ts",
    find: 'if (grownTo === undefined && from.compare(to) < 0) return { step: "expandDevice", from, to };',
    condition: "grownTo === undefined && from.compare(to) < 0",
    caughtBy: {
      file: "packages/volumes/src/controllers/expand/expand-controller.test.ts",
      test: "in-tree grows the disk, then waits for the file system",
    },
  }),
  never({
    name: "decide-expand-step-never-grown-to-from-compare-parse-quantity",
    file: "packages/volumes/src/controllers/expand/decide-expand-step.ts",
    find: "if (grownTo !== undefined && from.compare(parseQuantity(grownTo)) !== 0) {",
    condition: "grownTo !== undefined && from.compare(parseQuantity(grownTo)) !== 0",
    caughtBy: {
      file: "packages/volumes/src/controllers/expand/expand-controller.test.ts",
      test: "in-tree grows the disk, then waits for the file system",
    },
  }),
  never({
    name: "decide-ephemeral-step-never-is-deleting-pod-is-pod-terminal",
    file: "packages/volumes/src/controllers/ephemeral/decide-ephemeral-step.ts",
    find: 'if (isDeleting(pod) || isPodTerminal(pod)) return { step: "settle" };',
    condition: "isDeleting(pod) || isPodTerminal(pod)",
    caughtBy: {
      file: "packages/volumes/src/controllers/ephemeral/ephemeral-volume-controller.test.ts",
      test: "a pod being deleted",
    },
  }),
  never({
    name: "decide-ephemeral-step-never-is-claim-for-pod-claim-pod",
    file: "packages/volumes/src/controllers/ephemeral/decide-ephemeral-step.ts",
    find: "if (!isClaimForPod(claim, pod) && !reported.includes(volume.name)) {",
    condition: "!isClaimForPod(claim, pod) && !reported.includes(volume.name)",
    caughtBy: {
      file: "packages/volumes/src/controllers/ephemeral/ephemeral-volume-controller.test.ts",
      test: "a claim that the pod does not own is reported once and never used, until it goes",
    },
  }),
  never({
    name: "decide-claim-protection-never-is-deleting-claim",
    file: "packages/volumes/src/controllers/protection/decide-claim-protection.ts",
    find: 'if (!isDeleting(claim)) return { step: isProtected ? "settle" : "addFinalizer" };',
    condition: "!isDeleting(claim)",
    caughtBy: {
      file: "packages/volumes/src/controllers/protection/protection-controllers.test.ts",
      test: "keeps a claim for a pod that only the API server shows",
    },
  }),
  never({
    name: "decide-claim-protection-never-is-used-live",
    file: "packages/volumes/src/controllers/protection/decide-claim-protection.ts",
    find: 'if (isUsedLive === undefined) return { step: "listPods" };',
    condition: "isUsedLive === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/protection/protection-controllers.test.ts",
      test: "keeps a claim for a pod that only the API server shows",
    },
  }),
  never({
    name: "decide-claim-protection-never-is-used-live-2",
    file: "packages/volumes/src/controllers/protection/decide-claim-protection.ts",
    find: 'if (isUsedLive) return { step: "waitForCache" };',
    condition: "isUsedLive",
    caughtBy: {
      file: "packages/volumes/src/controllers/protection/protection-controllers.test.ts",
      test: "keeps a claim for a pod that only the API server shows",
    },
  }),
  never({
    name: "decide-claim-protection-never-live",
    file: "packages/volumes/src/controllers/protection/decide-claim-protection.ts",
    find: 'if (live === undefined) return { step: "readClaim" };',
    condition: "live === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/protection/protection-controllers.test.ts",
      test: "keeps a claim while a scheduled pod uses it, and its volume while it is bound",
    },
  }),
  never({
    name: "decide-volume-protection-never-live",
    file: "packages/volumes/src/controllers/protection/decide-volume-protection.ts",
    find: 'if (live === undefined) return { step: "readVolume" };',
    condition: "live === undefined",
    caughtBy: {
      file: "packages/volumes/src/controllers/protection/protection-controllers.test.ts",
      test: "keeps a claim while a scheduled pod uses it, and its volume while it is bound",
    },
  }),
];
