/** The object of a volume that the driver has made: completed with what ties it to its claim, and stored. */
import {
  isAlreadyExists,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type Stored,
} from "@longshore/kube";
import { migratedToAnnotation, provisionedByAnnotation, provisionerFinalizer } from "@longshore/storage";
import type { SidecarEnv } from "../common/env.ts";
import { type AttemptContext, removeUnwanted } from "./provision-volume.ts";
import type { PreparedVolume } from "./volume-request.ts";

type Claim = Stored<PersistentVolumeClaim>;

/** What storing works with. */
export interface StoreContext extends AttemptContext {
  readonly env: SidecarEnv;
  /** New volumes get {@link provisionerFinalizer}. */
  readonly protectVolumes: boolean;
}

/** A volume at the driver, and its object, as far as the driver's answer determines it. */
export interface MadeVolume {
  readonly pv: PersistentVolume;
  readonly volumeId: string;
}

/**
 * Stores the volume's object. One that is there already counts as stored, unless it stands for another volume: then
 * ours is one too many.
 * @returns false when the claim has got another volume instead
 */
export async function storeVolume(
  context: StoreContext,
  claim: Claim,
  prepared: PreparedVolume,
  { pv, volumeId }: MadeVolume,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await context.env.kube.create(resources.persistentVolumes, completed(context, pv, claim, prepared), {
      signal,
    });
    return true;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
  const why = "another volume has taken its place";
  return (await removeUnwanted(context, prepared, volumeId, why, signal)) === "stored";
}

/** The volume with what ties it to its claim. */
function completed(
  { driver, protectVolumes }: StoreContext,
  pv: PersistentVolume,
  claim: Claim,
  prepared: PreparedVolume,
): PersistentVolume {
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const isProtected = protectVolumes && pv.spec?.persistentVolumeReclaimPolicy !== "Retain";
  return {
    ...pv,
    metadata: {
      ...pv.metadata,
      annotations: {
        ...pv.metadata?.annotations,
        [provisionedByAnnotation]: prepared.provisioner,
        // Else the volume would look abandoned by its driver until the persistent-volume controller has seen it.
        ...(prepared.migrated ? { [migratedToAnnotation]: driver.name } : {}),
      },
      ...(isProtected ? { finalizers: [provisionerFinalizer] } : {}),
    },
    spec: {
      ...pv.spec,
      storageClassName: prepared.storageClass.metadata?.name ?? "",
      claimRef: {
        kind: "PersistentVolumeClaim",
        apiVersion: "v1",
        name,
        namespace: namespace ?? "",
        uid,
        resourceVersion,
      },
    },
  };
}
