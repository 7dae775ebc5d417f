/** The kinds that the fuzz of authorization asks for, with a sound object of each. */
import type { KubeObject } from "@longshore/kube";

/** A kind of the fuzz. */
export interface FuzzKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly subresources: readonly string[];
  /** The members of an object other than its metadata. */
  readonly rest: object;
}

const template = {
  metadata: { labels: { app: "a" } },
  spec: { containers: [{ name: "c", image: "i" }] },
};
const rbac = "rbac.authorization.k8s.io";
const getSecrets = { rules: [{ verbs: ["get"], apiGroups: [""], resources: ["secrets"] }] };
const bindsAdmin = {
  roleRef: { apiGroup: rbac, kind: "ClusterRole", name: "cluster-admin" },
  subjects: [{ kind: "User", apiGroup: rbac, name: "no-user" }],
};

function kind(group: string, name: string, plural: string, more: Partial<FuzzKind> = {}): FuzzKind {
  return { group, version: "v1", kind: name, plural, namespaced: true, subresources: [], rest: {}, ...more };
}
const inCluster = { namespaced: false };

/** The kinds of the authorization fuzz. The last three are of definitions. */
export const fuzzKinds: readonly FuzzKind[] = [
  kind("", "Pod", "pods", {
    subresources: ["status", "binding", "eviction", "ephemeralcontainers", "resize", "log"],
    rest: { spec: { containers: [{ name: "c", image: "i" }] } },
  }),
  kind("", "Secret", "secrets", { rest: { data: { key: "dmFsdWU=" }, type: "Opaque" } }),
  kind("", "ConfigMap", "configmaps", { rest: { data: { key: "value" } } }),
  kind("", "ServiceAccount", "serviceaccounts", { subresources: ["token"] }),
  kind("", "PersistentVolumeClaim", "persistentvolumeclaims", {
    subresources: ["status"],
    rest: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
  }),
  kind("", "Node", "nodes", { ...inCluster, subresources: ["status"] }),
  kind("", "Namespace", "namespaces", {
    ...inCluster,
    subresources: ["status", "finalize"],
    rest: { spec: { finalizers: ["kubernetes"] } },
  }),
  kind("", "PersistentVolume", "persistentvolumes", {
    ...inCluster,
    subresources: ["status"],
    rest: {
      spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/a" } },
    },
  }),
  kind("apps", "Deployment", "deployments", {
    subresources: ["status", "scale"],
    rest: { spec: { replicas: 1, selector: { matchLabels: { app: "a" } }, template } },
  }),
  kind("storage.k8s.io", "StorageClass", "storageclasses", { ...inCluster, rest: { provisioner: "d" } }),
  kind("coordination.k8s.io", "Lease", "leases", { rest: { spec: { holderIdentity: "x" } } }),
  kind("policy", "PodDisruptionBudget", "poddisruptionbudgets", {
    subresources: ["status"],
    rest: { spec: { minAvailable: 1, selector: { matchLabels: { app: "a" } } } },
  }),
  kind(rbac, "ClusterRole", "clusterroles", { ...inCluster, rest: getSecrets }),
  kind(rbac, "ClusterRoleBinding", "clusterrolebindings", { ...inCluster, rest: bindsAdmin }),
  kind(rbac, "Role", "roles", { rest: getSecrets }),
  kind(rbac, "RoleBinding", "rolebindings", { rest: bindsAdmin }),
  kind("x.example.com", "Thing", "things", {
    subresources: ["status", "scale"],
    rest: { spec: { replicas: 1 } },
  }),
  kind("x.example.com", "Gadget", "gadgets", {
    ...inCluster,
    subresources: ["status", "scale"],
    rest: { spec: { replicas: 1 } },
  }),
  // The names of custom kinds may be those of others.
  kind("x.example.com", "Space", "namespaces", { ...inCluster, subresources: ["status", "scale"] }),
];

/** The object of that name, with what is said of its metadata. */
export function fuzzObject(of: FuzzKind, namespace: string, name: string, metadata: object = {}): KubeObject {
  const apiVersion = of.group === "" ? of.version : `${of.group}/${of.version}`;
  const where = of.namespaced ? { namespace } : {};
  return { apiVersion, kind: of.kind, metadata: { name, ...where, ...metadata }, ...of.rest } as KubeObject;
}

/** `plural.group`, the table in which the kind's objects are stored. */
export function tableOf({ group, plural }: FuzzKind): string {
  return group === "" ? plural : `${plural}.${group}`;
}
