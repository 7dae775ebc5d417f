/** One finalizer among those of others: asking for it, adding and removing it. Pure. */
import type { KubeObject, Stored } from "./kube-objects.ts";

/** One step of a JSON patch (RFC 6902). */
export interface JsonPatchStep {
  readonly op: "test" | "add" | "remove" | "replace";
  readonly path: string;
  readonly value?: unknown;
}

const path = "/metadata/finalizers";

/** Whether the object has the finalizer. */
export function hasFinalizer(object: KubeObject, finalizer: string): boolean {
  return object.metadata?.finalizers?.includes(finalizer) ?? false;
}

/** The object with the finalizer, after the others; the same object when it has it. */
export function withFinalizer<T extends KubeObject>(object: T, finalizer: string): T {
  if (hasFinalizer(object, finalizer)) return object;
  const finalizers = [...(object.metadata?.finalizers ?? []), finalizer];
  return { ...object, metadata: { ...object.metadata, finalizers } };
}

/** The object without the finalizer; the same object when it does not have it. */
export function withoutFinalizer<T extends KubeObject>(object: T, finalizer: string): T {
  if (!hasFinalizer(object, finalizer)) return object;
  const finalizers = (object.metadata?.finalizers ?? []).filter((name) => name !== finalizer);
  return { ...object, metadata: { ...object.metadata, finalizers } };
}

/**
 * The merge patch that stores the finalizers of `object`, which {@link withFinalizer} or {@link withoutFinalizer} made from
 * the version that was read. A merge patch replaces the whole list, so it names that version: it fails on an object that
 * changed meanwhile instead of dropping a finalizer of others.
 */
export function finalizersMergePatch({ metadata }: Stored): {
  readonly metadata: { readonly resourceVersion: string; readonly finalizers: readonly string[] | null };
} {
  const { finalizers, resourceVersion } = metadata;
  return { metadata: { resourceVersion, finalizers: finalizers?.length ? finalizers : null } };
}

/** The JSON patch that adds `finalizer`; `null`: the object has no list of finalizers yet. */
export function addFinalizerPatch(
  finalizers: readonly string[] | null | undefined,
  finalizer: string,
): readonly JsonPatchStep[] {
  // A missing list passes a test for null; one that others have made meanwhile fails it and is not replaced.
  if (finalizers === null || finalizers === undefined) {
    return [
      { op: "test", path, value: null },
      { op: "add", path, value: [finalizer] },
    ];
  }
  if (finalizers.length === 0) {
    return [
      { op: "test", path, value: [] },
      { op: "replace", path, value: [finalizer] },
    ];
  }
  // No test: to append drops no finalizer of others, whatever else the list holds by now.
  return [{ op: "add", path: `${path}/-`, value: finalizer }];
}

/**
 * The JSON patch that removes `finalizer`. It names the place and tests it, so that a list that changed meanwhile makes the
 * patch fail instead of dropping another finalizer.
 * @throws Error when it is not there
 */
export function removeFinalizerPatch(
  finalizers: readonly string[] | null | undefined,
  finalizer: string,
): readonly JsonPatchStep[] {
  const at = (finalizers ?? []).indexOf(finalizer);
  if (at < 0) throw new Error(`finalizer "${finalizer}" not found in list`);
  return [
    { op: "test", path: `${path}/${at}`, value: finalizer },
    { op: "remove", path: `${path}/${at}` },
  ];
}
