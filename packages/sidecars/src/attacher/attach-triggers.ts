/** Which changes of objects wake the attacher. */
import type { VolumeAttachment } from "@longshore/kube";

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
