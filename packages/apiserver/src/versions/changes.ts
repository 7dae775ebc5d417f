/**
 * What came, or went, with which minor version of Kubernetes 1.x: the one place that knows. Everything else asks
 * `version.has(…)`, `version.gate(…)`, `version.hasField(…)` or `builtInKinds(version)`, and compares no numbers.
 * Fields are in `field-changes.ts` (generated from the published types of the releases) and, where a gate
 * hides them, here. Sources: the release notes and `kube_features.go` of the releases.
 */

/** The oldest minor version that can be emulated. */
export const oldestMinor = 20;
/** The newest minor version that can be emulated. */
export const newestMinor = 36;

/** From which minor version on something is there, and from which on no longer. */
export interface Change {
  readonly since?: number;
  readonly until?: number;
}

/** Behaviours of the server that clients can see. */
export const behaviours = {
  /** One document with all groups (`APIGroupDiscoveryList`), asked for by its media type. */
  aggregatedDiscovery: { since: 26 },
  /** `APIResource.singularName` is filled. */
  singularNames: { since: 27 },
  /** Tables of CSIDrivers show capacity, tokens and republishing. */
  driverColumns: { since: 21 },
  /** Tables of pods say how long ago the last restart was. */
  restartsWithAge: { since: 22 },
  /** Tables of volumes and claims show the VolumeAttributesClass. */
  attributesClassColumns: { since: 29 },
  /** Columns are described as recorded, where a recording has their descriptions. */
  recordedDescriptions: { until: 21 },
  /** Tables of Jobs show a status, those of CronJobs a time zone. */
  jobStatusColumn: { since: 30 },
  /** Tables of PriorityClasses show the preemption policy. */
  preemptionPolicyColumn: { since: 31 },
  /** The schemas contain the list type of every list. */
  listTypesOfAllLists: { since: 30 },
  /** Jobs count the changes of their spec. */
  jobGenerations: { since: 21 },
  /** `/version` names the versions that are emulated and compatible. */
  versionOfEmulation: { since: 33 },
  /** `/openapi/v3`. */
  openapiV3: { since: 24 },
  /** `fieldValidation` of writes: Strict, Warn, Ignore. */
  fieldValidation: { since: 25 },
  /** A watch may begin with the state (`sendInitialEvents`). */
  watchList: { since: 27 },
  /** More than selectors of labels is replaced as a whole by an apply (`structType=atomic`). */
  atomicStructs: { since: 21 },
  /** A write through a path owns no fields that the path resets: the status, or all but the status. */
  resetFields: { since: 22 },
  /** Members that are applied as null or an empty map are managed too. */
  emptyFieldsApplied: { since: 21 },
  /** What is applied decides the order of the items of a list. */
  appliedOrder: { since: 26 },
  /** Managed fields name the sub-resource they came through. */
  managedFieldsSubresource: { since: 22 },
  /** An update that changes nothing but the times of managed fields is none (kubernetes pull request 106388). */
  managersTimesIgnored: { since: 24 },
  /** An update of a Service names the version it builds on (core/service/storage/rest.go, before it became a plain store). */
  servicesNeedVersion: { until: 23 },
  /** Templates of pods on the network of their node get the ports of the node filled, too; later only pods do. */
  hostPortsInTemplates: { until: 28 },
  /** Mutating webhooks see the namespace of a new object that does not say its own. */
  webhooksSeeNamespace: { since: 21 },
  /** What went wrong with a call of a webhook begins with `failed to call webhook` or `received invalid webhook response`. */
  webhookCallsNamed: { since: 23 },
  /** A create with `generateName` is tried again under another name when the first is taken. */
  generateNameRetries: { since: 32 },
  /** Of several default storage classes the newest wins; before, a claim without class was refused. */
  newestDefaultStorageClass: { since: 26 },
  /** A service account gets no token Secret. */
  noServiceAccountSecrets: { since: 24 },
  /** Rules of custom resources in CEL (`x-kubernetes-validations`). */
  crdValidationRules: { since: 25 },
  /** An update of a custom resource may keep invalid values that it does not change. */
  crdRatcheting: { since: 30 },
  /** Problems of custom resources have separate reasons for wrong types and for values that are too long. */
  crdTypedCauses: { since: 24 },
  /** Paths in problems of custom resources contain the index of the list item. */
  crdItemPaths: { since: 23 },
  /** Fields of custom resources that selectors may use. */
  crdSelectableFields: { since: 31 },
  /** A conflict of a delete's UID precondition and others name the group in the details. */
  policyV1Eviction: { since: 22 },
  /** The stored selector of a PodDisruptionBudget that is empty chooses all pods (policy/v1). */
  emptyBudgetSelectorMatchesAll: { since: 21 },
  /** Pods may be taken by a budget that allows it although they are unhealthy. */
  unhealthyPodEviction: { since: 26 },
  /** Generic ephemeral volumes: a controller creates a claim for the volume of a pod. */
  genericEphemeralVolumes: { since: 21 },
  /** Pods of a Job carry its labels with the prefix batch.kubernetes.io too. */
  prefixedJobLabels: { since: 27 },
  /** Names of the Secrets of CSI volumes may be subdomains. */
  secretNamesOfDriversAreSubdomains: { since: 24 },
  /** A claim without a class may get one later. */
  retroactiveStorageClass: { since: 26 },
  /** What a CSIDriver says of mounting may be changed. */
  csiDriverMountOptionsMutable: { since: 29 },
  /** The message for a wrong address contains examples. */
  addressExamples: { since: 23 },
  /** Access mode ReadWriteOncePod. */
  readWriteOncePod: { since: 27 },
  /** `requestedAttributes` of a CSIDriver beyond its mode may be changed. */
  csiDriverSpecMutable: { since: 22 },
  /** Namespaces carry the label `kubernetes.io/metadata.name`. */
  namespaceNameLabel: { since: 21 },
  /** The node affinity of a volume can be given later and be widened by newer label keys. */
  volumeAffinityLabelsMutable: { since: 22 },
  /** A pod's resources are changed through `pods/resize`. */
  podResize: { since: 33 },
  /** `pods/ephemeralcontainers` takes a whole pod. */
  ephemeralContainersOfPod: { since: 22 },
  /** The server checks objects of storage.k8s.io twice and reports each cause twice. */
  storageCausesTwice: { until: 21 },
  /** Users can ask who they are (SelfSubjectReview). */
  selfSubjectReviews: { since: 28 },
  /** Pods find their token in a projected volume rather than in a Secret. */
  projectedTokens: { since: 21 },
  /** Tokens of service accounts carry an id, and the node of the pod that they are bound to. */
  tokenIds: { since: 30 },
  /** Tokens of service accounts can be bound to a node. */
  tokensBoundToNodes: { since: 31 },
  /** A node reads its own pods and its own Node, and no others. */
  nodesSeeTheirOwn: { since: 32 },
  /** The uid of the one to act as can be given (Impersonate-Uid). */
  impersonatedUid: { since: 22 },
  /** The default role `edit` may write Endpoints (taken back for CVE-2021-25740). */
  editorsWriteEndpoints: { until: 22 },
  editorsWriteEvents: { since: 22 },
  editorsMintTokens: { since: 22 },
  viewersReadEndpointSlices: { since: 22 },
  schedulerReadsCapacity: { since: 21 },
} as const satisfies Readonly<Record<string, Change>>;

/** A behaviour's name. */
export type Behaviour = keyof typeof behaviours;

/**
 * Versions of groups, as far as they are not there from the oldest to the newest; the first that is served is the
 * preferred one. `group/version` or, for what joined a version later, `group/version/Kind`.
 */
export const groupVersions: Readonly<Record<string, Change>> = {
  "batch/v1beta1": { until: 25 },
  "batch/v1/CronJob": { since: 21 },
  "policy/v1": { since: 21 },
  "policy/v1beta1": { until: 25 },
  "events.k8s.io/v1beta1": { until: 25 },
  "storage.k8s.io/v1beta1": { until: 27 },
  "storage.k8s.io/v1beta1/StorageClass": { until: 22 },
  "storage.k8s.io/v1beta1/VolumeAttachment": { until: 22 },
  "storage.k8s.io/v1beta1/CSIDriver": { until: 22 },
  "storage.k8s.io/v1beta1/CSINode": { until: 22 },
  "storage.k8s.io/v1beta1/CSIStorageCapacity": { since: 21, until: 27 },
  "storage.k8s.io/v1/CSIStorageCapacity": { since: 24 },
  "storage.k8s.io/v1/VolumeAttributesClass": { since: 34 },
  "storage.k8s.io/v1beta1/VolumeAttributesClass": { since: 31, until: 36 },
  "coordination.k8s.io/v1beta1": { until: 22 },
  "discovery.k8s.io/v1": { since: 21 },
  "discovery.k8s.io/v1beta1": { until: 25 },
  "scheduling.k8s.io/v1beta1": { until: 22 },
  "node.k8s.io/v1beta1": { until: 25 },
  "autoscaling/v2": { since: 23 },
  "rbac.authorization.k8s.io/v1beta1": { until: 22 },
  "authorization.k8s.io/v1beta1": { until: 22 },
  "authentication.k8s.io/v1beta1": { until: 22 },
  "authentication.k8s.io/v1/SelfSubjectReview": { since: 28 },
};

/** Versions in which kinds were stored for longer than they were preferred, by `group/Kind`, and until when. */
export const storageVersions: Readonly<Record<string, Change & { readonly version: string }>> = {
  "autoscaling/HorizontalPodAutoscaler": { version: "v1", until: 23 },
  "coordination.k8s.io/Lease": { version: "v1beta1", until: 21 },
  "networking.k8s.io/Ingress": { version: "v1beta1", until: 22 },
  "certificates.k8s.io/CertificateSigningRequest": { version: "v1beta1", until: 22 },
  "networking.k8s.io/IngressClass": { version: "v1beta1", until: 22 },
  "node.k8s.io/RuntimeClass": { version: "v1beta1", until: 22 },
  "storage.k8s.io/CSIDriver": { version: "v1beta1", until: 21 },
};

/**
 * Versions of kinds that warn those who use them: since when they are deprecated, until when they are served, and
 * what to use instead. `group/version/Kind`, or `group/version` for all kinds of it.
 */
export const deprecations: Readonly<
  Record<string, { readonly since: number; readonly until?: number; readonly use?: string }>
> = {
  "v1/ComponentStatus": { since: 19 },
  "v1/Endpoints": { since: 33, use: "discovery.k8s.io/v1 EndpointSlice" },
  "admissionregistration.k8s.io/v1beta1": { since: 16, until: 22, use: "admissionregistration.k8s.io/v1" },
  "apiextensions.k8s.io/v1beta1": { since: 16, until: 22, use: "apiextensions.k8s.io/v1" },
  "autoscaling/v2beta1": { since: 22, until: 25, use: "autoscaling/v2" },
  "autoscaling/v2beta2": { since: 23, until: 26, use: "autoscaling/v2" },
  "batch/v1beta1": { since: 21, until: 25, use: "batch/v1" },
  "certificates.k8s.io/v1beta1": { since: 19, until: 22, use: "certificates.k8s.io/v1" },
  "coordination.k8s.io/v1beta1": { since: 19, until: 22, use: "coordination.k8s.io/v1" },
  "discovery.k8s.io/v1beta1": { since: 21, until: 25, use: "discovery.k8s.io/v1" },
  "events.k8s.io/v1beta1": { since: 22, until: 25, use: "events.k8s.io/v1" },
  "extensions/v1beta1": { since: 14, until: 22, use: "networking.k8s.io/v1" },
  "networking.k8s.io/v1beta1": { since: 19, until: 22, use: "networking.k8s.io/v1" },
  "node.k8s.io/v1beta1": { since: 22, until: 25, use: "node.k8s.io/v1" },
  "policy/v1beta1": { since: 21, until: 25, use: "policy/v1" },
  "rbac.authorization.k8s.io/v1beta1": { since: 17, until: 22, use: "rbac.authorization.k8s.io/v1" },
  "scheduling.k8s.io/v1beta1": { since: 14, until: 22, use: "scheduling.k8s.io/v1" },
  "storage.k8s.io/v1beta1/CSINode": { since: 17, until: 22, use: "storage.k8s.io/v1" },
  "storage.k8s.io/v1beta1/CSIStorageCapacity": { since: 24, until: 27, use: "storage.k8s.io/v1" },
  "storage.k8s.io/v1beta1/VolumeAttributesClass": { since: 34, until: 37 },
  "storage.k8s.io/v1beta1": { since: 19, until: 22, use: "storage.k8s.io/v1" },
};

/** A feature gate: its value from each minor version on, and from when it cannot be changed. */
export interface GateChanges {
  readonly default: Readonly<Record<number, boolean>>;
  readonly locked?: number;
}

/** Gates whose effect a client of this server can see. Others are taken, and mean nothing here. */
export const gates: Readonly<Record<string, GateChanges>> = {
  AnyVolumeDataSource: { default: { 20: false, 24: true }, locked: 33 },
  CSIMigration: { default: { 20: true }, locked: 25 },
  CSIServiceAccountToken: { default: { 20: false, 21: true }, locked: 22 },
  CSIStorageCapacity: { default: { 20: false, 21: true }, locked: 24 },
  CSIVolumeFSGroupPolicy: { default: { 20: true }, locked: 23 },
  ExpandPersistentVolumes: { default: { 20: true }, locked: 24 },
  GenericEphemeralVolume: { default: { 20: false, 21: true }, locked: 23 },
  MutableCSINodeAllocatableCount: { default: { 20: false, 35: true }, locked: 36 },
  MutablePVNodeAffinity: { default: { 20: false } },
  RecoverVolumeExpansionFailure: { default: { 20: false, 32: true }, locked: 34 },
  SELinuxMountReadWriteOncePod: { default: { 20: false, 27: true } },
  ListFromCacheSnapshot: { default: { 20: false, 34: true } },
  WatchList: { default: { 20: false, 32: true, 33: false, 34: true } },
  VolumeAttributesClass: { default: { 20: false, 34: true }, locked: 36 },
  DynamicKubeletConfig: { default: { 20: true, 22: false } },
};
