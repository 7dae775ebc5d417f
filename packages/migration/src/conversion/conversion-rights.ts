/** The rights that a conversion needs in a cluster, as objects of RBAC. */
import type { KubeObject } from "@longshore/kube";
import { crossingNamespace } from "../crossing/journal-store.ts";

const core = [""];
const read = ["get", "list", "watch"];

const everywhere = [
  {
    apiGroups: core,
    resources: ["persistentvolumes", "persistentvolumeclaims"],
    verbs: [...read, "create", "patch", "delete"],
  },
  { apiGroups: core, resources: ["pods", "nodes"], verbs: read },
  {
    apiGroups: ["storage.k8s.io"],
    resources: ["volumeattachments", "csinodes", "csidrivers"],
    verbs: read,
  },
  {
    apiGroups: ["snapshot.storage.k8s.io"],
    resources: ["volumesnapshots", "volumesnapshotcontents"],
    verbs: ["list"],
  },
  // Classes and StatefulSets are only written where they are to be replaced.
  {
    apiGroups: ["storage.k8s.io"],
    resources: ["storageclasses"],
    verbs: [...read, "create", "patch", "delete"],
  },
  { apiGroups: ["apps"], resources: ["statefulsets"], verbs: ["create", "delete"] },
  // Workloads are only patched where they are to be scaled.
  {
    apiGroups: ["apps"],
    resources: ["statefulsets", "deployments", "replicasets"],
    verbs: ["get", "list", "patch"],
  },
  // Others whose pods may have a disk.
  { apiGroups: ["apps"], resources: ["daemonsets"], verbs: ["list"] },
  { apiGroups: ["batch"], resources: ["jobs", "cronjobs"], verbs: ["list"] },
  { apiGroups: core, resources: ["replicationcontrollers"], verbs: ["list"] },
  // What names the cluster.
  { apiGroups: core, resources: ["namespaces"], verbs: ["get"], resourceNames: ["kube-system"] },
];

const inKubeSystem = [
  { apiGroups: core, resources: ["configmaps"], verbs: ["get", "list", "create", "update"] },
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get", "create", "update"] },
];

const apiVersion = "rbac.authorization.k8s.io/v1";
const name = "longshore-convert";

/** A ClusterRole, and a Role in the namespace of the journals and the Lease. */
export function conversionRoles(): readonly KubeObject[] {
  return [
    { apiVersion, kind: "ClusterRole", metadata: { name }, rules: everywhere } as KubeObject,
    {
      apiVersion,
      kind: "Role",
      metadata: { name, namespace: crossingNamespace },
      rules: inKubeSystem,
    } as KubeObject,
  ];
}
