/** What the attacher stores about a VolumeAttachment: bodies of merge patches, pure. */
import { CsiCallError, grpcCodes } from "@longshore/csi";
import {
  finalizersMergePatch,
  hasFinalizer,
  type Stored,
  type VolumeAttachment,
  withFinalizer,
  withoutFinalizer,
} from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { nodeIdAnnotation } from "@longshore/storage";

type Attachment = Stored<VolumeAttachment>;

/** The body of a merge patch. */
export type PatchBody = Readonly<Record<string, unknown>>;

/** Our finalizer and the node id, where they are missing. */
export function intentPatch(va: Attachment, finalizer: string, nodeId: string): PatchBody {
  const { annotations, resourceVersion } = va.metadata;
  const { finalizers } = withFinalizer(va, finalizer).metadata;
  return {
    metadata: {
      // With it the patch fails on an attachment that changed, so no finalizer of others is dropped.
      resourceVersion,
      ...(hasFinalizer(va, finalizer) ? {} : { finalizers }),
      ...(annotations?.[nodeIdAnnotation] === nodeId ? {} : { annotations: { [nodeIdAnnotation]: nodeId } }),
    },
  };
}

/** Our finalizer off. */
export function finalizerRemovalPatch(va: Attachment, finalizer: string): PatchBody {
  return finalizersMergePatch(withoutFinalizer(va, finalizer));
}

/** The status of an attachment whose volume is published. */
export function attachedPatch(va: Attachment, publishContext: Readonly<Record<string, string>>): PatchBody {
  const attachmentMetadata = replacing(va.status?.attachmentMetadata, publishContext);
  return statusPatch(va, { attached: true, attachError: null, ...attachmentMetadata });
}

/** The status of an attachment whose volume is not published any more. */
export function detachedPatch(va: Attachment): PatchBody {
  return statusPatch(va, { attached: false, detachError: null, attachmentMetadata: null });
}

/** The status after a failure. @param time as the API writes it */
export function failedPatch(
  va: Attachment,
  goal: "attach" | "detach",
  error: unknown,
  time: string,
): PatchBody {
  // A server that does not know the code drops it (Kubernetes before 1.33).
  const errorCode = error instanceof CsiCallError ? grpcCodes.indexOf(error.code) : null;
  const field = goal === "attach" ? "attachError" : "detachError";
  return statusPatch(va, { [field]: { message: errorChain(error), time, errorCode } });
}

/** The API demands `attached` in every status, also in the first. */
function statusPatch(va: Attachment, status: PatchBody): PatchBody {
  return { status: { attached: va.status?.attached ?? false, ...status } };
}

/** What of `attachmentMetadata` a merge patch must say so that nothing of what was there before stays. */
function replacing(
  before: Readonly<Record<string, string>> | null | undefined,
  after: Readonly<Record<string, string>>,
): { readonly attachmentMetadata?: Readonly<Record<string, string | null>> | null } {
  const stale = Object.keys(before ?? {}).filter((key) => !Object.hasOwn(after, key));
  if (Object.keys(after).length === 0) return stale.length === 0 ? {} : { attachmentMetadata: null };
  return { attachmentMetadata: { ...Object.fromEntries(stale.map((key) => [key, null])), ...after } };
}
