/** One attempt to delete the disk of a released PersistentVolume (docs/behaviour/sidecars.md 2.4). */
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
import { SecretMissingError, secretValues } from "../common/secret-values.ts";
import type { AttemptContext } from "./provision-volume.ts";

/** The volume cannot be deleted as it is. The text is shown to users. */
export class VolumeDeleteError extends Error {
  override readonly name = "VolumeDeleteError";
}

/** What a deletion works with. */
export interface DeleteContext extends AttemptContext {
  readonly storageClass: (name: string) => StorageClass | undefined;
  /** Nodes to which attachments still join the volume. */
  readonly attachedTo: (pvName: string) => readonly string[];
}

/**
 * Deletes the disk. That it is gone already must be no error to the driver (CSI, DeleteVolume).
 * @throws VolumeDeleteError, CsiCallError
 */
export async function deleteVolume(
  context: DeleteContext,
  pv: PersistentVolume,
  signal: AbortSignal,
): Promise<void> {
  const { driver, timeoutMs } = context;
  const migrated = isPVMigratable(pv);
  const csi = (migrated ? (translateInTreePVToCSI(pv) as PersistentVolume) : pv).spec?.csi;
  if (csi === undefined || csi === null) throw new VolumeDeleteError("the volume has no CSI source");
  if (!driver.capabilities.controller.has("CREATE_DELETE_VOLUME")) {
    throw new VolumeDeleteError("the driver cannot delete volumes (CREATE_DELETE_VOLUME)");
  }
  const name = pv.metadata?.name ?? "";
  const secrets = await secretValues(context.kube, secretOf(context, pv, migrated), signal).catch(
    (error: unknown) => {
      // A namespace that is being removed takes the secret first: the driver may manage without.
      if (error instanceof SecretMissingError) return {};
      throw error;
    },
  );
  const [node] = context.attachedTo(name);
  if (node !== undefined)
    throw new VolumeDeleteError(`persistentvolume ${name} is still attached to node ${node}`);
  const options = { signal, timeoutMs, migrated };
  await driver.csi.controller.deleteVolume({ volumeId: csi.volumeHandle, secrets }, options);
}

/** The secret for DeleteVolume: what the volume was annotated with, else what its class says now. */
function secretOf(
  context: DeleteContext,
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

function csiClassOf({ driver }: DeleteContext, storageClass: StorageClass): StorageClass {
  if (storageClass.provisioner !== driver.inTreeName) return storageClass;
  return translateInTreeStorageClassToCSI(storageClass.provisioner, storageClass) as StorageClass;
}
