/** The types of the API's objects, gathered so that other packages name one place. */
export type * from "kubernetes-types/apps/v1.js";
export type * from "kubernetes-types/coordination/v1.js";
export type * from "kubernetes-types/core/v1.js";
export type {
  Condition,
  LabelSelector,
  ListMeta,
  ObjectMeta,
  OwnerReference,
} from "kubernetes-types/meta/v1.js";
export type { Eviction, PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
export type * from "kubernetes-types/storage/v1.js";
export type { VolumeAttributesClass } from "kubernetes-types/storage/v1alpha1.js";
