/** One attempt to create a volume, and its PersistentVolume from the driver's answer (sidecars.md §2.3). */
import { CsiCallError, type Volume } from "@longshore/csi";
import { formatBytes, type PersistentVolume, type PersistentVolumeClaim } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import {
  deletionSecretNameAnnotation,
  deletionSecretNamespaceAnnotation,
  migratedToAnnotation,
  modifySecretNameAnnotation,
  modifySecretNamespaceAnnotation,
  storageProvisionerOf,
  volumeNodeAffinity,
} from "@longshore/storage";
import { translateCSIPVToInTree } from "@longshore/translation";
import type { Driver } from "../common/env.ts";
import { ProvisionError, stateAfterCreateError } from "./create-outcome.ts";
import type { PreparedVolume, VolumeSettings } from "./volume-request.ts";

/** What an attempt works with. */
export interface AttemptContext {
  readonly driver: Driver;
  readonly settings: VolumeSettings;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
  /** Behaves as the reference does where Longshore deliberately does not (`--compat=reference`). */
  readonly likeReference?: boolean;
}

/**
 * Whether the claim is annotated for this driver: by its name, or by the in-tree plugin's name together with
 * `migrated-to`. One with the in-tree name alone belongs to the persistent-volume controller.
 */
export function isClaimOurs(
  driver: Pick<Driver, "name" | "inTreeName">,
  claim: PersistentVolumeClaim,
): boolean {
  const annotations = claim.metadata?.annotations;
  const provisioner = storageProvisionerOf(annotations);
  if (provisioner === driver.name) return true;
  return annotations?.[migratedToAnnotation] === driver.name;
}

/**
 * Asks the driver for the volume. The PersistentVolume that comes back has no claimRef and no class yet.
 * @throws ProvisionError that says where the attempt stands
 */
export async function createVolume(
  context: AttemptContext,
  prepared: PreparedVolume,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<{ readonly pv: PersistentVolume; readonly volumeId: string }> {
  const volume = await askForVolume(context, prepared, signal);
  const capacityBytes = volume.capacityBytes === 0n ? prepared.requiredBytes : volume.capacityBytes;
  if (capacityBytes < prepared.requiredBytes) {
    const problem = `created volume has ${capacityBytes} bytes, fewer than the requested ${prepared.requiredBytes}`;
    await removeUnwanted(context, prepared, volume.volumeId, problem, signal);
    // Found again by its name and deleted again, should the deletion have failed.
    throw new ProvisionError("Background", problem);
  }
  const pv = volumeObject(context, prepared, claim, volume, capacityBytes);
  if (!prepared.migrated) return { pv, volumeId: volume.volumeId };
  try {
    return { pv: translateCSIPVToInTree(pv) as PersistentVolume, volumeId: volume.volumeId };
  } catch (cause) {
    const problem = "the volume cannot be translated to its in-tree form";
    // The reference cannot delete what it cannot translate, so it asks for the volume again for ever.
    if (context.likeReference) throw new ProvisionError("Background", problem, { cause });
    await removeUnwanted(context, prepared, volume.volumeId, problem, signal);
    throw new ProvisionError("Finished", problem, { cause });
  }
}

/** CreateVolume itself, with its failures read. */
export async function askForVolume(
  { driver, timeoutMs }: AttemptContext,
  prepared: PreparedVolume,
  signal: AbortSignal,
): Promise<Volume> {
  try {
    const { volume } = await driver.csi.controller.createVolume(prepared.request, { signal, timeoutMs });
    if (volume !== undefined && volume.volumeId !== "") return volume;
  } catch (cause) {
    const state = stateAfterCreateError(cause, prepared.mayReschedule);
    const message = cause instanceof CsiCallError ? `CreateVolume: ${cause.code}` : "CreateVolume failed";
    throw new ProvisionError(state, message, { cause });
  }
  throw new ProvisionError(
    "Background",
    "CreateVolume answered without a volume id: the driver must be mended",
  );
}

/** DeleteVolume of a volume that must not stay. @throws ProvisionError `Background` when it may still be there */
export async function removeUnwanted(
  { driver, timeoutMs }: AttemptContext,
  prepared: PreparedVolume,
  volumeId: string,
  why: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    const request = { volumeId, secrets: { ...prepared.secrets } };
    await driver.csi.controller.deleteVolume(request, { signal, timeoutMs });
  } catch (cause) {
    throw new ProvisionError(
      "Background",
      `${why}; volume ${volumeId} cannot be deleted yet: ${errorChain(cause)}`,
      {
        cause,
      },
    );
  }
}

function volumeObject(
  { driver, settings }: AttemptContext,
  prepared: PreparedVolume,
  claim: PersistentVolumeClaim,
  volume: Volume,
  capacityBytes: bigint,
): PersistentVolume {
  const accessModes = claim.spec?.accessModes ?? [];
  const { reclaimPolicy, mountOptions = [] } = prepared.storageClass;
  const isReadOnly =
    settings.controllerPublishReadOnly && accessModes.length === 1 && accessModes[0] === "ReadOnlyMany";
  const affinity = driver.capabilities.plugin.has("VOLUME_ACCESSIBILITY_CONSTRAINTS")
    ? volumeNodeAffinity(volume.accessibleTopology.map(({ segments }) => segments))
    : undefined;
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: {
      name: prepared.pvName,
      annotations: {
        [deletionSecretNameAnnotation]: prepared.deletionSecret?.name ?? "",
        [deletionSecretNamespaceAnnotation]: prepared.deletionSecret?.namespace ?? "",
        ...(prepared.modifySecret === undefined
          ? {}
          : {
              [modifySecretNameAnnotation]: prepared.modifySecret.name,
              [modifySecretNamespaceAnnotation]: prepared.modifySecret.namespace,
            }),
      },
    },
    spec: {
      accessModes: [...accessModes],
      ...(mountOptions.length > 0 ? { mountOptions: [...mountOptions] } : {}),
      capacity: { storage: formatBytes(capacityBytes) },
      csi: {
        driver: driver.name,
        volumeHandle: volume.volumeId,
        ...(prepared.fsType ? { fsType: prepared.fsType } : {}),
        ...(isReadOnly ? { readOnly: true } : {}),
        volumeAttributes: {
          "storage.kubernetes.io/csiProvisionerIdentity": settings.identity,
          ...volume.volumeContext,
        },
        ...prepared.refs,
      },
      ...(claim.spec?.volumeMode === undefined ? {} : { volumeMode: claim.spec.volumeMode }),
      ...(claim.spec?.volumeAttributesClassName
        ? { volumeAttributesClassName: claim.spec.volumeAttributesClassName }
        : {}),
      ...(reclaimPolicy === undefined ? {} : { persistentVolumeReclaimPolicy: reclaimPolicy }),
      ...(affinity === undefined ? {} : { nodeAffinity: affinity }),
    },
  };
}
