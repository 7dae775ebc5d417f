/** The two kinds of contents, of single snapshots and of groups, as far as the controller of bound contents knows them. */
import type { KubeObject, Resource } from "@longshore/kube";
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
