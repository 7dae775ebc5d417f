/** Annotations and finalizers that controllers write for one object, and that mean something else, or harm, on another. */
import {
  betaStorageProvisionerAnnotation,
  cloningProtectionFinalizer,
  migratedToAnnotation,
  nodeExpansionNotRequiredAnnotation,
  preResizeCapacityAnnotation,
  provisioningFinalizer,
  selectedNodeAnnotation,
  snapshotClaimFinalizer,
  storageProvisionerAnnotation,
  storageResizerAnnotation,
} from "@longshore/storage";

/** What `kubectl apply` has sent last. */
export const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration";
/** Mount options in the form before `spec.mountOptions`. */
export const mountOptionsAnnotation = "volume.beta.kubernetes.io/mount-options";
/** Finalizer of every PersistentVolume (StorageObjectInUseProtection). */
export const volumeProtectionFinalizer = "kubernetes.io/pv-protection";
/** A claim that has it and is not bound counts as Lost. */
const bindCompletedAnnotation = "pv.kubernetes.io/bind-completed";
const boundByControllerAnnotation = "pv.kubernetes.io/bound-by-controller";

/** On a volume or a claim: what controllers note about binding, handing over, provisioning and growing it. */
export const bindingAnnotations: readonly string[] = [
  bindCompletedAnnotation,
  boundByControllerAnnotation,
  migratedToAnnotation,
  storageProvisionerAnnotation,
  betaStorageProvisionerAnnotation,
  selectedNodeAnnotation,
  storageResizerAnnotation,
  nodeExpansionNotRequiredAnnotation,
  preResizeCapacityAnnotation,
];

/** On a claim: what controllers set again where it is needed. */
export const claimFinalizers: ReadonlySet<string> = new Set([
  "kubernetes.io/pvc-protection",
  provisioningFinalizer,
  cloningProtectionFinalizer,
  snapshotClaimFinalizer,
]);
