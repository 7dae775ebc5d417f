/**
 * The provisioner's decision for one claim (docs/behaviour/sidecars.md 2.2; docs/contract.md C3, intent before creation). Pure.
 *
 *     wanted ─► intent stored ─► CreateVolume ─► PV stored ─► intent removed
 *                                    │ uncertain: the same call again, also after a restart
 *                                    │ final:     again with back-off; the intent stays, to spare writes
 *     claim deleted, or bound elsewhere, with the intent on it: the volume is found by its name and deleted
 */

/** What is known of one claim. */
export interface ClaimFacts {
  /** Its annotations say that this driver provisions it. */
  readonly ours: boolean;
  readonly deleting: boolean;
  /** Bound, to whatever volume. */
  readonly bound: boolean;
  /** Bound to the PersistentVolume with this claim's name, which was stored therefore. */
  readonly boundToOwn: boolean;
  /** Our finalizer is on it: CreateVolume may have been called. */
  readonly intended: boolean;
  /** The PersistentVolume with this claim's name exists. */
  readonly pvStored: boolean;
  /** It was created by another provisioner, e.g. in-tree while the migration was switched. */
  readonly pvForeign: boolean;
  /** It is a volume of this driver, or of the plugin that migrates to it. */
  readonly pvOfDriver: boolean;
  readonly classFound: boolean;
  /** The class waits for the first consumer. */
  readonly delayed: boolean;
  readonly selectedNode: string | undefined;
  /** Whether the selected node exists. */
  readonly nodeFound: boolean;
  /** How the last CreateVolume of this process ended; `unknown` after a restart. */
  readonly lastAnswer: "unknown" | "uncertain" | "final";
}

/** What one pass over a claim has to do. */
export type ClaimGoal =
  | { readonly kind: "none" }
  /** Take the intent off: the volume is stored, or certainly not there. */
  | { readonly kind: "release" }
  /** Store the intent if need be, then create the volume. */
  | { readonly kind: "provision" }
  /** Make sure that no volume stays behind, then the rest. */
  | { readonly kind: "cancel"; readonly afterwards: "release" | "reschedule" }
  /** Remove the selected node, so that another is chosen. */
  | { readonly kind: "reschedule" }
  | { readonly kind: "fail"; readonly message: string };

const classMissing: ClaimGoal = {
  kind: "fail",
  message: "the claim's StorageClass does not exist: create it",
};

/** What to do now. */
export function decideClaimGoal(claim: ClaimFacts): ClaimGoal {
  return claim.intended ? decideIntended(claim) : decideFresh(claim);
}

function decideFresh(claim: ClaimFacts): ClaimGoal {
  if (!claim.ours || claim.deleting || claim.bound || claim.pvStored) return { kind: "none" };
  if (!claim.classFound) return classMissing;
  if (claim.delayed && claim.selectedNode === undefined) return { kind: "none" };
  if (claim.selectedNode !== undefined && !claim.nodeFound) return { kind: "reschedule" };
  return { kind: "provision" };
}

function decideIntended(claim: ClaimFacts): ClaimGoal {
  const isKnown = claim.ours || claim.pvOfDriver || claim.lastAnswer !== "unknown";
  if (claim.pvStored && !claim.pvForeign && isKnown) return { kind: "release" };
  // The intent of another provisioner (in-tree ones keep the same rule), or of ours before it went back.
  if (!claim.ours && claim.lastAnswer === "unknown") return { kind: "none" };
  // Its PersistentVolume was stored and is gone: who gave it up has its disk.
  if (claim.boundToOwn && !claim.pvStored) return { kind: "release" };
  const unwanted =
    claim.deleting || claim.bound || claim.pvStored || (!claim.ours && claim.lastAnswer === "final");
  if (unwanted) {
    if (isCertainlyGone(claim)) return { kind: "release" };
    return { kind: "cancel", afterwards: "release" };
  }
  // A call that is under way can be brought to its end without the class.
  if (!claim.classFound) return claim.lastAnswer === "uncertain" ? { kind: "provision" } : classMissing;
  if (claim.delayed && claim.selectedNode === undefined) return { kind: "none" };
  if (claim.selectedNode !== undefined && !claim.nodeFound) {
    // Only a final answer shows that no volume was made for the node that is gone (decision 0005, 34).
    if (claim.lastAnswer === "final") return { kind: "reschedule" };
    return { kind: "cancel", afterwards: "reschedule" };
  }
  return { kind: "provision" };
}

/** The node is removed only after a final answer, so a claim that waits for one has no volume. */
function isCertainlyGone(claim: ClaimFacts): boolean {
  if (claim.lastAnswer === "final") return true;
  return (
    claim.lastAnswer === "unknown" && claim.classFound && claim.delayed && claim.selectedNode === undefined
  );
}
