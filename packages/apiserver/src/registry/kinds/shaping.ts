/** Helpers of the kinds' rules: filling defaults and canonical forms without copying what stays. */
import { type KubeObject, parseQuantity } from "@longshore/kube/basics";
import { type FieldProblem, invalidValue } from "../../api/errors.ts";
import { subdomainProblems } from "../../api/names.ts";
import { spendTime } from "../../api/work-time.ts";

/** An object of any kind, seen loosely: rules look into what clients send. */
// biome-ignore lint/suspicious/noExplicitAny: what a member holds is what validation is there to find out.
export type Loose = Record<string, any>;

/** An API object, seen loosely. */
export type LooseObject = KubeObject & Loose;

/** `object` with the members of `defaults` that it lacks; itself when it lacks none. */
export function withDefaults<T extends Loose>(object: T | undefined, defaults: Loose): T {
  if (object === undefined) return { ...defaults } as T;
  for (const key of Object.keys(defaults)) {
    if (object[key] === undefined || object[key] === null) {
      const given = Object.fromEntries(
        Object.entries(object).filter(([, v]) => v !== undefined && v !== null),
      );
      return { ...defaults, ...given } as unknown as T;
    }
  }
  return object;
}

/** `object` with `member` changed by `change`; `object` itself when nothing changes or the member is missing. */
export function withMember<T extends Loose>(
  object: T,
  member: keyof T & string,
  change: (value: Loose) => unknown,
): T {
  const before = object[member];
  if (before === undefined || before === null) return object;
  const after = change(before as Loose);
  return after === before ? object : { ...object, [member]: after };
}

/** The list with every item changed; itself when none changes. */
export function mapItems(items: Loose, change: (item: Loose) => Loose): Loose {
  if (!Array.isArray(items)) return items;
  let changed = false;
  const result = items.map((item) => {
    spendTime();
    const next = change(item);
    changed ||= next !== item;
    return next;
  });
  return changed ? result : items;
}

/** `object` without the member; itself when it is not there. */
export function without<T extends Loose>(object: T, member: string): T {
  if (!Object.hasOwn(object, member)) return object;
  const { [member]: _, ...rest } = object;
  return rest as unknown as T;
}

/** A map of quantities in their canonical forms; what is no quantity stays for validation to refuse. */
export function canonicalQuantities(map: Loose): Loose {
  let result: Loose | undefined;
  for (const [key, value] of Object.entries(map)) {
    spendTime();
    const canonical = canonicalQuantity(value);
    if (canonical === value) continue;
    result ??= { ...map };
    result[key] = canonical;
  }
  return result ?? map;
}

function canonicalQuantity(value: unknown): unknown {
  // Most are: a number from 1 to 999 with or without a suffix.
  if (typeof value === "string" && /^[1-9]\d{0,2}([KMGTPE]i|[kMGTPE]|m)?$/.test(value)) return value;
  if (typeof value !== "string" && typeof value !== "number") return value;
  try {
    return parseQuantity(String(value)).toString();
  } catch {
    return value;
  }
}

/** Problems of a name that must be a DNS subdomain. */
export function subdomainValue(field: string, value: unknown): FieldProblem[] {
  return subdomainProblems(String(value ?? "")).map((why) => invalidValue(field, value ?? "", why));
}

/** The text of an immutable field. */
export const immutable = "field is immutable";
