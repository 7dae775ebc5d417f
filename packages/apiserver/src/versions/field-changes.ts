/**
 * Members of types that were not there in 1.20, by the minor version that brought them, and those that have gone
 * since. Source: the published types of the releases (npm `kubernetes-types` 1.21 to 1.30, the OpenAPI document of
 * 1.20.2, the wire facts of API v0.36) and, between those, the release notes. Members of types that are reached
 * through a newer member only are not listed.
 */

/** Minor version → type → the members that it brought. */
export const fieldsSince: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  21: {
    "apps.v1.RollingUpdateDaemonSet": "maxSurge",
    "batch.v1.CronJobStatus": "lastSuccessfulTime",
    "batch.v1.JobSpec": "completionMode suspend",
    "batch.v1.JobStatus": "completedIndexes",
    "core.v1.PodAffinityTerm": "namespaceSelector",
    "core.v1.Probe": "terminationGracePeriodSeconds",
    "core.v1.ServiceSpec": "internalTrafficPolicy loadBalancerClass",
    "discovery.v1.Endpoint": "deprecatedTopology hints zone",
    "networking.v1.IngressClassParametersReference": "namespace scope",
    "networking.v1.NetworkPolicyPort": "endPort",
    "policy.v1.PodDisruptionBudgetStatus": "conditions",
    "storage.v1.CSIStorageCapacity": "maximumVolumeSize",
  },
  22: {
    "apps.v1.StatefulSetSpec": "minReadySeconds",
    "apps.v1.StatefulSetStatus": "availableReplicas",
    "batch.v1.JobStatus": "uncountedTerminatedPods",
    "certificates.v1.CertificateSigningRequestSpec": "expirationSeconds",
    "core.v1.PersistentVolumeClaimSpec": "dataSourceRef",
    "core.v1.WindowsSecurityContextOptions": "hostProcess",
    "meta.v1.ManagedFieldsEntry": "subresource",
  },
  23: {
    "apps.v1.StatefulSetSpec": "persistentVolumeClaimRetentionPolicy",
    "core.v1.PersistentVolumeClaimStatus": "allocatedResources",
    "core.v1.PodSpec": "os",
    "core.v1.Probe": "grpc",
  },
  24: {
    "apps.v1.RollingUpdateStatefulSetStrategy": "maxUnavailable",
    "batch.v1.CronJobSpec": "timeZone",
    "batch.v1.JobStatus": "ready",
    "core.v1.TopologySpreadConstraint": "minDomains",
  },
  25: {
    "batch.v1.JobSpec": "podFailurePolicy",
    "core.v1.CSIPersistentVolumeSource": "nodeExpandSecretRef",
    "core.v1.PodSpec": "hostUsers",
    "core.v1.TopologySpreadConstraint": "matchLabelKeys nodeAffinityPolicy nodeTaintsPolicy",
    "storage.v1.CSIDriverSpec": "seLinuxMount",
  },
  26: {
    "apps.v1.StatefulSetSpec": "ordinals",
    "core.v1.PodSpec": "resourceClaims schedulingGates",
    "core.v1.ResourceRequirements": "claims",
    "policy.v1.PodDisruptionBudgetSpec": "unhealthyPodEvictionPolicy",
  },
  27: {
    "core.v1.Container": "resizePolicy",
    "core.v1.ContainerStatus": "allocatedResources resources",
    "core.v1.EphemeralContainer": "resizePolicy",
    "core.v1.PodStatus": "resize",
  },
  28: {
    "admissionregistration.v1.MutatingWebhook": "matchConditions",
    "admissionregistration.v1.ValidatingWebhook": "matchConditions",
    "batch.v1.JobSpec": "backoffLimitPerIndex maxFailedIndexes podReplacementPolicy",
    "batch.v1.JobStatus": "failedIndexes terminating",
    "core.v1.Container": "restartPolicy",
    "core.v1.EphemeralContainer": "restartPolicy",
    "core.v1.PersistentVolumeClaimStatus": "allocatedResourceStatuses",
    "core.v1.PersistentVolumeStatus": "lastPhaseTransitionTime",
    "core.v1.PodStatus": "hostIPs resourceClaimStatuses",
  },
  29: {
    "core.v1.LifecycleHandler": "sleep",
    "core.v1.LoadBalancerIngress": "ipMode",
    "core.v1.PersistentVolumeClaimSpec": "volumeAttributesClassName",
    "core.v1.PersistentVolumeClaimStatus": "currentVolumeAttributesClassName modifyVolumeStatus",
    "core.v1.PersistentVolumeSpec": "volumeAttributesClassName",
    "core.v1.PodAffinityTerm": "matchLabelKeys mismatchLabelKeys",
    "core.v1.VolumeProjection": "clusterTrustBundle",
  },
  30: {
    "apiextensions.v1.CustomResourceDefinitionVersion": "selectableFields",
    "batch.v1.JobSpec": "managedBy successPolicy",
    "core.v1.ContainerStatus": "volumeMounts",
    "core.v1.NodeStatus": "runtimeHandlers",
    "core.v1.PodSecurityContext": "appArmorProfile",
    "core.v1.SecurityContext": "appArmorProfile",
    "core.v1.ServiceSpec": "trafficDistribution",
    "core.v1.VolumeMount": "recursiveReadOnly",
  },
  31: {
    "authorization.v1.ResourceAttributes": "fieldSelector labelSelector",
    "coordination.v1.LeaseSpec": "preferredHolder strategy",
    "core.v1.ContainerStatus": "allocatedResourcesStatus user",
    "core.v1.NodeStatus": "features",
    "core.v1.PodSecurityContext": "supplementalGroupsPolicy",
    "core.v1.Volume": "image",
  },
  32: {
    "core.v1.PodSecurityContext": "seLinuxChangePolicy",
    "core.v1.PodSpec": "resources",
    "meta.v1.DeleteOptions": "ignoreStoreReadErrorWithClusterBreakingPotential",
  },
  33: {
    "apps.v1.DeploymentStatus": "terminatingReplicas",
    "apps.v1.ReplicaSetStatus": "terminatingReplicas",
    "core.v1.ContainerStatus": "stopSignal",
    "core.v1.Lifecycle": "stopSignal",
    "core.v1.NodeSystemInfo": "swap",
    "core.v1.PodCondition": "observedGeneration",
    "core.v1.PodStatus": "observedGeneration",
    "storage.v1.CSIDriverSpec": "nodeAllocatableUpdatePeriodSeconds",
    "storage.v1.VolumeError": "errorCode",
  },
  34: {
    "core.v1.Container": "restartPolicyRules",
    "core.v1.EnvVarSource": "fileKeyRef",
    "core.v1.EphemeralContainer": "restartPolicyRules",
    "core.v1.PodSpec": "hostnameOverride",
    "core.v1.PodStatus": "extendedResourceClaimStatus",
    "core.v1.VolumeProjection": "podCertificate",
  },
  35: {
    "core.v1.NodeStatus": "declaredFeatures",
    "core.v1.PodStatus": "allocatedResources resources",
    "storage.v1.CSIDriverSpec": "serviceAccountTokenInSecrets",
  },
  36: {
    "core.v1.PodSpec": "schedulingGroup",
    "core.v1.PodStatus": "nodeAllocatableResourceClaimStatuses",
    "meta.v1.ListMeta": "shardInfo",
    "storage.v1.CSIDriverSpec": "preventPodSchedulingIfMissing",
  },
};

/** Minor version → type → the members that it no longer has. */
export const fieldsUntil: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  21: { "discovery.v1.Endpoint": "topology" },
  22: { "core.v1.ServiceSpec": "topologyKeys" },
};
