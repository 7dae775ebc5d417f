/** Which changes of objects wake the attacher. */
import { hasFinalizer, type VolumeAttachment } from "@longshore/kube";
import { nodeIdAnnotation } from "@longshore/storage";

/**
 * Whether a changed VolumeAttachment is looked at again. What the attacher itself writes about failures must
 * not wake it, or a failing attachment would be retried without back-off.
 */
export function shouldEnqueue(before: VolumeAttachment, after: VolumeAttachment): boolean {
  if (before.metadata?.resourceVersion === after.metadata?.resourceVersion) return true; // A periodic resync.
  if (![before, after].some((va) => va.status?.attachError ?? va.status?.detachError)) return true;
  return !sameBesideErrors(before, after);
}

function sameBesideErrors(a: VolumeAttachment, b: VolumeAttachment): boolean {
  return isSame(withoutErrors(a), withoutErrors(b));
}

function withoutErrors(va: VolumeAttachment): unknown {
  const { resourceVersion: _, managedFields: __, ...metadata } = va.metadata ?? {};
  const { attachError: ___, detachError: ____, ...status } = va.status ?? { attached: false };
  return { metadata, spec: va.spec, status };
}

/** Whether two JSON values are the same; what is empty counts as absent, as in the API's own comparison. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isEmpty(a) || isEmpty(b)) return isEmpty(a) && isEmpty(b);
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((member, index) => isSame(member, b[index]));
  }
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  for (const key in left) if (!isSame(left[key], right[key])) return false;
  for (const key in right) if (!(key in left) && !isEmpty(right[key])) return false;
  return true;
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (typeof value !== "object") return false;
  if (Array.isArray(value)) return value.length === 0;
  for (const key in value) if (!isEmpty((value as Record<string, unknown>)[key])) return false;
  return true;
}

/**
 * Whether the change is the attacher's own intent and nothing else: its finalizer and the node id. The pass that wrote
 * it continues anyway; a second pass would publish each attachment twice.
 */
export function isOwnIntent(before: VolumeAttachment, after: VolumeAttachment, finalizer: string): boolean {
  const wasHeld = hasFinalizer(before, finalizer);
  const isHeld = hasFinalizer(after, finalizer);
  if (wasHeld || !isHeld) return false;
  return sameBesideErrors(withoutIntent(before, finalizer), withoutIntent(after, finalizer));
}

function withoutIntent(va: VolumeAttachment, finalizer: string): VolumeAttachment {
  const { [nodeIdAnnotation]: _, ...annotations } = va.metadata?.annotations ?? {};
  const finalizers = (va.metadata?.finalizers ?? []).filter((f) => f !== finalizer);
  return { ...va, metadata: { ...va.metadata, annotations, finalizers } };
}
