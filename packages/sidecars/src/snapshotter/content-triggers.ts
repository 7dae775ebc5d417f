/** Which changes of contents wake the snapshotter. */
import { beingCreatedAnnotation, type VolumeSnapshotContent } from "@longshore/storage";

/**
 * Whether a changed content is looked at again. What the snapshotter itself writes must not wake it, or a failing
 * snapshot would be asked for without back-off: status, finalizers and the mark of its own. That a content is one of
 * a group, is what the snapshot controller writes there.
 */
export function shouldEnqueueContent(before: VolumeSnapshotContent, after: VolumeSnapshotContent): boolean {
  if (before.metadata?.resourceVersion === after.metadata?.resourceVersion) return true; // A periodic resync.
  return relevant(before) !== relevant(after);
}

function relevant(content: VolumeSnapshotContent): string {
  const { annotations = {}, labels = {}, deletionTimestamp } = content.metadata ?? {};
  const { [beingCreatedAnnotation]: _, ...others } = annotations;
  const group = content.status?.volumeGroupSnapshotHandle;
  return JSON.stringify([content.spec, sorted(others), sorted(labels), deletionTimestamp, group]);
}

function sorted(map: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  return Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1));
}
