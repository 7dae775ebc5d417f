/**
 * Lets claims go that others were cloned from, once they are deleted and no clone of them is under way
 * (docs/behaviour/sidecars.md 2.3, point 8).
 *
 * A clone begins by putting the finalizer on its source, which a claim that is being deleted refuses. Source and clones
 * are of one resource and come through one watch: a cache that shows the deletion shows every clone that began before it.
 */
import {
  type Actions,
  type Controller,
  type ControllerOptions,
  type Informer,
  type PersistentVolumeClaim,
  resources,
  type Stored,
  settled,
  startController,
  watches,
} from "@longshore/kube";
import { type CloneSourceStep, decideCloneSource, type ObservedCloneSource } from "./decide-clone-source.ts";
import {
  changeFinalizers,
  cloneSourceToCheck,
  isBeingCopied,
  type ProtectionContext,
} from "./protect-source.ts";

/** What the controller works with. */
export interface CloneSourceContext extends ProtectionContext {
  readonly claims: Informer<PersistentVolumeClaim>;
}

/**
 * Starts the controller of claims that hold the clone finalizer. It reads the index `byCloneSource` of `claims`, and only
 * removes finalizers: a claim that is not being deleted keeps its own.
 */
export function startCloneSources(
  context: CloneSourceContext,
  queue: Pick<ControllerOptions<never, never>, "workers" | "backoff" | "retryRate">,
): Controller {
  const { env, claims } = context;
  const sourceOf = (claim: Stored<PersistentVolumeClaim>) => {
    const key = cloneSourceToCheck(context, claim);
    return key === undefined ? [] : [key];
  };
  return startController<ObservedCloneSource, CloneSourceStep>(env, {
    ...queue,
    name: "provisioner-clone-sources",
    sources: [watches(claims, sourceOf)],
    observe: (key) => observeCloneSource(context, key),
    decide: decideCloneSource,
    actions: cloneSourceActions(context),
  });
}

function observeCloneSource({ claims }: CloneSourceContext, key: string): ObservedCloneSource | undefined {
  const source = claims.get(key);
  if (source === undefined) return undefined;
  return { source, isBeingCopied: claims.byIndex("byCloneSource", key).some(isBeingCopied) };
}

function cloneSourceActions(context: CloneSourceContext): Actions<ObservedCloneSource, CloneSourceStep> {
  return {
    settle: () => settled,
    async removeFinalizer(_, { source }, { signal }) {
      const { name, namespace = "" } = source.metadata;
      const clone = { kind: "clone", name, namespace, crossesNamespaces: false } as const;
      // Not a claim that was made under the same name since.
      const isMeant = ({ metadata }: Stored<PersistentVolumeClaim>) => metadata.uid === source.metadata.uid;
      await changeFinalizers(context, resources.persistentVolumeClaims, clone, false, signal, isMeant);
      return settled;
    },
  };
}
