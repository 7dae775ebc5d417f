/**
 * Which pods belong to a set, by its selector and their controller. Pure. Source: kubernetes pkg/controller
 * PodControllerRefManager: a pod without a controller that the selector matches is adopted; one whose labels have changed is
 * released.
 */
import {
  isDeleting,
  isPodTerminal,
  type KubeObject,
  type LabelSelector,
  labelSelectorMatches,
  type OwnerReference,
  type Pod,
  type Stored,
} from "@longshore/kube";

/** An object that controls pods or sets of pods. */
export interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly selector: LabelSelector | undefined;
  readonly isDeleting: boolean;
}

/** What belongs to the owner, and what is to change about it. */
export interface Claimed<T extends KubeObject> {
  readonly owned: readonly Stored<T>[];
  readonly adopt: readonly Stored<T>[];
  readonly release: readonly Stored<T>[];
}

/** Claims of `controlled`, which the owner controls, and of `orphans` of its namespace, which nothing controls. */
export function claimObjects<T extends KubeObject>(
  owner: Owner,
  controlled: readonly Stored<T>[],
  orphans: readonly Stored<T>[],
): Claimed<T> {
  const matches = (object: Stored<T>) => labelSelectorMatches(owner.selector, object.metadata.labels);
  const adopt = owner.isDeleting
    ? []
    : orphans.filter((object) => object.metadata.deletionTimestamp === undefined && matches(object));
  return {
    owned: [...controlled.filter(matches), ...adopt],
    adopt,
    release: controlled.filter((object) => !isDeleting(object) && !matches(object)),
  };
}

/** Orphans that count: a pod that has come to its end is not adopted. */
export function adoptable(pods: readonly Stored<Pod>[]): readonly Stored<Pod>[] {
  return pods.filter((pod) => !isPodTerminal(pod));
}

/** The reference by which the owner controls an object. */
export function controllerReference({ apiVersion, kind, name, uid }: Owner): OwnerReference {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}
