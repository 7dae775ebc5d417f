/** What the snapshotter stores in contents, of single snapshots and of groups alike: bodies of merge patches, pure. */
import {
  finalizersMergePatch,
  hasFinalizer,
  isDeleting,
  type KubeObject,
  type Stored,
  withFinalizer,
  withoutFinalizer,
} from "@longshore/kube";
import type { ContentKind } from "./content-rules.ts";

/** The body of a merge patch. */
export type PatchBody = Readonly<Record<string, unknown>>;

type Marks = Pick<ContentKind<KubeObject>, "finalizer" | "beingCreatedAnnotation">;

/**
 * Says that the driver is about to be asked, and that the content is not to go before the outcome is known; undefined:
 * it says so already.
 */
export function intentPatch(content: Stored<KubeObject>, marks: Marks): PatchBody | undefined {
  const { resourceVersion } = content.metadata;
  const { finalizers } = withFinalizer(content, marks.finalizer).metadata;
  // None can be added to what is being deleted.
  const isHeld = hasFinalizer(content, marks.finalizer) || isDeleting(content);
  if (isMarkedAs(content, marks) && isHeld) return undefined;
  return {
    metadata: {
      // With it the patch fails on a content that was deleted meanwhile: retry with fresh state.
      resourceVersion,
      annotations: { [marks.beingCreatedAnnotation]: "yes" },
      ...(isHeld ? {} : { finalizers }),
    },
  };
}

/** Whether the content says that the driver was asked, and that it is not known what became of it. */
export function isMarkedAs(
  { metadata }: Stored<KubeObject>,
  { beingCreatedAnnotation }: Pick<Marks, "beingCreatedAnnotation">,
): boolean {
  return metadata.annotations?.[beingCreatedAnnotation] !== undefined;
}

/** Says that the outcome is known. */
export function markRemovalPatch({
  beingCreatedAnnotation,
}: Pick<Marks, "beingCreatedAnnotation">): PatchBody {
  return { metadata: { annotations: { [beingCreatedAnnotation]: null } } };
}

/** Our finalizer off; undefined: it is not there. */
export function finalizerRemovalPatch(
  content: Stored<KubeObject>,
  { finalizer }: Pick<Marks, "finalizer">,
): PatchBody | undefined {
  if (!hasFinalizer(content, finalizer)) return undefined;
  // With the version the patch fails on a content that changed: another may have a handle or a policy by now.
  return finalizersMergePatch(withoutFinalizer(content, finalizer));
}

/** The status after a failure. @param time as the API writes it */
export function failedPatch(message: string, time: string): PatchBody {
  return { status: { readyToUse: false, error: { message, time } } };
}
