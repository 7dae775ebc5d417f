/** What the snapshot controller does with contents by themselves, of single snapshots and of groups alike. */
import {
  type EventRecorder,
  involvedObject,
  isDeleting,
  isNotFound,
  type KubeEnv,
  type KubeObject,
  type ReconcileResult,
  type Resource,
  type Stored,
  settled,
} from "@longshore/kube";
import {
  beingDeletedAnnotation,
  contentFinalizer,
  groupBeingDeletedAnnotation,
  groupContentFinalizer,
  type SnapshotReference,
  snapshotResources,
  type VolumeGroupSnapshotContent,
  type VolumeSnapshotContent,
} from "@longshore/storage";

/** A kind of content, and of what it is bound to. */
export interface BoundKind<C extends KubeObject> {
  readonly resource: Resource<C>;
  readonly finalizer: string;
  readonly beingDeletedAnnotation: string;
  readonly boundResource: Resource<KubeObject>;
  readonly boundRef: (content: C) => SnapshotReference;
  /** What is wrong with the content's source, as a reason and a text; undefined: nothing. */
  readonly invalid: (content: C) => { readonly reason: string; readonly message: string } | undefined;
}

/** Contents of single snapshots. */
export const boundSnapshotContents: BoundKind<VolumeSnapshotContent> = {
  resource: snapshotResources.volumeSnapshotContents,
  finalizer: contentFinalizer,
  beingDeletedAnnotation,
  boundResource: snapshotResources.volumeSnapshots,
  boundRef: ({ spec }) => spec.volumeSnapshotRef,
  invalid: ({ spec: { source } }) =>
    (source.volumeHandle === undefined) === (source.snapshotHandle === undefined)
      ? {
          reason: "ContentValidationError",
          message: "Exactly one of VolumeHandle and SnapshotHandle should be specified",
        }
      : undefined,
};

/** Contents of group snapshots. */
export const boundGroupContents: BoundKind<VolumeGroupSnapshotContent> = {
  resource: snapshotResources.volumeGroupSnapshotContents,
  finalizer: groupContentFinalizer,
  beingDeletedAnnotation: groupBeingDeletedAnnotation,
  boundResource: snapshotResources.volumeGroupSnapshots,
  boundRef: ({ spec }) => spec.volumeGroupSnapshotRef,
  invalid: ({ spec: { source } }) =>
    ((source.volumeHandles ?? []).length === 0) === (source.groupSnapshotHandles === undefined)
      ? {
          reason: "GroupContentValidationError",
          message: "Exactly one of GroupSnapshotHandles and VolumeHandles should be specified",
        }
      : undefined,
};

/** What the reconciler works with. */
export interface BoundContentContext<C extends KubeObject> {
  readonly env: KubeEnv;
  readonly events: Pick<EventRecorder, "event">;
  readonly kind: BoundKind<C>;
  readonly content: (name: string) => Stored<C> | undefined;
}

/** One pass over the content of this name: a bound one is held; one whose snapshot is gone can be deleted. */
export async function reconcileBoundContent<C extends KubeObject>(
  context: BoundContentContext<C>,
  name: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { kind, events } = context;
  const content = context.content(name);
  if (content === undefined) return settled;
  const invalid = kind.invalid(content);
  if (invalid !== undefined) {
    events.event(involvedObject(kind.resource, content), "Warning", invalid.reason, invalid.message);
    return settled;
  }
  if (!kind.boundRef(content).uid) return settled;
  const { finalizers = [], resourceVersion, annotations } = content.metadata;
  const isHeld = finalizers.includes(kind.finalizer);
  if (!isDeleting(content)) {
    if (!isHeld) {
      await patch(context, name, { resourceVersion, finalizers: [...finalizers, kind.finalizer] }, signal);
    }
    return settled;
  }
  // Only the content was deleted. While its snapshot exists, the snapshot decides; afterwards nothing else would.
  if (!isHeld || annotations?.[kind.beingDeletedAnnotation] !== undefined) return settled;
  if (await isBoundToSomething(context, content, signal)) return settled;
  const announced = { [kind.beingDeletedAnnotation]: "yes" };
  await patch(context, name, { resourceVersion, annotations: announced }, signal);
  return settled;
}

/** Whether the snapshot that the content is bound to exists, by the server's word. */
async function isBoundToSomething<C extends KubeObject>(
  { env, kind }: BoundContentContext<C>,
  content: Stored<C>,
  signal: AbortSignal,
): Promise<boolean> {
  const { name = "", namespace = "", uid } = kind.boundRef(content);
  const bound = await env.kube.get(kind.boundResource, { name, namespace }, { signal });
  return bound?.metadata.uid === uid;
}

async function patch<C extends KubeObject>(
  { env, kind }: BoundContentContext<C>,
  name: string,
  metadata: object,
  signal: AbortSignal,
): Promise<void> {
  try {
    await env.kube.patch(kind.resource, { name }, { type: "merge", body: { metadata } }, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
