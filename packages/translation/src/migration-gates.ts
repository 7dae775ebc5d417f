/**
 * Which feature gates carry which plugin across. The global gate `CSIMigration` must be on as well; without
 * it none of these has an effect.
 */

import type { InTreePlugin } from "./in-tree-plugin.ts";
import { awsEbs } from "./plugins/aws-ebs.ts";
import { azureDisk } from "./plugins/azure-disk.ts";
import { azureFile } from "./plugins/azure-file.ts";
import { cinder } from "./plugins/cinder.ts";
import { gcePd } from "./plugins/gce-pd.ts";
import { portworx } from "./plugins/portworx.ts";
import { rbd } from "./plugins/rbd.ts";
import { vsphere } from "./plugins/vsphere.ts";

/** The gates of one plugin and the names around its crossing. */
export interface MigrationGates {
  /** Name of the in-tree plugin. */
  readonly inTreeName: string;
  /** Name of the CSI driver that takes over. */
  readonly driverName: string;
  /** Redirects the plugin's operations to CSI. */
  readonly gate: string;
  /** Takes the in-tree plugin away: the design's `CSIMigrationInTreeOff`, for one plugin. */
  readonly completeGate: string;
  /** The driver's node label for zones; absent when it has none. */
  readonly topologyKey?: string;
}

/** The master switch of the migration. */
export const globalMigrationGate = "CSIMigration";

function gatesOf(plugin: InTreePlugin, gate: string): MigrationGates {
  const { inTreeName, driverName, topologyKey } = plugin;
  const gates = { inTreeName, driverName, gate, completeGate: `${gate}Complete` };
  return topologyKey === undefined ? gates : { ...gates, topologyKey };
}

/** The gates of every plugin that can cross. */
export const migrationGates: readonly MigrationGates[] = [
  gatesOf(awsEbs, "CSIMigrationAWS"),
  gatesOf(gcePd, "CSIMigrationGCE"),
  gatesOf(azureDisk, "CSIMigrationAzureDisk"),
  gatesOf(azureFile, "CSIMigrationAzureFile"),
  gatesOf(cinder, "CSIMigrationOpenStack"),
  gatesOf(vsphere, "CSIMigrationvSphere"),
  gatesOf(portworx, "CSIMigrationPortworx"),
  gatesOf(rbd, "CSIMigrationRBD"),
];
