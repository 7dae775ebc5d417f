/** Whether a VolumeSnapshot and a VolumeSnapshotContent belong together (common-controller of the reference). Pure. */
import type { Stored } from "@longshore/kube";
import { snapshotContentName, type VolumeSnapshot, type VolumeSnapshotContent } from "@longshore/storage";

/** Why a snapshot and the content of its name do not go together: a reason and a text for users. */
export interface Mismatch {
  readonly reason: string;
  readonly message: string;
}

/** Whether a snapshot stands for one that exists at the driver. */
export function isPreProvisioned(snapshot: VolumeSnapshot): boolean {
  return snapshot.spec.source.volumeSnapshotContentName !== undefined;
}

/**
 * The VolumeGroupSnapshot that a snapshot belongs to, if it does: by its owner, or by what was found out of it.
 * `uid` is unknown in the latter case.
 */
export function groupOf(
  snapshot: VolumeSnapshot,
): { readonly name: string; readonly uid: string | undefined } | undefined {
  const owner = ownerGroup(snapshot);
  if (owner !== undefined) return owner;
  const name = snapshot.status?.volumeGroupSnapshotName;
  return name ? { name, uid: undefined } : undefined;
}

/** The VolumeGroupSnapshot that owns a snapshot. */
export function ownerGroup(
  snapshot: VolumeSnapshot,
): { readonly name: string; readonly uid: string } | undefined {
  return (snapshot.metadata?.ownerReferences ?? []).find(
    ({ kind, apiVersion }) =>
      kind === "VolumeGroupSnapshot" && apiVersion.startsWith("groupsnapshot.storage.k8s.io/"),
  );
}

/** Name of the content that a snapshot has or is to have; undefined: not known yet. */
export function contentNameOf(snapshot: Stored<VolumeSnapshot>): string | undefined {
  const bound = snapshot.status?.boundVolumeSnapshotContentName;
  if (bound) return bound;
  const { persistentVolumeClaimName, volumeSnapshotContentName } = snapshot.spec.source;
  if (volumeSnapshotContentName !== undefined) return volumeSnapshotContentName || undefined;
  // The content of a member is named after its group, and the member learns the name when it is bound.
  if (ownerGroup(snapshot) !== undefined || persistentVolumeClaimName === undefined) return undefined;
  return snapshotContentName(snapshot.metadata.uid);
}

/** Whether the content is bound to exactly this snapshot. */
export function pointsBack(content: VolumeSnapshotContent, snapshot: Stored<VolumeSnapshot>): boolean {
  const { name, namespace, uid } = content.spec.volumeSnapshotRef;
  const { metadata } = snapshot;
  return name === metadata.name && namespace === metadata.namespace && uid === metadata.uid;
}

/** What keeps the two apart, before they are bound; undefined: nothing does. */
export function mismatchOf(
  snapshot: Stored<VolumeSnapshot>,
  content: Stored<VolumeSnapshotContent>,
): Mismatch | undefined {
  const { source, volumeSnapshotRef: ref } = content.spec;
  const contentName = content.metadata.name;
  const existing = isPreProvisioned(snapshot);
  if (existing && source.snapshotHandle === undefined) {
    return {
      reason: "SnapshotContentMismatch",
      message: "VolumeSnapshotContent is dynamically provisioned while expecting a pre-provisioned one",
    };
  }
  if (!existing && source.volumeHandle === undefined) {
    return {
      reason: "SnapshotContentMismatch",
      message: `VolumeSnapshotContent ${contentName} is pre-provisioned while expecting a dynamically provisioned one`,
    };
  }
  // A content that an administrator made is meant for a name; the uid comes with the binding.
  const isMeant =
    ref.name === snapshot.metadata.name &&
    ref.namespace === snapshot.metadata.namespace &&
    (ref.uid === snapshot.metadata.uid || (existing && !ref.uid));
  if (isMeant) return undefined;
  return {
    reason: "SnapshotContentMisbound",
    message: `VolumeSnapshotContent [${contentName}] is bound to a different snapshot`,
  };
}
