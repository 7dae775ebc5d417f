/** What the demo proves, as it is written with `--json`. */

import type { PluginName } from "../layout/plugins.ts";

/** The demo's report. */
export interface DemoReport {
  /** Records that reached an acknowledgement file after fsync. */
  readonly acknowledgedWrites: number;
  /** Acknowledged records that a later reader or writer of the volume did not find. */
  readonly lostWrites: number;
  /** One entry a writer: those that share a volume have it in common. */
  readonly volumes: readonly {
    /** Short name of its plugin. */
    readonly plugin: PluginName;
    readonly pv: string;
    readonly inTreeHandle: string;
    readonly csiHandle: string;
    /** Nodes on which its pod ran, in order. */
    readonly nodes: readonly string[];
    readonly acknowledgedWrites: number;
  }[];
  readonly steps: readonly { readonly name: string; readonly ms: number }[];
  /** In-tree calls at the disk cloud: per node from its flip, everywhere from the last flip until the return begins. */
  readonly inTreeCallsAfterMigration: number;
  /** Calls of the driver in the same windows: without any, the count of the others would say nothing. */
  readonly csiCallsAfterMigration: number;
  /** Both counts, for each plugin that was carried. */
  readonly plugins: readonly {
    readonly plugin: PluginName;
    readonly inTreeCallsAfterMigration: number;
    readonly csiCallsAfterMigration: number;
    /**
     * Beside these, what a controller that another plugin's crossing has restarted asked the provider: what is attached. It
     * asks while a volume is not attached by CSI, and changes nothing.
     */
    readonly listingsOfRestarts: number;
  }[];
  /** Attachments without a pod at the end, in the API and at the disk cloud. */
  readonly strandedAttachments: number;
  readonly elapsedMs: number;
}

/** The report's verdict: true when nothing was lost, stranded or served by the wrong path. */
export function isProof(report: DemoReport): boolean {
  return (
    report.acknowledgedWrites > 0 &&
    report.volumes.length > 0 &&
    report.volumes.every((volume) => volume.acknowledgedWrites > 0) &&
    report.plugins.length > 0 &&
    report.plugins.every((plugin) => plugin.csiCallsAfterMigration > 0) &&
    report.lostWrites === 0 &&
    report.strandedAttachments === 0 &&
    report.inTreeCallsAfterMigration === 0
  );
}
