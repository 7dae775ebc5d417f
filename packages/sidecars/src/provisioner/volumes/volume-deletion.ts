/** What DeleteVolume is asked for the disk of a released PersistentVolume (docs/behaviour/sidecars.md 2.4). Pure. */
import type { PersistentVolume, SecretReference, StorageClass } from "@longshore/kube";
import {
  deletionSecretNameAnnotation,
  deletionSecretNamespaceAnnotation,
  secretReference,
} from "@longshore/storage";
import {
  isPVMigratable,
  translateInTreePVToCSI,
  translateInTreeStorageClassToCSI,
} from "@longshore/translation";
import type { Driver } from "../../common/sidecar-env.ts";

/** The volume cannot be deleted as it is. The text is shown to users. */
export class VolumeDeleteError extends Error {
  override readonly name = "VolumeDeleteError";
}

/** What a deletion is found with. */
export interface DeletionContext {
  readonly driver: Driver;
  readonly storageClass: (name: string) => StorageClass | undefined;
}

/** One DeleteVolume. */
export interface VolumeDeletion {
  readonly volumeId: string;
  /** An in-tree volume of the plugin that migrates to the driver. */
  readonly migrated: boolean;
  readonly secret: SecretReference | undefined;
}

/** What is to be asked of the driver. @throws VolumeDeleteError; ParameterError, TemplateError of the class's secret */
export function deletionOf(context: DeletionContext, pv: PersistentVolume): VolumeDeletion {
  const migrated = isPVMigratable(pv);
  const csi = (migrated ? (translateInTreePVToCSI(pv) as PersistentVolume) : pv).spec?.csi;
  if (csi === undefined || csi === null) throw new VolumeDeleteError("the volume has no CSI source");
  if (!context.driver.capabilities.controller.has("CREATE_DELETE_VOLUME")) {
    throw new VolumeDeleteError("the driver cannot delete volumes (CREATE_DELETE_VOLUME)");
  }
  return { volumeId: csi.volumeHandle, migrated, secret: secretOf(context, pv, migrated) };
}

/** The secret for DeleteVolume: what the volume was annotated with, else what its class says now. */
function secretOf(
  context: DeletionContext,
  pv: PersistentVolume,
  migrated: boolean,
): SecretReference | undefined {
  const annotations = pv.metadata?.annotations;
  const name = annotations?.[deletionSecretNameAnnotation];
  const namespace = annotations?.[deletionSecretNamespaceAnnotation];
  if (name && namespace) return { name, namespace };
  if (name !== undefined && namespace !== undefined) return undefined; // Annotated, with no secret.
  const storageClass = context.storageClass(pv.spec?.storageClassName ?? "");
  if (storageClass === undefined) return undefined;
  const { parameters } = migrated ? csiClassOf(context, storageClass) : storageClass;
  const claim = pv.spec?.claimRef;
  return secretReference(
    "Provisioner",
    parameters ?? {},
    pv.metadata?.name ?? "",
    claim === undefined || claim === null
      ? undefined
      : { name: claim.name ?? "", namespace: claim.namespace ?? "" },
  );
}

function csiClassOf({ driver }: DeletionContext, storageClass: StorageClass): StorageClass {
  if (storageClass.provisioner !== driver.inTreeName) return storageClass;
  return translateInTreeStorageClassToCSI(storageClass.provisioner, storageClass) as StorageClass;
}
