/**
 * What happens to an object between the rules of its kind and the store: a list of named plugins,
 * run in order. They may change new and updated objects, or refuse them.
 */
import type { KubeObject, Stored } from "@longshore/kube";
import type { Admission, KindRequest, RegistryContext } from "../registry/registry-context.ts";

/**
 * One admission plugin. The registry calls it before it stores anything, synchronously: it reads the store, waits for
 * nothing and writes nothing. It sees what the plugins before it have made. A `KubeApiError` that it throws is the answer,
 * and nothing is stored. Objects are shared: a plugin that changes one returns a copy.
 */
export interface AdmissionPlugin {
  /** Name as in `--enable-admission-plugins`. */
  readonly name: string;
  /** Refuses a request, by throwing, before anything of it is done: also those to sub-resources, and deletions. */
  readonly onRequest?: (context: RegistryContext, request: KindRequest) => void;
  /** Returns the new object as it is to be stored, which is then validated. */
  readonly onCreate?: (context: RegistryContext, request: KindRequest, object: KubeObject) => KubeObject;
  /** Returns the changed object as it is to be stored, which is then validated; not asked about a change of the status. */
  readonly onUpdate?: (
    context: RegistryContext,
    request: KindRequest,
    next: KubeObject,
    old: Stored,
  ) => KubeObject;
  /** Refuses a change of the status, by throwing. */
  readonly onStatusUpdate?: (
    context: RegistryContext,
    request: KindRequest,
    next: KubeObject,
    old: Stored,
  ) => void;
  /** Called last, when nothing can refuse the write any more but the plugin itself: it may write what belongs to it. */
  readonly beforeCommit?: (
    context: RegistryContext,
    request: KindRequest,
    next: KubeObject,
    old: Stored | undefined,
  ) => void;
}

/** Runs `plugins` in order, each on what the one before it returned; the first that throws ends it. */
export function admissionChain(plugins: readonly AdmissionPlugin[]): Admission {
  return {
    onRequest(context, request) {
      for (const plugin of plugins) plugin.onRequest?.(context, request);
    },
    onStatusUpdate(context, request, next, old) {
      for (const plugin of plugins) plugin.onStatusUpdate?.(context, request, next, old);
    },
    beforeCommit(context, request, next, old) {
      for (const plugin of plugins) plugin.beforeCommit?.(context, request, next, old);
    },
    onCreate: (context, request, object) =>
      plugins.reduce((o, plugin) => plugin.onCreate?.(context, request, o) ?? o, object),
    onUpdate: (context, request, next, old) =>
      plugins.reduce((o, plugin) => plugin.onUpdate?.(context, request, o, old) ?? o, next),
  };
}
