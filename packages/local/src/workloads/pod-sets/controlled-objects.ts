/** Indexes of objects by who controls them, for the controllers of sets. */
import {
  type IndexFunction,
  type Informer,
  type KubeObject,
  keyOf,
  labelSelectorMatches,
  type Source,
  type Stored,
  watches,
} from "@longshore/kube";
import type { Owner } from "./claim-pods.ts";

const byControllerIndex = "controllerUID";
const orphansIndex = "orphansOfNamespace";
const inNamespaceIndex = "namespace";

const controllerOf = (object: KubeObject) =>
  object.metadata?.ownerReferences?.find(({ controller }) => controller === true);

/** The indexes that the functions below read. */
export const ownershipIndexes: Readonly<Record<string, IndexFunction<KubeObject>>> = {
  [byControllerIndex]: (object) => {
    const uid = controllerOf(object)?.uid;
    return uid === undefined ? [] : [uid];
  },
  [orphansIndex]: (object) =>
    controllerOf(object) === undefined ? [object.metadata?.namespace ?? "default"] : [],
};

/** The index of owners that {@link ownsOrMayAdopt} reads. */
export const ownerIndexes: Readonly<Record<string, IndexFunction<KubeObject>>> = {
  [inNamespaceIndex]: (object) => [object.metadata?.namespace ?? "default"],
};

/** The objects that this owner controls. */
export function controlledBy<T extends KubeObject>(cache: Informer<T>, uid: string): readonly Stored<T>[] {
  return cache.byIndex(byControllerIndex, uid);
}

/** The objects of the namespace that nothing controls. */
export function orphansIn<T extends KubeObject>(cache: Informer<T>, namespace: string): readonly Stored<T>[] {
  return cache.byIndex(orphansIndex, namespace);
}

/** Wakes the owner of an object that changes; for one that nothing controls, the owners whose selectors match it. */
export function ownsOrMayAdopt<T extends KubeObject, O extends KubeObject>(
  cache: Informer<T>,
  owners: Informer<O>,
  ownerOf: (object: Stored<O>) => Owner,
): Source {
  return watches(cache, (object) => {
    const namespace = object.metadata.namespace ?? "default";
    const controller = controllerOf(object);
    if (controller !== undefined) {
      const key = `${namespace}/${controller.name}`;
      const owner = owners.get(key);
      return owner !== undefined && ownerOf(owner).uid === controller.uid ? [key] : [];
    }
    return owners
      .byIndex(inNamespaceIndex, namespace)
      .filter((owner) => labelSelectorMatches(ownerOf(owner).selector, object.metadata.labels))
      .map(keyOf);
  });
}
