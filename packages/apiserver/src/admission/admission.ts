/**
 * What happens to an object between the rules of its kind and the store: a list of named plugins,
 * run in order. They may change new and updated objects, or refuse them.
 */
import type { KubeObject, Stored } from "@longshore/kube";
import type { Admission, KindRequest, RegistryContext } from "../registry/context.ts";

/** One admission plugin. */
export interface AdmissionPlugin {
  /** Name as in `--enable-admission-plugins`. */
  readonly name: string;
  readonly onCreate?: (context: RegistryContext, request: KindRequest, object: KubeObject) => KubeObject;
  readonly onUpdate?: (
    context: RegistryContext,
    request: KindRequest,
    next: KubeObject,
    old: Stored,
  ) => KubeObject;
}

/** Runs `plugins` in order. */
export function admissionChain(plugins: readonly AdmissionPlugin[]): Admission {
  return {
    onCreate: (context, request, object) =>
      plugins.reduce((o, plugin) => plugin.onCreate?.(context, request, o) ?? o, object),
    onUpdate: (context, request, next, old) =>
      plugins.reduce((o, plugin) => plugin.onUpdate?.(context, request, o, old) ?? o, next),
  };
}
