/**
 * The conditions of a claim that is resized or modified. Pure. Sources: docs/behaviour/sidecars.md 4,
 * docs/behaviour/controllers.md Part C.
 */
import type { PersistentVolumeClaimCondition } from "@longshore/kube";

/** The conditions that report a resize. */
export const resizeConditions: ReadonlySet<string> = new Set([
  "Resizing",
  "FileSystemResizePending",
  "ControllerResizeError",
  "NodeResizeError",
]);

/** The conditions that report a modification. */
export const modifyConditions: ReadonlySet<string> = new Set(["ModifyingVolume", "ModifyVolumeError"]);

/** A condition that holds. */
export function condition(type: string, nowText: string, message?: string): PersistentVolumeClaimCondition {
  return {
    type,
    status: "True",
    lastTransitionTime: nowText,
    ...(message === undefined ? {} : { message }),
  };
}

/** Whether the condition is there and true. */
export function holds(
  conditions: readonly PersistentVolumeClaimCondition[] | undefined,
  type: string,
): boolean {
  return (conditions ?? []).some((one) => one.type === type && one.status === "True");
}

/**
 * The conditions with `wanted` in the place of those in `managed`; what is not managed stays as it is.
 * @param keep managed conditions that are not wanted stay, too
 * A condition that says the same as before keeps its times.
 */
export function mergedConditions(
  present: readonly PersistentVolumeClaimCondition[] | undefined,
  wanted: readonly PersistentVolumeClaimCondition[],
  managed: ReadonlySet<string>,
  keep = false,
): readonly PersistentVolumeClaimCondition[] {
  const before = present ?? [];
  const kept = before.filter(
    ({ type }) => !wanted.some((one) => one.type === type) && (keep || !managed.has(type)),
  );
  const now = wanted.map((one) => {
    const old = before.find(({ type }) => type === one.type);
    return old?.status === one.status && old.message === one.message ? old : one;
  });
  return [...kept, ...now];
}
