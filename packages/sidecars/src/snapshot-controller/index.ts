export {
  type SnapshotControllerEnv,
  type SnapshotControllerOptions,
  startSnapshotController,
} from "./snapshot-controller.ts";
