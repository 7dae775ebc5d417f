/**
 * The claims controller: binds claims to volumes, and has volumes made for those that find none. Source:
 * docs/behaviour/controllers.md B3, B4, B6.
 *
 * Several claims at a time: a claim runs in one pass at a time, and a volume is bound by one write that carries the
 * version it was chosen from (`decide-bind-step.ts`).
 */
import {
  type Controller,
  forResource,
  keyOf,
  type PersistentVolume,
  type Pod,
  type Source,
  type StorageClass,
  type Stored,
  startController,
  watches,
} from "@longshore/kube";
import { claimKeysOf } from "../pods-by-claim.ts";
import { classOfVolume } from "./annotations.ts";
import { claimActions } from "./claim-actions.ts";
import { type ClaimObservation, type ClaimStep, decideClaimStep } from "./decide-claim-step.ts";
import { isDefaultClass } from "./default-class.ts";
import { observeClaim } from "./observe-claim.ts";
import {
  claimKeysOfVolume,
  claimsByVolumeIndex,
  unboundClaimsByClassIndex,
} from "./persistent-volume-caches.ts";
import type { PersistentVolumeCaches, PersistentVolumeContext } from "./persistent-volume-context.ts";

/** Starts the controller; it works in the background until it is stopped. */
export function startClaimsController(context: PersistentVolumeContext): Controller {
  return startController<ClaimObservation, ClaimStep>(context.env, {
    name: "claims",
    workers: 10,
    passTimeoutMs: 120_000,
    sources: claimSources(context.caches),
    observe: (key, pass) => observeClaim(context, key, pass),
    decide: decideClaimStep,
    actions: claimActions(context),
  });
}

function claimSources({ claims, volumes, classes, pods }: PersistentVolumeCaches): readonly Source[] {
  const unboundOf = (className: string) => claims.byIndex(unboundClaimsByClassIndex, className).map(keyOf);
  const waitingFor = (volume: PersistentVolume) => {
    if (volume.spec?.claimRef != null) return claimKeysOfVolume(volume);
    return volume.status?.phase === "Available" ? unboundOf(classOfVolume(volume)) : [];
  };
  // A default class is for those that leave theirs open as well.
  const waitingForClass = (storageClass: Stored<StorageClass>) => [
    ...unboundOf(storageClass.metadata.name),
    ...(isDefaultClass(storageClass) ? unboundOf("") : []),
  ];
  const wantedBy = (volume: Stored<PersistentVolume>) => [
    ...waitingFor(volume),
    ...claims.byIndex(claimsByVolumeIndex, volume.metadata.name).map(keyOf),
  ];
  const pendingOf = (pod: Pod) =>
    claimKeysOf(pod).filter((key) => claims.get(key)?.status?.phase === "Pending");
  return [
    forResource(claims),
    // Not `watches`: the state before a change wakes none, or each binding would wake all that wait for the class.
    forResource(volumes, { keys: wantedBy }),
    watches(classes, waitingForClass, { deleted: () => [] }),
    watches(pods, pendingOf, { changed: () => false, deleted: () => [] }),
  ];
}
