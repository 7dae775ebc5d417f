/** What the snapshot controller does with VolumeSnapshotContents by themselves. */
import {
  type EventRecorder,
  involvedObject,
  isDeleting,
  isNotFound,
  type KubeEnv,
  type ReconcileResult,
  type Stored,
  settled,
} from "@longshore/kube";
import {
  beingDeletedAnnotation,
  contentFinalizer,
  snapshotResources,
  type VolumeSnapshotContent,
} from "@longshore/storage";

/** What the reconciler works with. */
export interface BoundContentContext {
  readonly env: KubeEnv;
  readonly events: Pick<EventRecorder, "event">;
  readonly content: (name: string) => Stored<VolumeSnapshotContent> | undefined;
}

const { volumeSnapshotContents, volumeSnapshots } = snapshotResources;

/** One pass over the content of this name: a bound one is held; one whose snapshot is gone can be deleted. */
export async function reconcileBoundContent(
  context: BoundContentContext,
  name: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const content = context.content(name);
  if (content === undefined) return settled;
  const { source, volumeSnapshotRef } = content.spec;
  if ((source.volumeHandle === undefined) === (source.snapshotHandle === undefined)) {
    const message = "Exactly one of VolumeHandle and SnapshotHandle should be specified";
    context.events.event(
      involvedObject(volumeSnapshotContents, content),
      "Warning",
      "ContentValidationError",
      message,
    );
    return settled;
  }
  if (!volumeSnapshotRef.uid) return settled;
  const { finalizers = [], resourceVersion, annotations } = content.metadata;
  const isHeld = finalizers.includes(contentFinalizer);
  if (!isDeleting(content)) {
    if (!isHeld) {
      await patch(context, name, { resourceVersion, finalizers: [...finalizers, contentFinalizer] }, signal);
    }
    return settled;
  }
  // Deleted by itself. While its snapshot is there, that one decides; afterwards nobody else would.
  if (!isHeld || annotations?.[beingDeletedAnnotation] !== undefined) return settled;
  if (await hasSnapshot(context, content, signal)) return settled;
  await patch(context, name, { resourceVersion, annotations: { [beingDeletedAnnotation]: "yes" } }, signal);
  return settled;
}

/** Whether the snapshot that the content is bound to exists, by the server's word. */
async function hasSnapshot(
  context: BoundContentContext,
  content: Stored<VolumeSnapshotContent>,
  signal: AbortSignal,
): Promise<boolean> {
  const { name = "", namespace = "", uid } = content.spec.volumeSnapshotRef;
  const snapshot = await context.env.kube.get(volumeSnapshots, { name, namespace }, { signal });
  return snapshot?.metadata.uid === uid;
}

async function patch(
  context: BoundContentContext,
  name: string,
  metadata: object,
  signal: AbortSignal,
): Promise<void> {
  const change = { type: "merge", body: { metadata } } as const;
  try {
    await context.env.kube.patch(volumeSnapshotContents, { name }, change, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
