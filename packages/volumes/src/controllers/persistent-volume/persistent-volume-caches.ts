/** The caches of the persistent-volume controllers and their indexes. */
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type SharedInformers,
} from "@longshore/kube";
import { podsByClaim } from "../pods-by-claim.ts";
import { classOfClaim } from "./annotations.ts";
import { AvailableVolumes } from "./available-volumes.ts";
import type { PersistentVolumeCaches } from "./persistent-volume-context.ts";

/** Volumes by the claim that their claimRef names, `namespace/name`. */
export const volumesByClaimIndex = "volumes by claim";
/** Claims that name no volume, by their class. */
export const unboundClaimsByClassIndex = "unbound claims by class";
/** Claims by the volume that they name, bound to it or not. */
export const claimsByVolumeIndex = "claims by volume";

/** Starts the caches, or finds them among those that the process shares. */
export function startPersistentVolumeCaches(informers: SharedInformers): PersistentVolumeCaches {
  return {
    claims: informers.of(resources.persistentVolumeClaims, {
      indexes: {
        [unboundClaimsByClassIndex]: (claim) => (isUnbound(claim) ? [classOfClaim(claim)] : []),
        [claimsByVolumeIndex]: volumeNamesOfClaim,
      },
    }),
    volumes: informers.of(resources.persistentVolumes, {
      indexes: { [volumesByClaimIndex]: claimKeysOfVolume },
    }),
    classes: informers.of(resources.storageClasses),
    pods: informers.of(resources.pods, { indexes: podsByClaim }),
    available: new AvailableVolumes(),
  };
}

/** The claim that the volume's claimRef names, as a key; none when it has no claimRef. */
export function claimKeysOfVolume(volume: PersistentVolume): readonly string[] {
  const ref = volume.spec?.claimRef;
  return ref == null ? [] : [`${ref.namespace}/${ref.name}`];
}

/** The volume that the claim names, as a key; none when it names none. */
export function volumeNamesOfClaim(claim: PersistentVolumeClaim): readonly string[] {
  const name = claim.spec?.volumeName ?? "";
  return name === "" ? [] : [name];
}

function isUnbound(claim: PersistentVolumeClaim): boolean {
  return volumeNamesOfClaim(claim).length === 0;
}
