/** Annotations, labels and finalizers that carry the agreements between storage controllers. */

/** On a claim: which provisioner is to make the volume; written by the persistent-volume controller. */
export const storageProvisionerAnnotation = "volume.kubernetes.io/storage-provisioner";
/** The same under its beta name, which Kubernetes up to 1.22 writes and newer ones still do. */
export const betaStorageProvisionerAnnotation = "volume.beta.kubernetes.io/storage-provisioner";
/** On a claim or volume: the CSI driver that serves it although its plugin is in-tree (migration design). */
export const migratedToAnnotation = "pv.kubernetes.io/migrated-to";
/** On a volume: the provisioner of its class, which made it. */
export const provisionedByAnnotation = "pv.kubernetes.io/provisioned-by";
/** On a claim with delayed binding: the node the scheduler chose. */
export const selectedNodeAnnotation = "volume.kubernetes.io/selected-node";
/** On a claim or volume: its class, in the form before `spec.storageClassName`. */
export const betaStorageClassAnnotation = "volume.beta.kubernetes.io/storage-class";
/** On a CSINode: the in-tree plugins whose volumes this node treats as CSI, comma separated. */
export const migratedPluginsAnnotation = "storage.alpha.kubernetes.io/migrated-plugins";
/** Condition of a Node: volumes of an in-tree plugin keep it off the path that the node's gates want; its message names them. */
export const migrationPendingCondition = "VolumeMigrationPending";
/** On a Node: volumes that may be attached there although `status.volumesAttached` does not list them (decision 0003). */
export const uncertainVolumesAnnotation = "longshore.dev/volumes-uncertain";
/** On a Node: in-tree plugins that its agent is about to hand over to CSI, comma separated: nothing of theirs is attached in-tree (decision 0019). */
export const changingOverAnnotation = "longshore.dev/plugins-changing-over";
/** On a VolumeAttachment: the node id it was attached with, for detaching when the CSINode is gone. */
export const nodeIdAnnotation = "csi.alpha.kubernetes.io/node-id";
/** On a volume: the secret that DeleteVolume gets. Set, if empty, on every volume the provisioner makes. */
export const deletionSecretNameAnnotation = "volume.kubernetes.io/provisioner-deletion-secret-name";
/** Namespace of {@link deletionSecretNameAnnotation}. */
export const deletionSecretNamespaceAnnotation = "volume.kubernetes.io/provisioner-deletion-secret-namespace";
/** On a volume: the secret that ControllerModifyVolume gets, when its class names one. */
export const modifySecretNameAnnotation = "volume.kubernetes.io/controller-modify-secret-name";
/** Namespace of {@link modifySecretNameAnnotation}. */
export const modifySecretNamespaceAnnotation = "volume.kubernetes.io/controller-modify-secret-namespace";
/** On a volume that the provisioner owns, while its disk may exist (docs/behaviour/sidecars.md 2.4). */
export const provisionerFinalizer = "external-provisioner.volume.kubernetes.io/finalizer";
/** On a volume of an in-tree plugin, until its disk is deleted in-tree (docs/behaviour/controllers.md B5). */
export const inTreeDeletionFinalizer = "kubernetes.io/pv-controller";
/** On a claim, from before CreateVolume until its volume is stored or certainly gone (docs/contract.md C3). */
export const provisioningFinalizer = "longshore.dev/provisioning";
/**
 * On a claim from which others are cloned, until it is deleted and no clone of it is under way
 * (docs/behaviour/sidecars.md 2.3).
 */
export const cloningProtectionFinalizer = "provisioner.storage.kubernetes.io/cloning-protection";
/** On a VolumeSnapshot from which claims are restored, until their volumes are made (docs/behaviour/sidecars.md 2.3). */
export const snapshotSourceProtectionFinalizer =
  "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection";
/** On an object that a component made on its own account, and may therefore delete: which component. */
export const madeByAnnotation = "longshore.dev/made-by";

/** On a claim: who expands its volume, an in-tree plugin or a CSI driver; written by the expand controller. */
export const storageResizerAnnotation = "volume.kubernetes.io/storage-resizer";
/** On a claim: its last expansion was finished by the controller, a kubelet need not call the driver. */
export const nodeExpansionNotRequiredAnnotation = "volume.kubernetes.io/node-expansion-not-required";
/** On a volume that grew and whose file system has yet to: what its claim had before. */
export const preResizeCapacityAnnotation = "volume.alpha.kubernetes.io/pre-resize-capacity";

/** The provisioner asked to serve a claim: the GA annotation, else the beta one. */
export function storageProvisionerOf(
  annotations: Readonly<Record<string, string>> | undefined,
): string | undefined {
  return annotations?.[storageProvisionerAnnotation] ?? annotations?.[betaStorageProvisionerAnnotation];
}
