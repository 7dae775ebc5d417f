/**
 * What the API's types do not say: values that texts can have, values of members that are left out, and structs
 * that are replaced as a whole (`+enum`, `+default` and `+structType` in the types of the API).
 */
/** Values of `hostPath.type`. */
export const hostPathTypes: readonly string[] = [
  "",
  "BlockDevice",
  "CharDevice",
  "Directory",
  "DirectoryOrCreate",
  "File",
  "FileOrCreate",
  "Socket",
];

const reclaimPolicies = ["Delete", "Recycle", "Retain"];
const volumeModes = ["Block", "Filesystem"];
const pullPolicies = ["Always", "IfNotPresent", "Never"];
const protocols = ["SCTP", "TCP", "UDP"];
const terminationMessagePolicies = ["FallbackToLogsOnError", "File"];
const updateStrategies = ["OnDelete", "RollingUpdate"];

/** Values by `group.version.Type.member`. */
export const enumsOf: Readonly<Record<string, readonly string[]>> = {
  "apps.v1.DaemonSetUpdateStrategy.type": updateStrategies,
  "apps.v1.DeploymentStrategy.type": ["Recreate", "RollingUpdate"],
  "apps.v1.StatefulSetSpec.podManagementPolicy": ["OrderedReady", "Parallel"],
  "apps.v1.StatefulSetUpdateStrategy.type": updateStrategies,
  "core.v1.AzureDiskVolumeSource.cachingMode": ["None", "ReadOnly", "ReadWrite"],
  "core.v1.AzureDiskVolumeSource.kind": ["Dedicated", "Managed", "Shared"],
  "core.v1.Container.imagePullPolicy": pullPolicies,
  "core.v1.Container.terminationMessagePolicy": terminationMessagePolicies,
  "core.v1.ContainerPort.protocol": protocols,
  "core.v1.EphemeralContainer.imagePullPolicy": pullPolicies,
  "core.v1.EphemeralContainer.terminationMessagePolicy": terminationMessagePolicies,
  "core.v1.HostPathVolumeSource.type": hostPathTypes,
  "core.v1.NamespaceStatus.phase": ["Active", "Terminating"],
  "core.v1.NodeSelectorRequirement.operator": ["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"],
  "core.v1.NodeStatus.phase": ["Pending", "Running", "Terminated"],
  "core.v1.PersistentVolumeClaimSpec.volumeMode": volumeModes,
  "core.v1.PersistentVolumeClaimStatus.phase": ["Bound", "Lost", "Pending"],
  "core.v1.PersistentVolumeSpec.persistentVolumeReclaimPolicy": reclaimPolicies,
  "core.v1.PersistentVolumeSpec.volumeMode": volumeModes,
  "core.v1.PersistentVolumeStatus.phase": ["Available", "Bound", "Failed", "Pending", "Released"],
  "core.v1.PodSpec.dnsPolicy": ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"],
  "core.v1.PodSpec.preemptionPolicy": ["Never", "PreemptLowerPriority"],
  "core.v1.PodSpec.restartPolicy": ["Always", "Never", "OnFailure"],
  "core.v1.PodStatus.phase": ["Failed", "Pending", "Running", "Succeeded", "Unknown"],
  "core.v1.PodStatus.qosClass": ["BestEffort", "Burstable", "Guaranteed"],
  "core.v1.ServicePort.protocol": protocols,
  "core.v1.ServiceSpec.externalTrafficPolicy": ["Cluster", "Local"],
  "core.v1.ServiceSpec.sessionAffinity": ["ClientIP", "None"],
  "core.v1.ServiceSpec.type": ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
  "core.v1.Taint.effect": ["NoExecute", "NoSchedule", "PreferNoSchedule"],
  "core.v1.Toleration.effect": ["NoExecute", "NoSchedule", "PreferNoSchedule"],
  "core.v1.Toleration.operator": ["Equal", "Exists"],
  "storage.v1.StorageClass.reclaimPolicy": reclaimPolicies,
  "storage.v1.StorageClass.volumeBindingMode": ["Immediate", "WaitForFirstConsumer"],
};

/** Values of members that are left out, by `group.version.Type.member`. */
export const defaultsOf: Readonly<Record<string, unknown>> = {
  "core.v1.ContainerPort.protocol": "TCP",
  "core.v1.ServicePort.protocol": "TCP",
  "core.v1.ISCSIPersistentVolumeSource.iscsiInterface": "default",
  "core.v1.ISCSIVolumeSource.iscsiInterface": "default",
  "core.v1.RBDPersistentVolumeSource.keyring": "/etc/ceph/keyring",
  "core.v1.RBDPersistentVolumeSource.pool": "rbd",
  "core.v1.RBDPersistentVolumeSource.user": "admin",
  "core.v1.RBDVolumeSource.keyring": "/etc/ceph/keyring",
  "core.v1.RBDVolumeSource.pool": "rbd",
  "core.v1.RBDVolumeSource.user": "admin",
  "core.v1.ScaleIOPersistentVolumeSource.fsType": "xfs",
  "core.v1.ScaleIOPersistentVolumeSource.storageMode": "ThinProvisioned",
  "core.v1.ScaleIOVolumeSource.fsType": "xfs",
  "core.v1.ScaleIOVolumeSource.storageMode": "ThinProvisioned",
};

/** Structs that an apply replaces as a whole. */
export const atomicStructs: ReadonlySet<string> = new Set([
  "core.v1.ConfigMapKeySelector",
  "core.v1.LocalObjectReference",
  "core.v1.NodeSelector",
  "core.v1.NodeSelectorTerm",
  "core.v1.ObjectFieldSelector",
  "core.v1.ObjectReference",
  "core.v1.ResourceFieldSelector",
  "core.v1.SecretKeySelector",
  "core.v1.SecretReference",
  "core.v1.TopologySelectorTerm",
  "core.v1.TypedLocalObjectReference",
  "meta.v1.LabelSelector",
]);
