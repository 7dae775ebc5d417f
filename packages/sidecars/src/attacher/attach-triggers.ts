/** Which changes of objects wake the attacher. */
import type { VolumeAttachment } from "@longshore/kube";
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
  return stableJson(withoutErrors(a)) === stableJson(withoutErrors(b));
}

function withoutErrors(va: VolumeAttachment): unknown {
  const { resourceVersion: _, managedFields: __, ...metadata } = va.metadata ?? {};
  const { attachError: ___, detachError: ____, ...status } = va.status ?? { attached: false };
  return { metadata, spec: va.spec, status };
}

/** JSON with sorted members; what is empty counts as absent, as in the API's own comparison. */
function stableJson(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => {
    if (member === null) return undefined;
    if (typeof member !== "object") return member;
    if (Array.isArray(member)) return member.length === 0 ? undefined : member;
    const entries = Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1));
    return entries.length === 0 ? undefined : Object.fromEntries(entries);
  });
}

/**
 * Whether the change is the attacher's own intent and nothing else: its finalizer and the node id. The pass that wrote
 * it goes on by itself; woken by it, each attachment would be published twice.
 */
export function isOwnIntent(before: VolumeAttachment, after: VolumeAttachment, finalizer: string): boolean {
  const wasHeld = before.metadata?.finalizers?.includes(finalizer) ?? false;
  const isHeld = after.metadata?.finalizers?.includes(finalizer) ?? false;
  if (wasHeld || !isHeld) return false;
  return sameBesideErrors(withoutIntent(before, finalizer), withoutIntent(after, finalizer));
}

function withoutIntent(va: VolumeAttachment, finalizer: string): VolumeAttachment {
  const { [nodeIdAnnotation]: _, ...annotations } = va.metadata?.annotations ?? {};
  const finalizers = (va.metadata?.finalizers ?? []).filter((f) => f !== finalizer);
  return { ...va, metadata: { ...va.metadata, annotations, finalizers } };
}
