/** One attempt to create a volume, and its PersistentVolume from the driver's answer (docs/behaviour/sidecars.md 2.3). */
import { CsiCallError, type Volume } from "@longshore/csi";
import {
  formatBytes,
  type KubeClient,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
} from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import {
  deletionSecretNameAnnotation,
  deletionSecretNamespaceAnnotation,
  modifySecretNameAnnotation,
  modifySecretNamespaceAnnotation,
  volumeNodeAffinity,
} from "@longshore/storage";
import { isPVMigratable, translateCSIPVToInTree, translateInTreePVToCSI } from "@longshore/translation";
import type { Driver } from "../common/env.ts";
import { SecretMissingError, secretValues } from "../common/secret-values.ts";
import { ProvisionError, stateAfterCreateError } from "./create-outcome.ts";
import { attributesClassOf, type PreparedVolume, type VolumeSettings } from "./volume-request.ts";

/** What an attempt works with. */
export interface AttemptContext {
  readonly kube: KubeClient;
  readonly driver: Driver;
  readonly settings: VolumeSettings;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
  /** Behaves as the reference does where Longshore deliberately does not (`--compat=reference`). */
  readonly likeReference?: boolean;
}

/** Values of a secret. Never kept. */
export type SecretValues = Record<string, string>;

/** What CreateVolume gets as its secrets. @throws ProvisionError `NoChange` when they cannot be read */
export async function provisioningSecrets(
  { kube }: Pick<AttemptContext, "kube">,
  { deletionSecret }: PreparedVolume,
  signal: AbortSignal,
): Promise<SecretValues> {
  return secretValues(kube, deletionSecret, signal).catch((cause: unknown) => {
    throw new ProvisionError("NoChange", "the provisioner's secret cannot be read", { cause });
  });
}

/**
 * Asks the driver for the volume. The PersistentVolume that comes back has no claimRef and no class yet.
 * @throws ProvisionError that says where the attempt stands
 */
export async function createVolume(
  context: AttemptContext,
  prepared: PreparedVolume,
  secrets: SecretValues,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<{ readonly pv: PersistentVolume; readonly volumeId: string }> {
  const volume = await askForVolume(context, prepared, secrets, signal);
  const capacityBytes = volume.capacityBytes === 0n ? prepared.requiredBytes : volume.capacityBytes;
  const problem = problemOf(prepared, volume, capacityBytes);
  if (problem !== undefined) {
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

/** Why the volume that came back is not the one that was asked for. */
function problemOf(prepared: PreparedVolume, volume: Volume, capacityBytes: bigint): string | undefined {
  if (capacityBytes < prepared.requiredBytes) {
    return `created volume has ${capacityBytes} bytes, fewer than the requested ${prepared.requiredBytes}`;
  }
  if (prepared.request.volumeContentSource !== undefined && volume.contentSource === undefined) {
    return "created volume does not say what it was copied from (content_source): the driver ignored the source";
  }
  return undefined;
}

/** CreateVolume itself, with its failures read. @throws ProvisionError */
export async function askForVolume(
  { driver, timeoutMs }: AttemptContext,
  prepared: PreparedVolume,
  secrets: SecretValues,
  signal: AbortSignal,
): Promise<Volume> {
  const options = { signal, timeoutMs, migrated: prepared.migrated };
  try {
    const { volume } = await driver.csi.controller.createVolume({ ...prepared.request, secrets }, options);
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

/**
 * DeleteVolume of a volume that must not stay. One that a stored PersistentVolume stands for is kept, whatever a cache
 * may have shown: from then on only the reclaim policy decides.
 * @throws ProvisionError `Background` when it may still be there
 */
export async function removeUnwanted(
  { driver, kube, timeoutMs }: AttemptContext,
  prepared: PreparedVolume,
  volumeId: string,
  why: string,
  signal: AbortSignal,
): Promise<"removed" | "stored"> {
  try {
    const stored = await kube.get(resources.persistentVolumes, { name: prepared.pvName }, { signal });
    if (stored !== undefined && standsFor(stored, driver.name, volumeId, prepared.migrated)) return "stored";
    const secrets = await secretsIfAny(kube, prepared, signal);
    const options = { signal, timeoutMs, migrated: prepared.migrated };
    await driver.csi.controller.deleteVolume({ volumeId, secrets }, options);
    return "removed";
  } catch (cause) {
    const what = `${why}; volume ${volumeId} cannot be deleted yet: ${errorChain(cause)}`;
    throw new ProvisionError("Background", what, { cause });
  }
}

/**
 * Whether the stored object is that of the driver's volume. In-tree forms of a handle can say less than the driver's,
 * so both are translated the same way; forms without a difference count as the same.
 */
export function standsFor(
  stored: PersistentVolume,
  driverName: string,
  volumeId: string,
  migrated: boolean,
): boolean {
  try {
    const storedHandle = handleOf(stored);
    if (storedHandle === volumeId) return true;
    if (!migrated || !isPVMigratable(stored)) return false;
    const bare = { spec: { csi: { driver: driverName, volumeHandle: volumeId } } } as PersistentVolume;
    return handleOf(translateCSIPVToInTree(bare) as PersistentVolume) === storedHandle;
  } catch {
    return true;
  }
}

function handleOf(pv: PersistentVolume): string | undefined {
  return (isPVMigratable(pv) ? (translateInTreePVToCSI(pv) as PersistentVolume) : pv).spec?.csi?.volumeHandle;
}

/** A namespace that is being removed takes the secret first: the driver may manage without. */
async function secretsIfAny(
  kube: KubeClient,
  { deletionSecret }: PreparedVolume,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  try {
    return await secretValues(kube, deletionSecret, signal);
  } catch (error) {
    if (error instanceof SecretMissingError) return {};
    throw error;
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
  const attributesClass = attributesClassOf(settings, claim);
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
      ...(attributesClass === undefined ? {} : { volumeAttributesClassName: attributesClass }),
      ...(reclaimPolicy === undefined ? {} : { persistentVolumeReclaimPolicy: reclaimPolicy }),
      ...(affinity === undefined ? {} : { nodeAffinity: affinity }),
    },
  };
}
