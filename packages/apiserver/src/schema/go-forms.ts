/**
 * Which members of the API's types distinguish "missing" from empty: in the reference they are pointers. Every other
 * optional member that is an empty text, zero, false, or an empty list or map, is the same as a missing one,
 * and is dropped (Go's `omitempty`). Source: the types of k8s.io/api.
 */

/** Type → its optional scalar members that are pointers. */
const pointers: Readonly<Record<string, string>> = {
  "admissionregistration.v1.MutatingWebhook":
    "failurePolicy matchPolicy sideEffects timeoutSeconds reinvocationPolicy",
  "admissionregistration.v1.RuleWithOperations": "scope",
  "admissionregistration.v1.ServiceReference": "path port",
  "admissionregistration.v1.ValidatingWebhook": "failurePolicy matchPolicy sideEffects timeoutSeconds",
  "admissionregistration.v1.WebhookClientConfig": "url",
  "apps.v1.ControllerRevision": "revision",
  "apps.v1.DaemonSetSpec": "revisionHistoryLimit",
  "apps.v1.DaemonSetStatus": "collisionCount",
  "apps.v1.DeploymentSpec": "replicas revisionHistoryLimit progressDeadlineSeconds",
  "apps.v1.DeploymentStatus": "collisionCount terminatingReplicas",
  "apps.v1.ReplicaSetSpec": "replicas",
  "apps.v1.ReplicaSetStatus": "terminatingReplicas",
  "apps.v1.RollingUpdateDaemonSet": "maxUnavailable maxSurge",
  "apps.v1.RollingUpdateDeployment": "maxUnavailable maxSurge",
  "apps.v1.RollingUpdateStatefulSetStrategy": "partition maxUnavailable",
  "apps.v1.StatefulSetSpec": "replicas revisionHistoryLimit",
  "apps.v1.StatefulSetStatus": "collisionCount",
  "autoscaling.v1.HorizontalPodAutoscalerSpec": "minReplicas targetCPUUtilizationPercentage",
  "autoscaling.v1.HorizontalPodAutoscalerStatus": "observedGeneration currentCPUUtilizationPercentage",
  "autoscaling.v2.HPAScalingRules": "stabilizationWindowSeconds selectPolicy",
  "autoscaling.v2.HorizontalPodAutoscalerSpec": "minReplicas",
  "autoscaling.v2.HorizontalPodAutoscalerStatus": "observedGeneration",
  "autoscaling.v2.MetricTarget": "value averageValue averageUtilization",
  "autoscaling.v2.MetricValueStatus": "value averageValue averageUtilization",
  "authentication.v1.TokenRequestSpec": "expirationSeconds",
  "batch.v1.CronJobSpec":
    "startingDeadlineSeconds suspend successfulJobsHistoryLimit failedJobsHistoryLimit timeZone",
  "batch.v1.JobSpec":
    "parallelism completions activeDeadlineSeconds backoffLimit manualSelector ttlSecondsAfterFinished completionMode suspend podReplacementPolicy managedBy backoffLimitPerIndex maxFailedIndexes",
  "batch.v1.JobStatus": "terminating ready failedIndexes",
  "batch.v1.PodFailurePolicyOnExitCodesRequirement": "containerName",
  "batch.v1.SuccessPolicyRule": "succeededIndexes succeededCount",
  "coordination.v1.LeaseSpec":
    "holderIdentity leaseDurationSeconds leaseTransitions strategy preferredHolder",
  "core.v1.AzureDiskVolumeSource": "cachingMode fsType readOnly kind",
  "core.v1.AzureFilePersistentVolumeSource": "secretNamespace",
  "core.v1.CSIVolumeSource": "readOnly fsType",
  "core.v1.ClientIPConfig": "timeoutSeconds",
  "core.v1.ClusterTrustBundleProjection": "name signerName optional",
  "core.v1.ConfigMap": "immutable",
  "core.v1.ConfigMapEnvSource": "optional",
  "core.v1.ConfigMapKeySelector": "optional",
  "core.v1.ConfigMapProjection": "optional",
  "core.v1.ConfigMapVolumeSource": "defaultMode optional",
  "core.v1.Container": "restartPolicy",
  "core.v1.ContainerStatus": "started stopSignal",
  "core.v1.DownwardAPIVolumeFile": "mode",
  "core.v1.DownwardAPIVolumeSource": "defaultMode",
  "core.v1.EndpointAddress": "nodeName",
  "core.v1.EndpointPort": "appProtocol",
  "core.v1.EphemeralContainer": "restartPolicy",
  "core.v1.FCVolumeSource": "lun",
  "core.v1.FileKeySelector": "optional",
  "core.v1.GRPCAction": "service",
  "core.v1.GlusterfsPersistentVolumeSource": "endpointsNamespace",
  "core.v1.HostPathVolumeSource": "type",
  "core.v1.ISCSIPersistentVolumeSource": "initiatorName",
  "core.v1.ISCSIVolumeSource": "initiatorName",
  "core.v1.KeyToPath": "mode",
  "core.v1.Lifecycle": "stopSignal",
  "core.v1.LoadBalancerIngress": "ipMode",
  "core.v1.LocalVolumeSource": "fsType",
  "core.v1.PersistentVolumeClaimSpec": "storageClassName volumeMode volumeAttributesClassName",
  "core.v1.PersistentVolumeClaimStatus": "currentVolumeAttributesClassName",
  "core.v1.PersistentVolumeSpec": "volumeMode volumeAttributesClassName",
  "core.v1.PodDNSConfigOption": "value",
  "core.v1.PodResourceClaim": "resourceClaimName resourceClaimTemplateName",
  "core.v1.PodSecurityContext":
    "runAsUser runAsGroup runAsNonRoot fsGroup fsGroupChangePolicy supplementalGroupsPolicy seLinuxChangePolicy",
  "core.v1.PodSpec":
    "terminationGracePeriodSeconds activeDeadlineSeconds automountServiceAccountToken shareProcessNamespace priority runtimeClassName enableServiceLinks preemptionPolicy setHostnameAsFQDN hostUsers hostnameOverride",
  "core.v1.PortStatus": "error",
  "core.v1.Probe": "terminationGracePeriodSeconds",
  "core.v1.ProjectedVolumeSource": "defaultMode",
  "core.v1.ReplicationControllerSpec": "replicas",
  "core.v1.SeccompProfile": "localhostProfile",
  "core.v1.AppArmorProfile": "localhostProfile",
  "core.v1.Secret": "immutable",
  "core.v1.SecretEnvSource": "optional",
  "core.v1.SecretKeySelector": "optional",
  "core.v1.SecretProjection": "optional",
  "core.v1.SecretVolumeSource": "defaultMode optional",
  "core.v1.SecurityContext":
    "privileged runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation procMount",
  "core.v1.ServiceAccount": "automountServiceAccountToken",
  "core.v1.ServiceAccountTokenProjection": "expirationSeconds",
  "core.v1.ServicePort": "appProtocol",
  "core.v1.ServiceSpec":
    "ipFamilyPolicy allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy trafficDistribution",
  "core.v1.Toleration": "tolerationSeconds",
  "core.v1.TopologySpreadConstraint": "minDomains nodeAffinityPolicy nodeTaintsPolicy",
  "core.v1.TypedLocalObjectReference": "apiGroup",
  "core.v1.TypedObjectReference": "apiGroup namespace",
  "core.v1.VolumeMount": "mountPropagation recursiveReadOnly",
  "core.v1.WindowsSecurityContextOptions":
    "gmsaCredentialSpecName gmsaCredentialSpec runAsUserName hostProcess",
  "discovery.v1.Endpoint": "hostname nodeName zone",
  "discovery.v1.EndpointConditions": "ready serving terminating",
  "discovery.v1.EndpointPort": "name protocol port appProtocol",
  "meta.v1.DeleteOptions":
    "gracePeriodSeconds orphanDependents propagationPolicy ignoreStoreReadErrorWithClusterBreakingPotential",
  "meta.v1.ListMeta": "remainingItemCount",
  "meta.v1.ObjectMeta": "deletionGracePeriodSeconds managedFields",
  "meta.v1.OwnerReference": "controller blockOwnerDeletion",
  "meta.v1.Preconditions": "uid resourceVersion",
  "networking.v1.HTTPIngressPath": "pathType",
  "networking.v1.IngressClassParametersReference": "apiGroup namespace scope",
  "networking.v1.IngressSpec": "ingressClassName",
  "networking.v1.NetworkPolicyPort": "protocol port endPort",
  "policy.v1.PodDisruptionBudgetSpec": "unhealthyPodEvictionPolicy minAvailable maxUnavailable",
  "scheduling.v1.PriorityClass": "preemptionPolicy",
  "storage.v1.CSIDriverSpec":
    "attachRequired podInfoOnMount storageCapacity fsGroupPolicy requiresRepublish seLinuxMount nodeAllocatableUpdatePeriodSeconds serviceAccountTokenInSecrets preventPodSchedulingIfMissing",
  "storage.v1.StorageClass": "reclaimPolicy allowVolumeExpansion volumeBindingMode",
  "storage.v1.TokenRequest": "expirationSeconds",
  "storage.v1.VolumeAttachmentSource": "persistentVolumeName",
  "storage.v1.VolumeError": "errorCode",
  "storage.v1.VolumeNodeResources": "count",
};

const pointerMembers: ReadonlySet<string> = new Set(
  Object.entries(pointers).flatMap(([struct, members]) => members.split(" ").map((m) => `${struct}.${m}`)),
);

/** Types of custom resources' definitions say everything themselves, down to what is empty. */
const kept = /^apiextensions\./;

/** True when the member, holding this, is the same as one that is not there. */
export function isOmitted(struct: string, member: string, value: unknown): boolean {
  // Few members are empty: the look at their type comes last.
  const isEmpty =
    value === "" || value === 0 || value === false || (Array.isArray(value) && value.length === 0);
  return isEmpty && !kept.test(struct) && !pointerMembers.has(`${struct}.${member}`);
}

/** True for an empty list: the reference stores it like a missing one, and returns it as null. */
export function isEmptyList(struct: string, value: unknown): boolean {
  return Array.isArray(value) && value.length === 0 && !kept.test(struct);
}
