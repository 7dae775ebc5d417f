/**
 * Changes a parsed object before the caller gets it. The change is in place: no other code refers to the object yet,
 * and copying a hundred thousand objects would cost as much as parsing them.
 */
import type { KubeObject } from "../../kube-objects.ts";
import type { SharedParts } from "./shared-parts.ts";

/** How a fresh object is to be. */
export interface FreshForm {
  readonly apiVersion: string;
  readonly kind: string;
  /** Without `metadata.managedFields`. */
  readonly dropManagedFields: boolean;
  /** Parts that it may have in common with others; each has its own when left out. */
  readonly sharedParts: SharedParts | undefined;
}

type Fresh = { apiVersion?: string; kind?: string; metadata?: Record<string, unknown> };

/** The object with the apiVersion and kind of its resource, which items of a list lack and partial ones have wrong. */
export function completed<T extends KubeObject>(
  parsed: T,
  { apiVersion, kind, dropManagedFields, sharedParts }: FreshForm,
): T {
  const fresh = parsed as unknown as Fresh;
  if (fresh.kind !== kind) {
    fresh.apiVersion = apiVersion;
  }
  // One string for all of them, also where it is right.
  fresh.kind = kind;
  if (dropManagedFields) forgetManagedFields(parsed);
  sharedParts?.shareIn(fresh);
  return parsed;
}

/** The object without `metadata.managedFields`, or what stands in their place. */
export function forgetManagedFields<T extends KubeObject>(parsed: T): T {
  const fresh = parsed as unknown as Fresh;
  if (fresh.metadata?.managedFields !== undefined) dropFrom(fresh, fresh.metadata);
  return parsed;
}

function dropFrom(fresh: Fresh, metadata: Record<string, unknown>): void {
  let last = "";
  for (const name in metadata) last = name;
  // Servers write it last, and only the last member can be taken away without making the object a slow one.
  if (last === "managedFields") delete metadata.managedFields;
  else {
    const { managedFields: _, ...kept } = metadata;
    fresh.metadata = kept;
  }
}
