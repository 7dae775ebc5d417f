/**
 * Binding a volume and a claim to each other: four writes, each left out when there is nothing to
 * change, so that the next pass takes up after a failure. Source: docs/behaviour/controllers.md B4.
 */
import { type PersistentVolume, type PersistentVolumeClaim, resources, type Stored } from "@longshore/kube";
import { bindCompletedAnnotation, boundByControllerAnnotation, withAnnotation } from "./annotations.ts";
import { type PersistentVolumeContext, save, saveStatus } from "./context.ts";
import { capacityOf } from "./match-volume.ts";

/** Binds them. @throws what the client throws; nothing is undone */
export async function bind(
  context: PersistentVolumeContext,
  volume: Stored<PersistentVolume>,
  claim: Stored<PersistentVolumeClaim>,
  signal: AbortSignal,
): Promise<void> {
  const bound = await save(
    context,
    resources.persistentVolumes,
    volume,
    volumeBoundTo(volume, claim),
    signal,
  );
  const boundVolume = await setVolumePhase(context, bound, "Bound", signal);
  const boundClaim = await save(
    context,
    resources.persistentVolumeClaims,
    claim,
    claimBoundTo(claim, volume.metadata.name),
    signal,
  );
  await saveStatus(
    context,
    resources.persistentVolumeClaims,
    boundClaim,
    claimStatusOfBound(boundClaim, boundVolume),
    signal,
  );
}

/** The volume with a full claimRef. */
export function volumeBoundTo<V extends PersistentVolume>(
  volume: V,
  claim: Stored<PersistentVolumeClaim>,
): V {
  const ref = volume.spec?.claimRef;
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  if (ref?.uid === uid && ref.name === name && ref.namespace === namespace) return volume;
  const claimRef = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    name,
    ...(namespace === undefined ? {} : { namespace }),
    uid,
    resourceVersion,
  };
  const bound = { ...volume, spec: { ...volume.spec, claimRef } };
  return ref == null ? withAnnotation(bound, boundByControllerAnnotation, "yes") : bound;
}

/** The claim with its volume's name and the mark that binding is finished. */
export function claimBoundTo<C extends PersistentVolumeClaim>(claim: C, volumeName: string): C {
  const named =
    claim.spec?.volumeName === volumeName
      ? claim
      : withAnnotation({ ...claim, spec: { ...claim.spec, volumeName } }, boundByControllerAnnotation, "yes");
  return withAnnotation(named, bindCompletedAnnotation, "yes");
}

/** The claim's status once it is bound. The capacity is only taken over when it becomes bound. */
export function claimStatusOfBound<C extends PersistentVolumeClaim>(claim: C, volume: PersistentVolume): C {
  const status = claim.status ?? {};
  const accessModes = volume.spec?.accessModes ?? [];
  const sameModes =
    status.accessModes?.length === accessModes.length &&
    accessModes.every((mode, index) => status.accessModes?.[index] === mode);
  if (status.phase === "Bound" && sameModes) return claim;
  const capacity =
    status.phase === "Bound"
      ? status.capacity
      : { ...status.capacity, storage: capacityOf(volume).toString() };
  return {
    ...claim,
    status: {
      ...status,
      phase: "Bound",
      accessModes: [...accessModes],
      ...(capacity === undefined ? {} : { capacity }),
    },
  };
}

/** Sets the phase of a volume, and says why where there is a reason. */
export async function setVolumePhase(
  context: PersistentVolumeContext,
  volume: Stored<PersistentVolume>,
  phase: "Available" | "Bound" | "Released" | "Failed",
  signal: AbortSignal,
  message?: string,
): Promise<Stored<PersistentVolume>> {
  if (volume.status?.phase === phase && (volume.status.message ?? "") === (message ?? "")) return volume;
  const { message: _, ...status } = volume.status ?? {};
  const after: PersistentVolume = {
    ...volume,
    status: { ...status, phase, ...(message === undefined ? {} : { message }) },
  };
  return context.env.kube.updateStatus(resources.persistentVolumes, after, { signal });
}

/** Sets the phase of a claim that is not bound. */
export async function setClaimPhase(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  phase: "Pending" | "Lost",
  signal: AbortSignal,
): Promise<void> {
  if (claim.status?.phase === phase) return;
  const { capacity: _, accessModes: __, ...status } = claim.status ?? {};
  const after: PersistentVolumeClaim = { ...claim, status: { ...status, phase } };
  await context.env.kube.updateStatus(resources.persistentVolumeClaims, after, { signal });
}
