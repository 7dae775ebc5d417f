/** A JSON patch that holds for the object as it was seen. */
import type { JsonPatchStep } from "./finalizers.ts";
import { isInvalid, KubeApiError, type KubeClient } from "./kube-client.ts";
import type { KubeObject, ObjectRef, Stored } from "./kube-objects.ts";
import type { Resource } from "./resources.ts";

/**
 * Sends a JSON patch with tests of what it was made from. Where they fail, others have changed the object since it was seen: that is a
 * conflict, as of an update, and no fault; kube-apiserver answers it with 422 (apiserver, patch.go `applyJSPatch`).
 * @throws KubeApiError `Conflict` then; else what the client throws
 */
export async function patchAsSeen<T extends KubeObject>(
  kube: KubeClient,
  resource: Resource<T>,
  ref: ObjectRef,
  body: readonly JsonPatchStep[],
  options: { readonly signal: AbortSignal },
): Promise<Stored<T>> {
  try {
    return await kube.patch(resource, ref, { type: "json", body }, options);
  } catch (error) {
    if (!isUnfitting(error)) throw error;
    throw new KubeApiError({ ...error.status, reason: "Conflict", code: 409 });
  }
}

/** A patch that does not fit, and not an object that breaks the rules of its kind: that answer names the kind. */
function isUnfitting(error: unknown): error is KubeApiError {
  return isInvalid(error) && ((error as KubeApiError).status.details?.kind ?? "") === "";
}
