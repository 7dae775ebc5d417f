/**
 * Brings one claim to a volume. Source: docs/behaviour/controllers.md B3 (not bound), B4 (bound); the migration
 * annotations come first (B2).
 *
 *     Pending ──bind──► Bound ──volume gone or another's──► Lost
 */
import {
  isDeleting,
  keyOf,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type Stored,
} from "@longshore/kube";
import { selectedNodeAnnotation } from "@longshore/storage";
import {
  bindCompletedAnnotation,
  boundByControllerAnnotation,
  classOfClaim,
  migratedClaim,
} from "./annotations.ts";
import { bind, setClaimPhase } from "./bind.ts";
import { type PersistentVolumeContext, podsByClaimIndex, save } from "./context.ts";
import { tell } from "./events.ts";
import { bestVolume, isBoundTo, mismatch } from "./match-volume.ts";
import { finishProvisioningIntent, provisionClaim } from "./provision.ts";

/** One pass over a claim. @throws what the client throws; to be retried */
export async function syncClaim(
  context: PersistentVolumeContext,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  const cached = context.claims.get(key);
  if (cached === undefined) return;
  const claim = await save(
    context,
    resources.persistentVolumeClaims,
    cached,
    migratedClaim(cached, context.migration),
    signal,
  );
  if (await finishProvisioningIntent(context, claim, signal)) return;
  if (claim.metadata.annotations?.[bindCompletedAnnotation] === undefined) {
    await syncUnbound(context, claim, signal);
  } else {
    await syncBound(context, claim, signal);
  }
}

async function syncUnbound(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  signal: AbortSignal,
): Promise<void> {
  const volumeName = claim.spec?.volumeName ?? "";
  if (volumeName !== "") {
    await syncPreBound(context, claim, volumeName, signal);
    return;
  }
  const className = classOfClaim(claim);
  const delayBinding = context.classes.get(className)?.volumeBindingMode === "WaitForFirstConsumer";
  const volume = bestVolume(context.volumes.list(), claim, delayBinding);
  if (volume !== undefined) {
    await bind(context, volume, claim, signal);
    return;
  }
  if (delayBinding && claim.metadata.annotations?.[selectedNodeAnnotation] === undefined) {
    tellWhatIsWaitedFor(context, claim);
  } else if (className !== "") {
    if (!isDeleting(claim)) await provisionClaim(context, claim, className, signal);
    return;
  } else {
    const message = "no persistent volumes available for this claim and no storage class is set";
    tell(context, claim, "Normal", "FailedBinding", message);
  }
  await setClaimPhase(context, claim, "Pending", signal);
}

/** The claim names its volume, the user's choice or a binding that was not finished. */
async function syncPreBound(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  volumeName: string,
  signal: AbortSignal,
): Promise<void> {
  const volume = context.volumes.get(volumeName);
  if (volume === undefined) {
    await setClaimPhase(context, claim, "Pending", signal);
    return;
  }
  if (volume.spec?.claimRef == null) {
    const why = mismatch(volume, claim);
    if (why === undefined) {
      await bind(context, volume, claim, signal);
      return;
    }
    const message = `Cannot bind to requested volume "${volumeName}": ${why}`;
    tell(context, claim, "Warning", "VolumeMismatch", message);
  } else if (isBoundTo(volume, claim)) {
    await bind(context, volume, claim, signal);
    return;
  } else {
    const { namespace, name } = volume.spec.claimRef;
    const message = `volume "${volumeName}" already bound to a different claim (${namespace}/${name})`;
    tell(context, claim, "Warning", "FailedBinding", message);
    if (claim.metadata.annotations?.[boundByControllerAnnotation] !== undefined) {
      throw new Error(`claim ${keyOf(claim)}: ${message}`);
    }
  }
  await setClaimPhase(context, claim, "Pending", signal);
}

async function syncBound(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  signal: AbortSignal,
): Promise<void> {
  const volumeName = claim.spec?.volumeName ?? "";
  if (volumeName === "") {
    await lose(
      context,
      claim,
      "ClaimLost",
      "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
      signal,
    );
    return;
  }
  const volume = await currentVolume(context, volumeName, signal);
  if (volume === undefined) {
    await lose(
      context,
      claim,
      "ClaimLost",
      "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
      signal,
    );
    return;
  }
  const ref = volume.spec?.claimRef;
  if (ref == null || ref.uid === claim.metadata.uid) {
    await bind(context, volume, claim, signal);
    return;
  }
  await lose(
    context,
    claim,
    "ClaimMisbound",
    "Two claims are bound to the same volume, this one is bound incorrectly",
    signal,
  );
}

/** From the cache; one that is not there is asked for live, before the claim is given up. */
async function currentVolume(
  context: PersistentVolumeContext,
  name: string,
  signal: AbortSignal,
): Promise<Stored<PersistentVolume> | undefined> {
  return context.volumes.get(name) ?? context.env.kube.get(resources.persistentVolumes, { name }, { signal });
}

async function lose(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  reason: string,
  message: string,
  signal: AbortSignal,
): Promise<void> {
  if (claim.status?.phase === "Lost") return;
  await setClaimPhase(context, claim, "Lost", signal);
  tell(context, claim, "Warning", reason, message);
}

function tellWhatIsWaitedFor(context: PersistentVolumeContext, claim: Stored<PersistentVolumeClaim>): void {
  const waiting = context.pods
    .byIndex(podsByClaimIndex, keyOf(claim))
    .filter((pod) => pod.spec?.nodeName === undefined)
    .map((pod) => pod.metadata.name);
  if (waiting.length === 0) {
    const message = "waiting for first consumer to be created before binding";
    tell(context, claim, "Normal", "WaitForFirstConsumer", message);
  } else {
    const message = `waiting for pod ${waiting.join(",")} to be scheduled`;
    tell(context, claim, "Normal", "WaitForPodScheduled", message);
  }
}
