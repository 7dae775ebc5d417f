/** Which changes of contents wake the snapshotter. */
import type { KubeObject } from "@longshore/kube";

type ContentObject = KubeObject & {
  spec: object;
  status?: { volumeGroupSnapshotHandle?: string };
};

/**
 * Whether a changed content is looked at again. What the snapshotter itself writes must not wake it, or a failing
 * snapshot would be asked for without back-off: status, finalizers and the mark of its own. To which group a content
 * belongs is for the snapshot controller to say.
 * @param ownAnnotation the snapshotter's own mark
 */
export function shouldEnqueueContent(
  before: ContentObject,
  after: ContentObject,
  ownAnnotation: string,
): boolean {
  if (before.metadata?.resourceVersion === after.metadata?.resourceVersion) return true; // A periodic resync.
  return relevant(before, ownAnnotation) !== relevant(after, ownAnnotation);
}

function relevant(content: ContentObject, ownAnnotation: string): string {
  const { annotations = {}, labels = {}, deletionTimestamp } = content.metadata ?? {};
  const { [ownAnnotation]: _, ...others } = annotations;
  const group = content.status?.volumeGroupSnapshotHandle;
  return JSON.stringify([content.spec, sorted(others), sorted(labels), deletionTimestamp, group]);
}

function sorted(map: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  return Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1));
}
