/** Which way volumes go, as the volume manager reads it; the node migration decides. Source: docs/behaviour/node-agent.md 2.4. */
import type { MigratedPluginManager } from "../../csimigration/migrated-plugin-manager.ts";

/** The way of a plugin's volumes on a node. */
export type VolumePath = "in-tree" | "csi";

/** The ways as the volume manager sees them. */
export interface VolumePaths {
  /** Decides and translates by the ways that are in force, not by those wanted. */
  readonly manager: MigratedPluginManager;
  /** True once the annotation is in place; before that no volume can be decided on. */
  readonly areDecided: boolean;
  /** False while the plugin is changing over: its volumes must wait. */
  isDecided(inTreeName: string | undefined): boolean;
}
