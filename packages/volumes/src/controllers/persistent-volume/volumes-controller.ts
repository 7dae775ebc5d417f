/**
 * The volumes controller: phases, release and reclaim. Source: docs/behaviour/controllers.md B5.
 *
 * Several volumes at a time: a pass writes to its own volume alone, with the version that it was decided on.
 */
import {
  type Actions,
  type Controller,
  forResource,
  keyOf,
  type Pass,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type Source,
  type Stored,
  settled,
  startController,
  watches,
} from "@longshore/kube";
import { migratedVolume } from "./annotations.ts";
import { decideVolumeStep, hasClaim, type VolumeObservation, type VolumeStep } from "./decide-volume-step.ts";
import { protectedVolume } from "./deletion-finalizer.ts";
import { reportOnClaim, reportOnVolume } from "./events.ts";
import { volumeNamesOfClaim, volumesByClaimIndex } from "./persistent-volume-caches.ts";
import type { PersistentVolumeCaches, PersistentVolumeContext } from "./persistent-volume-context.ts";

/** Starts the controller; it works in the background until it is stopped. */
export function startVolumesController(context: PersistentVolumeContext): Controller {
  return startController<VolumeObservation, VolumeStep>(context.env, {
    name: "volumes",
    workers: 10,
    passTimeoutMs: 120_000,
    sources: volumeSources(context.caches),
    observe: (name, pass) => observeVolume(context, name, pass),
    decide: decideVolumeStep,
    actions: volumeActions(context),
  });
}

function volumeSources({ claims, volumes }: PersistentVolumeCaches): readonly Source[] {
  // Among them those made for a claim that has taken another, or is gone: nothing else has them released.
  const heldFor = (claim: Stored<PersistentVolumeClaim>) => [
    ...volumeNamesOfClaim(claim),
    ...volumes.byIndex(volumesByClaimIndex, keyOf(claim)).map(keyOf),
  ];
  return [forResource(volumes), watches(claims, heldFor)];
}

async function observeVolume(
  context: PersistentVolumeContext,
  name: string,
  pass: Pass,
): Promise<VolumeObservation | undefined> {
  const volume = context.caches.volumes.get(name);
  if (volume === undefined) return undefined;
  const { migration } = context.provisioners;
  const protection = { migration, isHonored: context.honorsReclaimPolicy };
  const migrated = protectedVolume(migratedVolume(volume, migration), protection);
  return { volume, migrated, claim: hasClaim(volume) ? await claimOf(context, volume, pass) : undefined };
}

/** The claim of the volume, or undefined when it is surely gone (another of the same name counts as gone). */
async function claimOf(
  { caches, env }: PersistentVolumeContext,
  { spec, status }: Stored<PersistentVolume>,
  pass: Pass,
): Promise<Stored<PersistentVolumeClaim> | undefined> {
  const { uid, namespace = "", name = "" } = spec?.claimRef ?? {};
  const cached = caches.claims.get(`${namespace}/${name}`);
  if (cached?.metadata.uid === uid) return cached;
  // Known to be gone; before its disk is deleted, the deletion asks once more.
  if (cached === undefined && (status?.phase === "Released" || status?.phase === "Failed")) return undefined;
  const live = await env.kube.get(
    resources.persistentVolumeClaims,
    { namespace, name },
    { signal: pass.signal },
  );
  return live?.metadata.uid === uid ? live : undefined;
}

type VolumeActions = Actions<VolumeObservation, VolumeStep>;

function volumeActions(context: PersistentVolumeContext): VolumeActions {
  const { events, wakes } = context;
  return {
    ...volumeWrites(context),
    wakeClaim(_step, { claim }) {
      if (claim !== undefined) wakes.claim(keyOf(claim));
      return settled;
    },
    delete(_step, _observed, { key }) {
      wakes.deletion(key);
      return settled;
    },
    reportOnVolume(step, observed) {
      reportOnVolume(events, observed.volume, step);
      return { observed: reportedOnce(observed) };
    },
    reportOnClaim(step, observed) {
      reportOnClaim(events, step.claim, step);
      return { observed: reportedOnce(observed) };
    },
    settle: () => settled,
  };
}

function volumeWrites({
  env,
}: PersistentVolumeContext): Pick<VolumeActions, "markMigration" | "setPhase" | "unbind"> {
  const { kube } = env;
  const resource = resources.persistentVolumes;
  return {
    async markMigration({ volume }, observed, { signal }) {
      return { observed: withVolume(observed, await kube.update(resource, volume, { signal })) };
    },
    async setPhase({ volume }, observed, { signal }) {
      const stored = await kube.updateStatus(resource, volume, { signal });
      return { observed: { ...withVolume(observed, stored), hasNewPhase: true } };
    },
    async unbind({ volume }, observed, { signal }) {
      return { observed: withVolume(observed, await kube.update(resource, volume, { signal })) };
    },
  };
}

/** What is observed, with the volume as it was stored just now. */
function withVolume(observed: VolumeObservation, volume: Stored<PersistentVolume>): VolumeObservation {
  return { ...observed, volume, migrated: volume };
}

function reportedOnce(observed: VolumeObservation): VolumeObservation {
  return { ...observed, reports: (observed.reports ?? 0) + 1 };
}
