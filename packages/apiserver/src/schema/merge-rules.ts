/**
 * How lists are merged, field by field: the `x-kubernetes-*` extensions of the published schema
 * (OpenAPI v2 document of Kubernetes 1.20).
 */

/** How one field is patched and applied. */
export interface MergeRule {
  /** Member that identifies the items of a list of objects in a strategic merge patch. */
  readonly mergeKey?: string;
  /** `merge`, `retainKeys`, or both with a comma between. */
  readonly strategy?: string;
  readonly listType?: "atomic" | "set" | "map";
  readonly listMapKeys?: readonly string[];
}

/** The rules, by `group.version.Type.field`. */
export const mergeRules: Readonly<Record<string, MergeRule>> = {
  "admissionregistration.v1.MutatingWebhook.matchConditions": {
    mergeKey: "name",
    strategy: "merge",
    listType: "map",
    listMapKeys: ["name"],
  },
  "admissionregistration.v1.MutatingWebhookConfiguration.webhooks": { mergeKey: "name", strategy: "merge" },
  "admissionregistration.v1.ValidatingWebhook.matchConditions": {
    mergeKey: "name",
    strategy: "merge",
    listType: "map",
    listMapKeys: ["name"],
  },
  "admissionregistration.v1.ValidatingWebhookConfiguration.webhooks": { mergeKey: "name", strategy: "merge" },
  "apps.v1.DaemonSetStatus.conditions": { mergeKey: "type", strategy: "merge" },
  "apps.v1.DeploymentSpec.strategy": { strategy: "retainKeys" },
  "apps.v1.DeploymentStatus.conditions": { mergeKey: "type", strategy: "merge" },
  "apps.v1.ReplicaSetStatus.conditions": { mergeKey: "type", strategy: "merge" },
  "apps.v1.StatefulSetStatus.conditions": { mergeKey: "type", strategy: "merge" },
  "core.v1.ComponentStatus.conditions": { mergeKey: "type", strategy: "merge" },
  "core.v1.Container.env": { mergeKey: "name", strategy: "merge" },
  "core.v1.Container.ports": {
    mergeKey: "containerPort",
    strategy: "merge",
    listType: "map",
    listMapKeys: ["containerPort", "protocol"],
  },
  "core.v1.Container.volumeDevices": { mergeKey: "devicePath", strategy: "merge" },
  "core.v1.Container.volumeMounts": { mergeKey: "mountPath", strategy: "merge" },
  "core.v1.EphemeralContainer.env": { mergeKey: "name", strategy: "merge" },
  "core.v1.EphemeralContainer.volumeDevices": { mergeKey: "devicePath", strategy: "merge" },
  "core.v1.EphemeralContainer.volumeMounts": { mergeKey: "mountPath", strategy: "merge" },
  "core.v1.LoadBalancerIngress.ports": { listType: "atomic" },
  "core.v1.NamespaceStatus.conditions": { mergeKey: "type", strategy: "merge" },
  "core.v1.NodeSpec.podCIDRs": { strategy: "merge" },
  "core.v1.NodeStatus.addresses": { mergeKey: "type", strategy: "merge" },
  "core.v1.NodeStatus.conditions": { mergeKey: "type", strategy: "merge" },
  "core.v1.PersistentVolumeClaimStatus.conditions": { mergeKey: "type", strategy: "merge" },
  "core.v1.PodSpec.containers": { mergeKey: "name", strategy: "merge" },
  "core.v1.PodSpec.ephemeralContainers": { mergeKey: "name", strategy: "merge" },
  "core.v1.PodSpec.hostAliases": { mergeKey: "ip", strategy: "merge" },
  "core.v1.PodSpec.imagePullSecrets": { mergeKey: "name", strategy: "merge" },
  "core.v1.PodSpec.initContainers": { mergeKey: "name", strategy: "merge" },
  "core.v1.PodSpec.topologySpreadConstraints": {
    mergeKey: "topologyKey",
    strategy: "merge",
    listType: "map",
    listMapKeys: ["topologyKey", "whenUnsatisfiable"],
  },
  "core.v1.PodSpec.volumes": { mergeKey: "name", strategy: "merge,retainKeys" },
  "core.v1.PodStatus.conditions": { mergeKey: "type", strategy: "merge" },
  "core.v1.PodStatus.podIPs": { mergeKey: "ip", strategy: "merge" },
  "core.v1.ReplicationControllerStatus.conditions": { mergeKey: "type", strategy: "merge" },
  "core.v1.ServiceAccount.secrets": { mergeKey: "name", strategy: "merge" },
  "core.v1.ServiceSpec.clusterIPs": { listType: "atomic" },
  "core.v1.ServiceSpec.ipFamilies": { listType: "atomic" },
  "core.v1.ServiceSpec.ports": {
    mergeKey: "port",
    strategy: "merge",
    listType: "map",
    listMapKeys: ["port", "protocol"],
  },
  "core.v1.ServiceStatus.conditions": {
    mergeKey: "type",
    strategy: "merge",
    listType: "map",
    listMapKeys: ["type"],
  },
  "storage.v1.CSIDriverSpec.tokenRequests": { listType: "atomic" },
  "storage.v1.CSIDriverSpec.volumeLifecycleModes": { listType: "set" },
  "storage.v1.CSINodeSpec.drivers": { mergeKey: "name", strategy: "merge" },
  "meta.v1.ObjectMeta.finalizers": { strategy: "merge" },
  "meta.v1.ObjectMeta.ownerReferences": { mergeKey: "uid", strategy: "merge" },
};
