/** The kinds that a deployment consists of, and where the API serves each. */
import { type KubeObject, type Resource, resources } from "@longshore/kube";

function kind(
  group: string,
  versions: readonly [string, ...string[]],
  name: string,
  plural: string,
  namespaced: boolean,
): Resource<KubeObject> {
  return { group, versions, kind: name, plural, namespaced };
}

const rbac = "rbac.authorization.k8s.io";
const groupSnapshots = "groupsnapshot.storage.k8s.io";

/** Snapshots' kinds, which a cluster may lack. */
export const snapshotClasses = kind(
  "snapshot.storage.k8s.io",
  ["v1", "v1beta1"],
  "VolumeSnapshotClass",
  "volumesnapshotclasses",
  false,
);
/** See {@link snapshotClasses}. */
export const snapshotContents = kind(
  "snapshot.storage.k8s.io",
  ["v1", "v1beta1"],
  "VolumeSnapshotContent",
  "volumesnapshotcontents",
  false,
);

/** All of them, in the order in which they are taken away again: what refers to others first. */
export const deployedKinds: readonly Resource<KubeObject>[] = [
  resources.podDisruptionBudgets,
  resources.statefulSets,
  resources.deployments,
  resources.daemonSets,
  kind(
    groupSnapshots,
    ["v1", "v1beta2", "v1beta1"],
    "VolumeGroupSnapshotClass",
    "volumegroupsnapshotclasses",
    false,
  ),
  snapshotClasses,
  resources.storageClasses,
  resources.csiDrivers,
  kind(rbac, ["v1"], "RoleBinding", "rolebindings", true),
  kind(rbac, ["v1"], "Role", "roles", true),
  kind(rbac, ["v1"], "ClusterRoleBinding", "clusterrolebindings", false),
  kind(rbac, ["v1"], "ClusterRole", "clusterroles", false),
  resources.serviceAccounts,
  resources.namespaces,
];

/** The resource of an object. @throws Error when it is not one of {@link deployedKinds} */
export function resourceOf(object: KubeObject): Resource<KubeObject> {
  const { kind: name, apiVersion = "" } = object;
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
  const found = deployedKinds.find((resource) => resource.kind === name && resource.group === group);
  if (found === undefined) throw new Error(`${name} of ${apiVersion} is not a part of a deployment`);
  return found;
}
