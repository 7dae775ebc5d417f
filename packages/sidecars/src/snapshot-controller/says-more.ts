/** Which changes of a snapshot are a reason for a pass. Pure. */
import type { KubeObject } from "@longshore/kube";

type Subject = KubeObject & { spec: object; status?: { readyToUse?: boolean; error?: object | null } };

/**
 * Whether a changed snapshot is looked at again. What the controller itself writes of failures must not wake it, or
 * one that fails each time in other words would be retried without back-off.
 */
export function saysMore(before: Subject, after: Subject): boolean {
  return withoutFailure(before) !== withoutFailure(after);
}

function withoutFailure({ metadata, spec, status }: Subject): string {
  const { resourceVersion: _, managedFields: __, ...lasting } = metadata ?? {};
  const { error: ___, readyToUse, ...known } = status ?? {};
  return JSON.stringify([lasting, spec, known, readyToUse === true]);
}
