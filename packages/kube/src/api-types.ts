/**
 * The types of the API's objects that the volume stack speaks of, gathered so that other packages name one place. Others are in
 * the package kubernetes-types.
 */
export type {
  ControllerRevision,
  DaemonSet,
  Deployment,
  ReplicaSet,
  StatefulSet,
} from "kubernetes-types/apps/v1.js";
export type { Job } from "kubernetes-types/batch/v1.js";
export type { Lease } from "kubernetes-types/coordination/v1.js";
export type {
  ConfigMap,
  Container,
  ContainerStatus,
  CSIPersistentVolumeSource,
  EnvVar,
  Event,
  HTTPGetAction,
  LifecycleHandler,
  Node,
  NodeAddress,
  NodeCondition,
  NodeSelector,
  NodeSystemInfo,
  ObjectReference,
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimCondition,
  PersistentVolumeSpec,
  Pod,
  PodCondition,
  PodSpec,
  PodStatus,
  PodTemplateSpec,
  Probe,
  Secret,
  SecretReference,
  Taint,
  TopologySelectorTerm,
  TypedLocalObjectReference,
  Volume,
  VolumeNodeAffinity,
} from "kubernetes-types/core/v1.js";
export type { LabelSelector, ObjectMeta, OwnerReference } from "kubernetes-types/meta/v1.js";
export type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
export type {
  CSIDriver,
  CSINode,
  CSINodeDriver,
  CSIStorageCapacity,
  StorageClass,
  VolumeAttachment,
} from "kubernetes-types/storage/v1.js";
export type { VolumeAttributesClass } from "kubernetes-types/storage/v1alpha1.js";
