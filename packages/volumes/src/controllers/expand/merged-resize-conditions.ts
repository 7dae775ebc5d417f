/** The conditions of a claim that is being resized. Pure. Source: docs/behaviour/controllers.md Part C, "Condition merge". */
import type { PersistentVolumeClaimCondition } from "@longshore/kube";

const managed: ReadonlySet<string> = new Set(["Resizing", "FileSystemResizePending"]);

/**
 * The conditions with the managed ones replaced by `wanted`: one with unchanged status stays as it was
 * (times included), a managed one that is not wanted goes, all others stay.
 */
export function mergedResizeConditions(
  present: readonly PersistentVolumeClaimCondition[],
  wanted: readonly PersistentVolumeClaimCondition[],
): PersistentVolumeClaimCondition[] {
  const others = present.filter(({ type }) => !managed.has(type));
  const merged = wanted.map((condition) => {
    const before = present.find(({ type }) => type === condition.type);
    return before?.status === condition.status ? before : condition;
  });
  return [...others, ...merged];
}
