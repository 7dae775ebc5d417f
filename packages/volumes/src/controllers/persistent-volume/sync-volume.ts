/**
 * Brings one volume to the phase that its claim asks for, and reclaims it when the claim is gone.
 * Source: docs/behaviour/controllers.md B5; the migration annotation comes first (B2).
 *
 *     Available ──bind──► Bound ──claim gone──► Released ──deleted──► (gone)
 *                                                  └─delete failed──► Failed ──retry──┘
 *
 * Invariant (C3): a claim counts as gone only after a live GET; a volume with `migrated-to` is the
 * external provisioner's and never touched.
 */
import {
  isDeleting,
  keyOf,
  type ObjectRef,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type Stored,
} from "@longshore/kube";
import { migratedToAnnotation, provisionedByAnnotation } from "@longshore/storage";
import { boundByControllerAnnotation, migratedVolume, withAnnotation } from "./annotations.ts";
import { setVolumePhase } from "./bind.ts";
import { type PersistentVolumeContext, save } from "./context.ts";
import { tell, tellVolume } from "./events.ts";
import { volumeModeOf } from "./match-volume.ts";
import { startDelete } from "./reclaim.ts";

/** One pass over a volume. @throws what the client throws; to be retried */
export async function syncVolume(
  context: PersistentVolumeContext,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const cached = context.volumes.get(name);
  if (cached === undefined) return;
  const volume = await save(
    context,
    resources.persistentVolumes,
    cached,
    migratedVolume(cached, context.migration),
    signal,
  );
  const ref = volume.spec?.claimRef;
  if (ref == null || ref.uid === undefined || ref.uid === "") {
    await setVolumePhase(context, volume, "Available", signal);
    return;
  }
  const claimRef = { namespace: ref.namespace ?? "", name: ref.name ?? "" };
  const claim = await claimOf(context, volume, claimRef, ref.uid, signal);
  if (claim === undefined) {
    await release(context, volume, signal);
    return;
  }
  await syncWithClaim(context, volume, claim, signal);
}

/** The claim of the volume, or undefined when it is surely gone (another of the same name counts as gone). */
async function claimOf(
  context: PersistentVolumeContext,
  volume: Stored<PersistentVolume>,
  ref: ObjectRef,
  uid: string,
  signal: AbortSignal,
): Promise<Stored<PersistentVolumeClaim> | undefined> {
  const cached = context.claims.get(`${ref.namespace}/${ref.name}`);
  if (cached?.metadata.uid === uid) return cached;
  const phase = volume.status?.phase;
  if (cached === undefined && (phase === "Released" || phase === "Failed")) return undefined;
  const live = await context.env.kube.get(resources.persistentVolumeClaims, ref, { signal });
  return live?.metadata.uid === uid ? live : undefined;
}

async function syncWithClaim(
  context: PersistentVolumeContext,
  volume: Stored<PersistentVolume>,
  claim: Stored<PersistentVolumeClaim>,
  signal: AbortSignal,
): Promise<void> {
  const { name } = volume.metadata;
  const claimed = claim.spec?.volumeName ?? "";
  if (claimed === name) {
    await setVolumePhase(context, volume, "Bound", signal);
    return;
  }
  if (claimed === "") {
    if (volumeModeOf(volume) !== volumeModeOf(claim)) {
      const claimMessage = `Cannot bind PersistentVolume to requested PersistentVolumeClaim "${claim.metadata.name}" due to incompatible volumeMode.`;
      tellVolume(context, volume, "Warning", "VolumeMismatch", claimMessage);
      tell(
        context,
        claim,
        "Warning",
        "VolumeMismatch",
        `Cannot bind to requested volume "${name}": incompatible volumeMode`,
      );
      return;
    }
    context.enqueueClaim(keyOf(claim));
    return;
  }
  const annotations = volume.metadata.annotations ?? {};
  const policy = volume.spec?.persistentVolumeReclaimPolicy;
  if (annotations[provisionedByAnnotation] !== undefined && policy === "Delete") {
    // Provisioned for this claim, which is bound to another volume: no claim will ever use it.
    await release(context, volume, signal);
    return;
  }
  await unbind(context, volume, signal);
}

async function release(
  context: PersistentVolumeContext,
  volume: Stored<PersistentVolume>,
  signal: AbortSignal,
): Promise<void> {
  const released =
    volume.status?.phase === "Failed" ? volume : await setVolumePhase(context, volume, "Released", signal);
  await reclaim(context, released, signal);
}

async function reclaim(
  context: PersistentVolumeContext,
  volume: Stored<PersistentVolume>,
  signal: AbortSignal,
): Promise<void> {
  if ((volume.metadata.annotations?.[migratedToAnnotation] ?? "") !== "") return;
  const policy = volume.spec?.persistentVolumeReclaimPolicy ?? "Retain";
  if (policy === "Retain") return;
  if (policy === "Delete") {
    if (!isDeleting(volume)) startDelete(context, volume);
    return;
  }
  const message =
    policy === "Recycle"
      ? "No recycler plugin found for the volume!"
      : `Volume has an unrecognized PersistentVolumeReclaimPolicy: ${policy}`;
  const reason = policy === "Recycle" ? "VolumeFailedRecycle" : "VolumeUnknownReclaimPolicy";
  if (volume.status?.phase === "Failed" && volume.status.message === message) return;
  await setVolumePhase(context, volume, "Failed", signal, message);
  tellVolume(context, volume, "Warning", reason, message);
}

/** Takes the claim off the volume: all of it if the controller had put it there, else only its UID. */
async function unbind(
  context: PersistentVolumeContext,
  volume: Stored<PersistentVolume>,
  signal: AbortSignal,
): Promise<void> {
  const { claimRef, ...spec } = volume.spec ?? {};
  const byController = volume.metadata.annotations?.[boundByControllerAnnotation] !== undefined;
  const { uid: _, resourceVersion: __, ...userRef } = claimRef ?? {};
  const unbound = byController
    ? withAnnotation({ ...volume, spec }, boundByControllerAnnotation, undefined)
    : { ...volume, spec: { ...spec, claimRef: userRef } };
  const saved = await save(context, resources.persistentVolumes, volume, unbound, signal);
  await setVolumePhase(context, saved, "Available", signal);
}
