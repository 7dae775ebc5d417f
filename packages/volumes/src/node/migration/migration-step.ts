/**
 * Which path the volumes of one in-tree plugin take on this node: its in-tree code or CSI. The
 * gates say what is desired; what is still attached or mounted says whether the node may switch.
 * docs/contract.md, "C1 over C5". Nothing switches while a volume of the plugin is there on the current path.
 */
import type { VolumePath } from "../volume-manager/volume-paths.ts";

/** What is known of one plugin on this node. */
export interface MigrationFacts {
  /** By the gates this agent was started with. */
  readonly wanted: VolumePath;
  /** By the CSINode's annotation; undefined: there is no CSINode. */
  readonly annotated: VolumePath | undefined;
  /** Names of volumes that are attached or mounted (or may be), by their path. */
  readonly left: Readonly<Record<VolumePath, readonly string[]>>;
}

/** What is to be done. */
export type MigrationStep =
  | { readonly kind: "settled"; readonly path: VolumePath }
  /** Stay on `path`, for these volumes. */
  | { readonly kind: "held"; readonly path: VolumePath; readonly volumes: readonly string[] };

/**
 * Decides the path; a node without a CSINode is on the path of its volumes. Where it has volumes on both, that is the in-tree one: those
 * on CSI are the driver's own, or not known for what they are, since no plugin changes over before all is gone from its old path.
 */
export function decideMigration({ wanted, annotated, left }: MigrationFacts): MigrationStep {
  const other: VolumePath = wanted === "csi" ? "in-tree" : "csi";
  const current = annotated ?? (left["in-tree"].length > 0 ? "in-tree" : undefined);
  if (current === wanted) return { kind: "settled", path: wanted };
  return left[other].length === 0
    ? { kind: "settled", path: wanted }
    : { kind: "held", path: other, volumes: left[other] };
}
