/** Every operation of the swarm, by the name of its counter. A kind more is a name in `swarm-plan.ts` and an entry here. */
import type { OperationKind } from "../swarm-plan.ts";
import { claimDeleted } from "./claims.ts";
import { apiServerRestart, componentCrash, componentRestart, powerLoss, reboot } from "./components.ts";
import { conversion, inlineConversion } from "./conversions.ts";
import { driversRemoved, driverUpgraded, registrationLost } from "./drivers.ts";
import { claimGrown } from "./expansion.ts";
import { flexDriverChanged } from "./flexvolume.ts";
import { crossing, gateFlip } from "./gates.ts";
import { leaderPaused } from "./leaders.ts";
import { clockJump, nodePaused } from "./machine-time.ts";
import { nodeDeleted, nodeReplaced, outOfService } from "./node-objects.ts";
import type { Operation } from "./operators.ts";
import { drain, podDeleted, podForceDeleted, scale } from "./pods.ts";
import { restoredFromBackup } from "./restores.ts";
import { snapshotRestored } from "./snapshots.ts";
import { versionChange } from "./versions.ts";
import { zoneOutage } from "./zones.ts";

/** What each kind does. */
export const operationsByKind: Readonly<Record<OperationKind, Operation>> = {
  podDeleted,
  drain,
  scale,
  componentCrash,
  componentRestart,
  apiServerRestart,
  powerLoss,
  nodePaused,
  clockJump,
  nodeDeleted,
  nodeReplaced,
  outOfService,
  claimGrown,
  snapshotRestored,
  gateFlip,
  crossing,
  leaderPaused,
  zoneOutage,
  driversRemoved,
  registrationLost,
  versionChange,
  conversion,
  flexDriverChanged,
  reboot,
  inlineConversion,
  restoredFromBackup,
  podForceDeleted,
  claimDeleted,
  driverUpgraded,
};
