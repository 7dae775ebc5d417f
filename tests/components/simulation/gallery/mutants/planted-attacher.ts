/** Conditions taken out of decisions, one at a time. */
import { type Mutant, never } from "../mutant.ts";

export const attacher: readonly Mutant[] = [
  never({
    name: "decide-attach-step-never-progress-is-reported",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: 'if (progress.isReported) return { step: "settle" };',
    condition: "progress.isReported",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the attacher ends well",
    },
  }),
  never({
    name: "decide-attach-step-never-goal-none",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: 'if (goal === "none") return { step: "settle" };',
    condition: 'goal === "none"',
    caughtBy: {
      file: "packages/sidecars/src/attacher/attacher.test.ts",
      test: "never acts on a cache that is older than what it wrote",
    },
  }),
  never({
    name: "decide-attach-step-never-progress-failure-is-reported",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: 'if (progress.failure?.isReported) return { step: "fail", error: progress.failure.error };',
    condition: "progress.failure?.isReported",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the attacher ends well",
    },
  }),
  never({
    name: "decide-attach-step-never-progress-failure-is-emitted",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: 'if (progress.failure?.isEmitted) return { step: "reportError", goal, error: progress.failure.error };',
    condition: "progress.failure?.isEmitted",
    caughtBy: {
      file: "packages/sidecars/src/attacher/attacher.test.ts",
      test: "attaches nothing without its secret, and says which is missing",
    },
  }),
  never({
    name: "decide-attach-step-never-progress-failure",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: 'if (progress.failure !== undefined) return { step: "emitError", goal, error: progress.failure.error };',
    condition: "progress.failure !== undefined",
    caughtBy: {
      file: "packages/sidecars/src/attacher/attacher.test.ts",
      test: "attaches nothing without its secret, and says which is missing",
    },
  }),
  never({
    name: "decide-attach-step-never-publish-context",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: 'if (publishContext !== undefined) return { step: "reportAttached", publishContext };',
    condition: "publishContext !== undefined",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the attacher ends well",
    },
  }),
  never({
    name: "decide-attach-step-never-holding",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: "if (holding !== undefined) return holding;",
    condition: "holding !== undefined",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the attacher ends well",
    },
  }),
  never({
    name: "decide-attach-step-never-step-in-node",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: `if ("step" in node) return node;
  const { finalizers = [], annotations } = attachment.metadata;`,
    condition: '"step" in node',
    caughtBy: {
      file: "packages/sidecars/src/attacher/attacher.test.ts",
      test: "hands over the secret that the volume names, as it is at the time of each call",
    },
  }),
  never({
    name: "decide-attach-step-never-is-intent-stored",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: 'if (!isIntentStored) return { step: "storeIntent", nodeId: node.nodeId };',
    condition: "!isIntentStored",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the attacher ends well",
    },
  }),
  never({
    name: "decide-attach-step-never-inline-in-source",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: 'if ("inline" in source) return undefined;',
    condition: '"inline" in source',
    caughtBy: {
      file: "packages/sidecars/src/attacher/attacher.test.ts",
      test: "attaches an inline volume without any PersistentVolume",
    },
  }),
  never({
    name: "decide-attach-step-never-progress-is-unpublished",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: "if (progress.isUnpublished) {",
    condition: "progress.isUnpublished",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the attacher ends well",
    },
  }),
  never({
    name: "decide-attach-step-never-finalizers-includes-rules-finalizer",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: 'if (finalizers.includes(rules.finalizer)) return { step: "removeFinalizer" };',
    condition: "finalizers.includes(rules.finalizer)",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the attacher ends well",
    },
  }),
  never({
    name: "decide-attach-step-never-step-in-node-2",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: `if ("step" in node) return node;
  const parameters = { volumeId: volume.csi.volumeHandle, nodeId: node.nodeId };`,
    condition: '"step" in node',
    caughtBy: {
      file: "packages/sidecars/src/attacher/attacher.test.ts",
      test: "hands over the secret that the volume names, as it is at the time of each call",
    },
  }),
  never({
    name: "decide-attach-step-never-reference-progress-secrets",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: 'if (reference !== undefined && progress.secrets === undefined) return { step: "readSecret", reference };',
    condition: "reference !== undefined && progress.secrets === undefined",
    caughtBy: {
      file: "packages/sidecars/src/attacher/attacher.test.ts",
      test: "hands over the secret that the volume names, as it is at the time of each call",
    },
  }),
  never({
    name: "decide-attach-step-never-node-id",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: "if (nodeId !== undefined) return { nodeId };",
    condition: "nodeId !== undefined",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the attacher ends well",
    },
  }),
  never({
    name: "decide-attach-step-never-may-ask",
    file: "packages/sidecars/src/attacher/decide-attach-step.ts",
    find: 'if (mayAsk) return { step: "readAnnouncedNodeId", nodeName };',
    condition: "mayAsk",
    caughtBy: {
      file: "packages/sidecars/src/attacher/attacher.test.ts",
      test: "attaches to a node without a CSINode by the id that its Node announces",
    },
  }),
  never({
    name: "decide-volume-finalizer-never-is-attached-has-stale-finalizer-volume",
    file: "packages/sidecars/src/attacher/decide-volume-finalizer.ts",
    find: 'if (isAttached || !hasStaleFinalizer(volume, driverName)) return { step: "settle" };',
    condition: "isAttached || !hasStaleFinalizer(volume, driverName)",
    caughtBy: {
      file: "tests/components/sidecars/faults.test.ts",
      test: "the work of the attacher ends well",
    },
  }),
];
