/** What comes next for a content by itself, of a single snapshot or of a group. Pure. */

/** What is known of a content. */
export interface ObservedBoundContent {
  readonly name: string;
  readonly isDeleting: boolean;
  /** What is wrong with its source. */
  readonly invalid: { readonly reason: string; readonly message: string } | undefined;
  /** It names the uid of a snapshot. */
  readonly isBound: boolean;
  readonly isHeld: boolean;
  /** It says that its snapshot is being deleted. */
  readonly isAnnounced: boolean;
  /** Whether the snapshot that it is bound to exists, by the server's word. */
  readonly snapshotOnServer: "there" | "none" | undefined;
}

/** What one pass over a content has to do. */
export type BoundContentStep =
  /** Nothing to do before something changes. */
  | { readonly step: "settle" }
  | { readonly step: "reportInvalid"; readonly reason: string; readonly message: string }
  | { readonly step: "addFinalizer" }
  | { readonly step: "readSnapshot" }
  | { readonly step: "announceDeletion" };

/**
 * The next step. Where only the content was deleted: while its snapshot exists, the snapshot decides; afterwards nothing
 * else would.
 */
export function decideBoundContent(observed: ObservedBoundContent): BoundContentStep {
  const { invalid, isBound, isHeld, isAnnounced, snapshotOnServer } = observed;
  if (invalid !== undefined) return { step: "reportInvalid", ...invalid };
  if (!isBound) return { step: "settle" };
  if (!observed.isDeleting) return { step: isHeld ? "settle" : "addFinalizer" };
  if (!isHeld || isAnnounced) return { step: "settle" };
  if (snapshotOnServer === undefined) return { step: "readSnapshot" };
  return { step: snapshotOnServer === "there" ? "settle" : "announceDeletion" };
}
