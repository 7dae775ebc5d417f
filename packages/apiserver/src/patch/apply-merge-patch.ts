/** JSON merge patch (RFC 7386). */
import { ownMember, setMember } from "../api/set-member.ts";
import { spendTime } from "../api/work-time.ts";

type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** `target` with the patch applied; parts that the patch does not name are shared with it. */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: Record<string, unknown> = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    spendTime();
    if (value === null) delete result[key];
    else setMember(result, key, isObject(value) ? applyMergePatch(ownMember(result, key), value) : value);
  }
  return result;
}
