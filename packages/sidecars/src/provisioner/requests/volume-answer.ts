/** What the driver's answer to CreateVolume makes of the claim's PersistentVolume (docs/behaviour/sidecars.md 2.3). Pure. */
import type { Volume } from "@longshore/csi";
import { formatBytes, type PersistentVolume, type PersistentVolumeClaim } from "@longshore/kube";
import {
  deletionSecretNameAnnotation,
  deletionSecretNamespaceAnnotation,
  modifySecretNameAnnotation,
  modifySecretNamespaceAnnotation,
  volumeNodeAffinity,
} from "@longshore/storage";
import { translateCSIPVToInTree } from "@longshore/translation";
import { ProvisionError } from "../create-outcome.ts";
import type { AttemptContext } from "./volume-calls.ts";
import { attributesClassOf } from "./volume-draft.ts";
import type { PreparedVolume } from "./volume-request.ts";

/** A volume at the driver, and its object, as far as the driver's answer determines it. */
export interface MadeVolume {
  /** It has no claimRef and no class yet. */
  readonly pv: PersistentVolume;
  readonly volumeId: string;
}

/** A volume that must not stay, since it is not what was requested. */
export interface UnfitVolume {
  readonly volumeId: string;
  /** How the attempt ends once the volume is deleted. */
  readonly error: ProvisionError;
}

/** What has come of CreateVolume. */
export type VolumeAnswer = { readonly made: MadeVolume } | { readonly unfit: UnfitVolume };

/** What the reading of an answer works with. */
export type AnswerContext = Pick<AttemptContext, "driver" | "settings" | "likeReference">;

/** Reads the answer. @throws ProvisionError `Background`, compat only: a volume that the reference cannot delete */
export function readVolumeAnswer(
  context: AnswerContext,
  prepared: PreparedVolume,
  claim: PersistentVolumeClaim,
  volume: Volume,
): VolumeAnswer {
  const { volumeId } = volume;
  // CSI: 0 means that the capacity is unknown (docs/behaviour/csi-spec-notes.md 5).
  const capacityBytes = volume.capacityBytes === 0n ? prepared.requiredBytes : volume.capacityBytes;
  const problem = problemOf(prepared, volume, capacityBytes);
  // Found again by its name and deleted again, should the deletion have failed.
  if (problem !== undefined) return { unfit: { volumeId, error: new ProvisionError("Background", problem) } };
  const pv = volumeObject(context, prepared, claim, volume, capacityBytes);
  if (!prepared.migrated) return { made: { pv, volumeId } };
  try {
    return { made: { pv: translateCSIPVToInTree(pv) as PersistentVolume, volumeId } };
  } catch (cause) {
    const untranslated = "the volume cannot be translated to its in-tree form";
    // The reference cannot delete what it cannot translate, so it asks for the volume again for ever.
    if (context.likeReference) throw new ProvisionError("Background", untranslated, { cause });
    return { unfit: { volumeId, error: new ProvisionError("Finished", untranslated, { cause }) } };
  }
}

/** Why the volume that came back is not the one that was requested. */
function problemOf(prepared: PreparedVolume, volume: Volume, capacityBytes: bigint): string | undefined {
  if (capacityBytes < prepared.requiredBytes) {
    return `created volume has ${capacityBytes} bytes, fewer than the requested ${prepared.requiredBytes}`;
  }
  if (prepared.request.volumeContentSource !== undefined && volume.contentSource === undefined) {
    return "created volume does not say what it was copied from (content_source): the driver ignored the source";
  }
  return undefined;
}

function volumeObject(
  { driver, settings }: AnswerContext,
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
          // Last, so that the driver's own value of the key wins, as in the reference (docs/behaviour/sidecars.md 2.1).
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
