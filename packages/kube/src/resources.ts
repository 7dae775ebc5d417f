/**
 * The resources Longshore works with: where each is served and what its objects look like.
 * `versions` lists the versions our code can use, best first; discovery picks the first that the
 * server has.
 */
import type {
  ControllerRevision,
  DaemonSet,
  Deployment,
  ReplicaSet,
  StatefulSet,
} from "kubernetes-types/apps/v1.js";
import type { Job } from "kubernetes-types/batch/v1.js";
import type { Lease } from "kubernetes-types/coordination/v1.js";
import type {
  ConfigMap,
  Event,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  Secret,
  Service,
  ServiceAccount,
} from "kubernetes-types/core/v1.js";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import type {
  CSIDriver,
  CSINode,
  CSIStorageCapacity,
  StorageClass,
  VolumeAttachment,
} from "kubernetes-types/storage/v1.js";
import type { VolumeAttributesClass } from "kubernetes-types/storage/v1alpha1.js";
import type { KubeObject } from "./kube-objects.ts";

/** Describes one resource of the API. */
export interface Resource<T extends KubeObject> {
  /** API group; empty for the core group. */
  readonly group: string;
  /** Versions our code understands, best first. */
  readonly versions: readonly [string, ...string[]];
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Never there; carries the type of the resource's objects. */
  readonly objectType?: T;
}

function resource<T extends KubeObject>(
  group: string,
  versions: readonly [string, ...string[]],
  kind: string,
  plural: string,
  namespaced: boolean,
): Resource<T> {
  return { group, versions, kind, plural, namespaced };
}

/** Every built-in resource that Longshore uses, by its plural name. */
export const resources = {
  namespaces: resource<Namespace>("", ["v1"], "Namespace", "namespaces", false),
  nodes: resource<Node>("", ["v1"], "Node", "nodes", false),
  pods: resource<Pod>("", ["v1"], "Pod", "pods", true),
  persistentVolumes: resource<PersistentVolume>("", ["v1"], "PersistentVolume", "persistentvolumes", false),
  persistentVolumeClaims: resource<PersistentVolumeClaim>(
    "",
    ["v1"],
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
    true,
  ),
  secrets: resource<Secret>("", ["v1"], "Secret", "secrets", true),
  configMaps: resource<ConfigMap>("", ["v1"], "ConfigMap", "configmaps", true),
  events: resource<Event>("", ["v1"], "Event", "events", true),
  services: resource<Service>("", ["v1"], "Service", "services", true),
  serviceAccounts: resource<ServiceAccount>("", ["v1"], "ServiceAccount", "serviceaccounts", true),
  storageClasses: resource<StorageClass>("storage.k8s.io", ["v1"], "StorageClass", "storageclasses", false),
  volumeAttachments: resource<VolumeAttachment>(
    "storage.k8s.io",
    ["v1"],
    "VolumeAttachment",
    "volumeattachments",
    false,
  ),
  csiNodes: resource<CSINode>("storage.k8s.io", ["v1"], "CSINode", "csinodes", false),
  csiDrivers: resource<CSIDriver>("storage.k8s.io", ["v1", "v1beta1"], "CSIDriver", "csidrivers", false),
  csiStorageCapacities: resource<CSIStorageCapacity>(
    "storage.k8s.io",
    ["v1", "v1beta1"],
    "CSIStorageCapacity",
    "csistoragecapacities",
    true,
  ),
  volumeAttributesClasses: resource<VolumeAttributesClass>(
    "storage.k8s.io",
    ["v1", "v1beta1"],
    "VolumeAttributesClass",
    "volumeattributesclasses",
    false,
  ),
  leases: resource<Lease>("coordination.k8s.io", ["v1"], "Lease", "leases", true),
  statefulSets: resource<StatefulSet>("apps", ["v1"], "StatefulSet", "statefulsets", true),
  deployments: resource<Deployment>("apps", ["v1"], "Deployment", "deployments", true),
  replicaSets: resource<ReplicaSet>("apps", ["v1"], "ReplicaSet", "replicasets", true),
  daemonSets: resource<DaemonSet>("apps", ["v1"], "DaemonSet", "daemonsets", true),
  controllerRevisions: resource<ControllerRevision>(
    "apps",
    ["v1"],
    "ControllerRevision",
    "controllerrevisions",
    true,
  ),
  jobs: resource<Job>("batch", ["v1"], "Job", "jobs", true),
  podDisruptionBudgets: resource<PodDisruptionBudget>(
    "policy",
    ["v1", "v1beta1"],
    "PodDisruptionBudget",
    "poddisruptionbudgets",
    true,
  ),
} as const;

/** `group/version`, or `version` for the core group. */
export function apiVersionOf(resource: Resource<KubeObject>, version: string = resource.versions[0]): string {
  return resource.group === "" ? version : `${resource.group}/${version}`;
}
