/** Conditions taken out of decisions, one at a time. */
import { type Mutant, never } from "../mutant.ts";

export const node: readonly Mutant[] = [
  never({
    name: "decide-node-migration-step-never-failure",
    file: "packages/volumes/src/node/migration/decide-node-migration-step.ts",
    find: 'if (failure !== undefined) return { step: "recordFailure", error: failure.error };',
    condition: "failure !== undefined",
    caughtBy: {
      file: "packages/volumes/src/node/node-volumes.test.ts",
      test: "is not Ready before the annotation is in place, also when the API server is down at start",
    },
  }),
  never({
    name: "decide-node-migration-step-never-step-in-verdict",
    file: "packages/volumes/src/node/migration/decide-node-migration-step.ts",
    find: 'if ("step" in verdict) return verdict;',
    condition: '"step" in verdict',
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "take effect at once on a node without volumes",
    },
  }),
  never({
    name: "decide-node-migration-step-never-is-initialised-current-is-free",
    file: "packages/volumes/src/node/migration/decide-node-migration-step.ts",
    find: "if (isInitialised && current !== undefined && !isFree) return { inTreeName, path: current, heldBy };",
    condition: "isInitialised && current !== undefined && !isFree",
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "are held back while a volume is mounted, reported, and take effect when the last is gone",
    },
  }),
  never({
    name: "decide-node-migration-step-never-is-suspended",
    file: "packages/volumes/src/node/migration/decide-node-migration-step.ts",
    find: 'if (!isSuspended) return { step: "suspend", inTreeName };',
    condition: "!isSuspended",
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "take a pod along that was waiting for its volume, once nothing is attached",
    },
  }),
  never({
    name: "decide-node-migration-step-never-left",
    file: "packages/volumes/src/node/migration/decide-node-migration-step.ts",
    find: 'if (left === undefined) return { step: "look", inTreeName };',
    condition: "left === undefined",
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "take effect at once on a node without volumes",
    },
  }),
  never({
    name: "decide-node-migration-step-never-verdict-kind-held",
    file: "packages/volumes/src/node/migration/decide-node-migration-step.ts",
    find: 'if (verdict.kind === "held") return { inTreeName, path: verdict.path, heldBy: verdict.volumes };',
    condition: 'verdict.kind === "held"',
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "are held back while a volume is mounted, reported, and take effect when the last is gone",
    },
  }),
  never({
    name: "decide-node-migration-step-never-wanted-csi-left-is-announced",
    file: "packages/volumes/src/node/migration/decide-node-migration-step.ts",
    find: 'if (wanted === "csi" && !left.isAnnounced) return { step: "announce", inTreeName };',
    condition: 'wanted === "csi" && !left.isAnnounced',
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "finds what the controller has recorded since the agent looked: the node stays as it is",
    },
  }),
  never({
    name: "decide-node-migration-step-never-written-join-migrated-join",
    file: "packages/volumes/src/node/migration/decide-node-migration-step.ts",
    find: 'if (written?.join() !== migrated.join()) return { step: "writeAnnotation", migrated };',
    condition: "written?.join() !== migrated.join()",
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "take effect at once on a node without volumes",
    },
  }),
  never({
    name: "decide-node-migration-step-never-may-be-announced",
    file: "packages/volumes/src/node/migration/decide-node-migration-step.ts",
    find: 'if (mayBeAnnounced) return { step: "endAnnouncement" };',
    condition: "mayBeAnnounced",
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "finds what the controller has recorded since the agent looked: the node stays as it is",
    },
  }),
  never({
    name: "observe-volumes-left-never-name-starts-with-csi-prefix",
    file: "packages/volumes/src/node/migration/observe-volumes-left.ts",
    find: "if (!name.startsWith(csiPrefix)) continue;",
    condition: "!name.startsWith(csiPrefix)",
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "are held back while a volume is mounted, reported, and take effect when the last is gone",
    },
  }),
  never({
    name: "observe-volumes-left-never-there",
    file: "packages/volumes/src/node/migration/observe-volumes-left.ts",
    find: "if (!there && attachment === undefined) {",
    condition: "!there && attachment === undefined",
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "are held back while a volume is mounted, reported, and take effect when the last is gone",
    },
  }),
  never({
    name: "observe-volumes-left-never-await-is-native-csi-volume-env",
    file: "packages/volumes/src/node/migration/observe-volumes-left.ts",
    find: "if (!(await isNativeCsiVolume(env, pvName, signal))) csi.push(name);",
    condition: "!(await isNativeCsiVolume(env, pvName, signal))",
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "are held back while a volume is mounted, reported, and take effect when the last is gone",
    },
  }),
  never({
    name: "observe-volumes-left-never-data-data-unreadable-data-driver-name",
    file: "packages/volumes/src/node/migration/observe-volumes-left.ts",
    find: 'if (data === undefined || data === "unreadable" || data.driverName !== driverName) continue;',
    condition: 'data === undefined || data === "unreadable" || data.driverName !== driverName',
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "are held back through a crash, and when the CSINode is lost",
    },
  }),
  never({
    name: "decide-csi-node-step-never-stored",
    file: "packages/volumes/src/node/csi-node/decide-csi-node-step.ts",
    find: "if (stored === undefined) {",
    condition: "stored === undefined",
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "take effect at once on a node without volumes",
    },
  }),
  never({
    name: "decide-pod-step-never-has-ended",
    file: "packages/volumes/src/node/volume-manager/pods/decide-pod-step.ts",
    find: "if (hasEnded) return stepOfEndedPod(observed);",
    condition: "hasEnded",
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "are held back while a volume is mounted, reported, and take effect when the last is gone",
    },
  }),
  never({
    name: "decide-pod-step-never-has-containers",
    file: "packages/volumes/src/node/volume-manager/pods/decide-pod-step.ts",
    find: 'if (hasContainers === undefined) return { step: "askRuntime" };',
    condition: "hasContainers === undefined",
    caughtBy: {
      file: "packages/volumes/src/node/uncertain-mounts.test.ts",
      test: "keeps its mounts through a restart while its containers run",
    },
  }),
  never({
    name: "decide-pod-step-never-has-containers-2",
    file: "packages/volumes/src/node/volume-manager/pods/decide-pod-step.ts",
    find: 'if (!hasContainers) return { step: "release" };',
    condition: "!hasContainers",
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "are held back while a volume is mounted, reported, and take effect when the last is gone",
    },
  }),
];
