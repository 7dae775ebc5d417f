/** Strategic merge patch. */
import type { Kind } from "../registry/kind.ts";
import { applyMergePatch } from "./merge-patch.ts";

/** The patched object. */
export function applyStrategicPatch(target: unknown, patch: unknown, _of: Kind): unknown {
  return applyMergePatch(target, patch);
}
