/**
 * Decides the next step of this node's migration: its CSINode annotation says which plugins are CSI's, its volume
 * manager does the same, and both switch to what the gates want once nothing is left on the current path.
 *
 *     the objects may be older ─► correct lists ─► write annotation ─► end announcement ─► apply
 *     suspend ─► look ─► announce (to CSI only) ─► write annotation ─► end announcement ─► apply
 *        └── held: what is there stays on its path ──────────────────────────────────────────┘
 *
 * Invariants
 *  - The annotation and the volume manager agree: volumes of a plugin are not admitted while its
 *    annotation is being changed, and take the new path only once it is stored.
 *  - A plugin switches only when none of its volumes is attached or mounted here on the current path, or in
 *    `volumesInUse`, and, to CSI, only after the Node has announced it: the controller begins no in-tree attach from then on.
 * Source: docs/behaviour/node-agent.md 2.4; docs/contract.md, "C1 over C5"; docs/decisions/0019.
 */
import type { VolumePath } from "../volume-manager/volume-paths.ts";
import { decideMigration, type MigrationStep as Verdict } from "./migration-step.ts";

/** How often a held plugin is looked at again although nothing seems to have happened, in milliseconds. */
export const recheckMs = 2_000;

/** What is left of a plugin, as this pass has looked. */
export interface LookedAt {
  readonly names: Readonly<Record<VolumePath, readonly string[]>>;
  /** It is what the Node said in its answer to the announcement, so it stays true. */
  readonly isAnnounced: boolean;
}

/** One plugin as a pass sees it. */
export interface ObservedPlugin {
  readonly inTreeName: string;
  /** By the gates. */
  readonly wanted: VolumePath;
  /** The active path; at the start by the CSINode's annotation, undefined where there is no CSINode. */
  readonly current: VolumePath | undefined;
  /** The volume manager manages none of its volumes on its current path. */
  readonly isFree: boolean;
  /** None of its volumes is admitted. */
  readonly isSuspended: boolean;
  /** What held it the last time. */
  readonly heldBy: readonly string[];
  /** Undefined: this pass has not looked yet. */
  readonly left: LookedAt | undefined;
}

/** The node's migration as a pass sees it. */
export interface ObservedMigration {
  /** Monotonic time in milliseconds. */
  readonly nowMs: number;
  /** Monotonic time in milliseconds before which nothing is tried again. */
  readonly retryAtMs: number;
  /** The annotation has been put in place once. */
  readonly isInitialised: boolean;
  /** What the CSINode's annotation lists for certain, by this agent's own write; undefined: not certain. */
  readonly written: readonly string[] | undefined;
  /** The Node's lists of attached volumes may be older than what is mounted: they come from a backup. */
  readonly mayListOthers: boolean;
  /** The Node has an announcement, or may have. */
  readonly mayBeAnnounced: boolean;
  readonly plugins: readonly ObservedPlugin[];
  /** What has just failed. */
  readonly failure: { readonly error: unknown } | undefined;
}

/** What the pass has found out about one plugin. */
export interface PluginVerdict {
  readonly inTreeName: string;
  readonly path: VolumePath;
  /** The names that hold it on its path; none where nothing does. */
  readonly heldBy: readonly string[];
}

/** What comes next. */
export type NodeMigrationStep =
  | { readonly step: "recordFailure"; readonly error: unknown }
  | { readonly step: "wait"; readonly ms: number }
  /** Make the Node's lists of attached volumes agree with what is mounted. */
  | { readonly step: "correctLists" }
  /** Admit no volume of the plugin. */
  | { readonly step: "suspend"; readonly inTreeName: string }
  /** Read from Node, disk and VolumeAttachments what is left of the plugin. */
  | { readonly step: "look"; readonly inTreeName: string }
  /** Announce the change to CSI on the Node, and look at the answer. */
  | { readonly step: "announce"; readonly inTreeName: string }
  /** Make the CSINode list exactly these plugins. */
  | { readonly step: "writeAnnotation"; readonly migrated: readonly string[] }
  | { readonly step: "endAnnouncement" }
  /** Activate the paths; look again after `recheckMs` if that is set. */
  | {
      readonly step: "apply";
      readonly verdicts: readonly PluginVerdict[];
      readonly recheckMs: number | undefined;
    };

/** Decides for the node; pure. */
export function decideNodeMigrationStep(observed: ObservedMigration): NodeMigrationStep {
  const { failure, plugins, nowMs, retryAtMs, isInitialised, mayListOthers } = observed;
  if (failure !== undefined) return { step: "recordFailure", error: failure.error };
  if (retryAtMs > nowMs) return { step: "wait", ms: retryAtMs - nowMs };
  // Before the annotation: by that the controllers act on the lists.
  if (mayListOthers) return { step: "correctLists" };
  const verdicts: PluginVerdict[] = [];
  for (const plugin of plugins) {
    const verdict = verdictOf(plugin, isInitialised);
    if ("step" in verdict) return verdict;
    verdicts.push(verdict);
  }
  return stepFor(observed, verdicts);
}

/** What becomes of a plugin, or what has to be done to know. */
function verdictOf(
  { inTreeName, wanted, current, isFree, isSuspended, heldBy, left }: ObservedPlugin,
  isInitialised: boolean,
): PluginVerdict | NodeMigrationStep {
  if (current === wanted) return { inTreeName, path: wanted, heldBy: [] };
  // A managed volume holds the plugin without a request to the API server.
  if (isInitialised && current !== undefined && !isFree) return { inTreeName, path: current, heldBy };
  // Before the look: what it shows to be gone must not come back until the decision is active.
  if (!isSuspended) return { step: "suspend", inTreeName };
  if (left === undefined) return { step: "look", inTreeName };
  const verdict: Verdict = decideMigration({ wanted, annotated: current, left: left.names });
  if (verdict.kind === "held") return { inTreeName, path: verdict.path, heldBy: verdict.volumes };
  // Towards in-tree there is nothing to announce: what the controller must not begin is an in-tree attach.
  if (wanted === "csi" && !left.isAnnounced) return { step: "announce", inTreeName };
  return { inTreeName, path: wanted, heldBy: [] };
}

/** All is known: the annotation first, then the announcement goes, then the paths are active. */
function stepFor(
  { written, mayBeAnnounced, plugins }: ObservedMigration,
  verdicts: readonly PluginVerdict[],
): NodeMigrationStep {
  const migrated = verdicts
    .filter(({ path }) => path === "csi")
    .map(({ inTreeName }) => inTreeName)
    .sort();
  if (written?.join() !== migrated.join()) return { step: "writeAnnotation", migrated };
  if (mayBeAnnounced) return { step: "endAnnouncement" };
  const isHeld = plugins.some(({ wanted }, index) => verdicts[index]?.path !== wanted);
  return { step: "apply", verdicts, recheckMs: isHeld ? recheckMs : undefined };
}
