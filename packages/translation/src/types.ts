/**
 * The few members of Kubernetes objects that translation reads or writes, as structural types.
 * They are deliberately loose (everything optional, everything readonly), so that the objects of
 * any Kubernetes type package are assignable, frozen cache entries included. Members that are
 * not named here pass through a translation untouched.
 */

/** A map of strings as the API keeps labels, annotations, parameters and attributes. */
export type StringMap = { readonly [key: string]: string };

/** metadata, as far as translation looks at it. */
export interface ObjectMeta {
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
  readonly labels?: StringMap | null | undefined;
  readonly annotations?: StringMap | null | undefined;
}

/** A reference to a Secret in a namespace. */
export interface SecretReference {
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
}

/** A reference to a Secret in the namespace of the pod. */
export interface LocalObjectReference {
  readonly name?: string | undefined;
}

/** One condition on a label or a field of a node (core/v1). */
export interface NodeSelectorRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[] | null | undefined;
}

/** Conditions that must all hold; the terms of an affinity are alternatives (core/v1). */
export interface NodeSelectorTerm {
  readonly matchExpressions?: readonly NodeSelectorRequirement[] | null | undefined;
  readonly matchFields?: readonly NodeSelectorRequirement[] | null | undefined;
}

/** Which nodes can reach a volume (core/v1). */
export interface VolumeNodeAffinity {
  readonly required?:
    | { readonly nodeSelectorTerms?: readonly NodeSelectorTerm[] | null | undefined }
    | null
    | undefined;
}

/** `spec.csi` of a PersistentVolume: the source that a translation to CSI produces (core/v1). */
export interface CSIPersistentVolumeSource {
  readonly driver: string;
  readonly volumeHandle: string;
  readonly readOnly?: boolean | undefined;
  readonly fsType?: string | undefined;
  readonly volumeAttributes?: StringMap | null | undefined;
  readonly controllerPublishSecretRef?: SecretReference | null | undefined;
  readonly nodeStageSecretRef?: SecretReference | null | undefined;
  readonly nodePublishSecretRef?: SecretReference | null | undefined;
  readonly controllerExpandSecretRef?: SecretReference | null | undefined;
  readonly nodeExpandSecretRef?: SecretReference | null | undefined;
}

/** `awsElasticBlockStore`, of the plugin `kubernetes.io/aws-ebs` (core/v1). */
export interface AWSElasticBlockStoreSource {
  readonly volumeID: string;
  readonly fsType?: string | undefined;
  readonly partition?: number | undefined;
  readonly readOnly?: boolean | undefined;
}

/** `gcePersistentDisk`, of the plugin `kubernetes.io/gce-pd` (core/v1). */
export interface GCEPersistentDiskSource {
  readonly pdName: string;
  readonly fsType?: string | undefined;
  readonly partition?: number | undefined;
  readonly readOnly?: boolean | undefined;
}

/** `azureDisk`, of the plugin `kubernetes.io/azure-disk` (core/v1). */
export interface AzureDiskSource {
  readonly diskName: string;
  readonly diskURI: string;
  readonly cachingMode?: string | null | undefined;
  readonly fsType?: string | null | undefined;
  readonly readOnly?: boolean | null | undefined;
  readonly kind?: string | null | undefined;
}

/** `azureFile`, of the plugin `kubernetes.io/azure-file` (core/v1). */
export interface AzureFileSource {
  readonly secretName: string;
  readonly shareName: string;
  readonly readOnly?: boolean | undefined;
  /** Only in a PersistentVolume; a pod's volume uses the pod's namespace. */
  readonly secretNamespace?: string | null | undefined;
}

/** `cinder`, of the plugin `kubernetes.io/cinder` (core/v1). */
export interface CinderSource {
  readonly volumeID: string;
  readonly fsType?: string | undefined;
  readonly readOnly?: boolean | undefined;
}

/** `vsphereVolume`, of the plugin `kubernetes.io/vsphere-volume` (core/v1). */
export interface VsphereVirtualDiskSource {
  readonly volumePath: string;
  readonly fsType?: string | undefined;
  readonly storagePolicyName?: string | undefined;
}

/** `portworxVolume`, of the plugin `kubernetes.io/portworx-volume` (core/v1). */
export interface PortworxVolumeSource {
  readonly volumeID: string;
  readonly fsType?: string | undefined;
  readonly readOnly?: boolean | undefined;
}

/** `rbd`, of the plugin `kubernetes.io/rbd` (core/v1). */
export interface RBDSource {
  readonly monitors?: readonly string[] | null | undefined;
  readonly image: string;
  readonly fsType?: string | undefined;
  readonly pool?: string | undefined;
  readonly user?: string | undefined;
  readonly keyring?: string | undefined;
  readonly readOnly?: boolean | undefined;
  readonly secretRef?: SecretReference | null | undefined;
}

/** The in-tree sources that can cross, by the member of the API that holds them. */
export interface InTreeSources {
  readonly awsElasticBlockStore?: AWSElasticBlockStoreSource | null | undefined;
  readonly gcePersistentDisk?: GCEPersistentDiskSource | null | undefined;
  readonly azureDisk?: AzureDiskSource | null | undefined;
  readonly azureFile?: AzureFileSource | null | undefined;
  readonly cinder?: CinderSource | null | undefined;
  readonly vsphereVolume?: VsphereVirtualDiskSource | null | undefined;
  readonly portworxVolume?: PortworxVolumeSource | null | undefined;
  readonly rbd?: RBDSource | null | undefined;
}

/** A member of a PersistentVolume spec, or of a pod's volume, that holds an in-tree source. */
export type InTreeSourceName = keyof InTreeSources;

/** The spec of a PersistentVolume: one in-tree source or `csi`, and what is rewritten with it (core/v1). */
export interface PersistentVolumeSpec extends InTreeSources {
  readonly accessModes?: readonly string[] | null | undefined;
  readonly claimRef?:
    | { readonly name?: string | undefined; readonly namespace?: string | undefined }
    | null
    | undefined;
  readonly csi?: CSIPersistentVolumeSource | null | undefined;
  readonly nodeAffinity?: VolumeNodeAffinity | null | undefined;
  readonly volumeMode?: string | null | undefined;
}

/** A PersistentVolume, as far as translation reads or writes it (core/v1). */
export interface PersistentVolume {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec?: PersistentVolumeSpec | undefined;
}

/** One entry of a pod's `spec.volumes`. */
export interface Volume extends InTreeSources {
  readonly name?: string | undefined;
}

/** A label and the values that are allowed for it (core/v1). */
export interface TopologySelectorLabelRequirement {
  readonly key: string;
  readonly values: readonly string[];
}

/** Requirements that must all hold; the terms of a class are alternatives (core/v1). */
export interface TopologySelectorTerm {
  readonly matchLabelExpressions?: readonly TopologySelectorLabelRequirement[] | null | undefined;
}

/** A StorageClass, as far as translation reads or writes it (storage/v1). */
export interface StorageClass {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly provisioner: string;
  readonly parameters?: StringMap | null | undefined;
  readonly allowedTopologies?: readonly TopologySelectorTerm[] | null | undefined;
}

/** What a translator builds up: the same members, writable. */
export type Draft<T> = { -readonly [K in keyof T]: T[K] };

/** A string map under construction. */
export type DraftMap = { [key: string]: string };
