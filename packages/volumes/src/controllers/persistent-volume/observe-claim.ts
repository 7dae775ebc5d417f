/** What the claims controller reads before it decides. Source: docs/behaviour/controllers.md B3, B4. */
import {
  hasFinalizer,
  keyOf,
  type Pass,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type Stored,
} from "@longshore/kube";
import { provisioningFinalizer } from "@longshore/storage";
import { podsByClaimIndex } from "../pods-by-claim.ts";
import { bindCompletedAnnotation, classOfClaim, migratedClaim } from "./annotations.ts";
import type { ClaimObservation } from "./decide-claim-step.ts";
import { leavesClassOpen, newestDefaultClass } from "./default-class.ts";
import { bestVolume } from "./match-volume.ts";
import { volumesByClaimIndex } from "./persistent-volume-caches.ts";
import type { PersistentVolumeContext } from "./persistent-volume-context.ts";
import { provisionedName } from "./provisioned-volume.ts";
import { chooseProvisioner, inTreeProvisionerOf } from "./provisioner-choice.ts";

type Claim = Stored<PersistentVolumeClaim>;

/** Observes a claim; undefined when it is gone. */
export async function observeClaim(
  context: PersistentVolumeContext,
  key: string,
  pass: Pass,
): Promise<ClaimObservation | undefined> {
  const { caches, provisioners } = context;
  const claim = caches.claims.get(key);
  if (claim === undefined) return undefined;
  const storageClass = caches.classes.get(classOfClaim(claim));
  const isBindingDelayed = storageClass?.volumeBindingMode === "WaitForFirstConsumer";
  const intent = await intentOf(context, claim, pass);
  const volume = await volumeOf(context, claim, isBindingDelayed, pass);
  return {
    claim,
    migrated: migratedClaim(claim, provisioners.migration),
    intent,
    volume,
    isVolumeTaken: volume !== undefined && context.taken.isTaken(volume.metadata.name, key),
    isBindingDelayed,
    provisioner: storageClass === undefined ? undefined : chooseProvisioner(provisioners, storageClass),
    defaultClass: defaultClassFor(context, claim),
    waitingPods: isBindingDelayed ? waitingPodsOf(context, claim) : [],
  };
}

/** Only for a claim that may get it: not in a pass over each claim that has its class. */
function defaultClassFor({ caches, compat }: PersistentVolumeContext, claim: Claim): string | undefined {
  const isOpen = (claim.spec?.volumeName ?? "") === "" && leavesClassOpen(claim);
  return isOpen && !compat ? newestDefaultClass(caches.classes.list()) : undefined;
}

/** The finalizer of a claim that was handed over belongs to the external provisioner. */
async function intentOf(
  context: PersistentVolumeContext,
  claim: Claim,
  pass: Pass,
): Promise<ClaimObservation["intent"]> {
  if (!hasFinalizer(claim, provisioningFinalizer)) return undefined;
  if (inTreeProvisionerOf(context.provisioners, claim) === undefined) return undefined;
  return { isStored: (await storedVolume(context, provisionedName(claim), pass)) !== undefined };
}

async function volumeOf(
  context: PersistentVolumeContext,
  claim: Claim,
  isBindingDelayed: boolean,
  pass: Pass,
): Promise<Stored<PersistentVolume> | undefined> {
  const { volumes } = context.caches;
  const name = claim.spec?.volumeName ?? "";
  const wasBound = claim.metadata.annotations?.[bindCompletedAnnotation] !== undefined;
  if (name === "") return wasBound ? undefined : candidateOf(context, claim, isBindingDelayed);
  const cached = volumes.get(name);
  if (!wasBound) return cached;
  const ref = cached?.spec?.claimRef;
  if (cached !== undefined && (ref == null || ref.uid === claim.metadata.uid)) return cached;
  // A claim is given up only for what is stored: a cache may have lost its volume, or show an older one of that name.
  return context.env.kube.get(resources.persistentVolumes, { name }, { signal: pass.signal });
}

/** The best volume, if possible one that no other worker is binding. Where binding is delayed, a scheduler chooses. */
function candidateOf(
  { caches, taken }: PersistentVolumeContext,
  claim: Claim,
  isBindingDelayed: boolean,
): Stored<PersistentVolume> | undefined {
  const key = keyOf(claim);
  const named = caches.volumes.byIndex(volumesByClaimIndex, key);
  if (isBindingDelayed) return bestVolume(claim, named, []);
  const available = () => caches.available.largeEnoughFor(claim);
  // Where all are taken, it waits for one of them: the binding that takes it may fail.
  return bestVolume(claim, named, free(available())) ?? bestVolume(claim, [], available());

  function* free(volumes: Iterable<Stored<PersistentVolume>>) {
    for (const volume of volumes) if (!taken.isTaken(volume.metadata.name, key)) yield volume;
  }
}

/** From the cache, or else live. */
async function storedVolume(
  { caches, env }: PersistentVolumeContext,
  name: string,
  pass: Pass,
): Promise<Stored<PersistentVolume> | undefined> {
  return (
    caches.volumes.get(name) ?? env.kube.get(resources.persistentVolumes, { name }, { signal: pass.signal })
  );
}

function waitingPodsOf({ caches }: PersistentVolumeContext, claim: Claim): readonly string[] {
  return caches.pods
    .byIndex(podsByClaimIndex, keyOf(claim))
    .filter((pod) => pod.spec?.nodeName === undefined)
    .map((pod) => pod.metadata.name);
}
