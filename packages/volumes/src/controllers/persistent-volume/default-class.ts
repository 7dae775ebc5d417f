/**
 * The default class, for a claim that was made before there was one. Pure. Source: docs/behaviour/controllers.md B3,
 * "default class"; Kubernetes KEP-3333.
 */
import type { PersistentVolumeClaim, StorageClass, Stored } from "@longshore/kube";
import { betaStorageClassAnnotation } from "@longshore/storage";

const defaultClassAnnotations = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];

/** Whether the class is one that claims without a class get. */
export function isDefaultClass({ metadata }: StorageClass): boolean {
  return defaultClassAnnotations.some((key) => metadata?.annotations?.[key] === "true");
}

/** Whether the claim leaves its class open. An empty class is a choice: it gets no default. */
export function leavesClassOpen(claim: PersistentVolumeClaim): boolean {
  return (
    claim.spec?.storageClassName === undefined &&
    claim.metadata?.annotations?.[betaStorageClassAnnotation] === undefined
  );
}

/** The default class: of several the newest, and of those made in one second the first by name. */
export function newestDefaultClass(classes: readonly Stored<StorageClass>[]): string | undefined {
  const createdAt = ({ metadata }: Stored<StorageClass>) => Date.parse(metadata.creationTimestamp ?? "") || 0;
  return classes.filter(isDefaultClass).reduce<Stored<StorageClass> | undefined>((best, next) => {
    if (best === undefined) return next;
    const laterMs = createdAt(next) - createdAt(best);
    return laterMs > 0 || (laterMs === 0 && next.metadata.name < best.metadata.name) ? next : best;
  }, undefined)?.metadata.name;
}
