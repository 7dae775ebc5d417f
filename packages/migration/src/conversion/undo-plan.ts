/** What an undo does: the same conversion the other way round, from what the journal of the first one holds. Pure. */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { type ConversionIndex, conversionIndex } from "./conversion-index.ts";
import { originalVolume } from "./conversion-journal.ts";
import type { ConversionPlanOptions } from "./conversion-options.ts";
import type { PlannedVolume, Refusal, VolumeJournal } from "./conversion-types.ts";
import type { ConversionView } from "./conversion-view.ts";
import { policyOf } from "./decide-volume-step.ts";
import { convertedClaim } from "./objects/index.ts";
import { restoredVolume } from "./restored-volume.ts";
import { volumeUse } from "./volume-refusals.ts";

/** The volumes to carry back, and those that cannot be. */
export interface UndoPlan {
  readonly volumes: readonly PlannedVolume[];
  readonly refused: readonly { readonly volume: string; readonly refusals: readonly Refusal[] }[];
}

/** @param journals those of the volumes to be carried back */
export function undoPlanOf(
  view: ConversionView,
  journals: readonly VolumeJournal[],
  options: ConversionPlanOptions,
): UndoPlan {
  const index = conversionIndex(view);
  const byName = new Map(view.volumes.map((volume) => [volume.metadata.name, volume]));
  const volumes: PlannedVolume[] = [];
  const refused: { volume: string; refusals: readonly Refusal[] }[] = [];
  for (const journal of journals) {
    const planned = undoOf(journal, byName, index, options);
    if ("refusals" in planned) refused.push({ volume: originalVolume(journal), refusals: planned.refusals });
    else volumes.push(planned);
  }
  return { volumes, refused };
}

function undoOf(
  { planned }: VolumeJournal,
  byName: ReadonlyMap<string, Stored<PersistentVolume>>,
  index: ConversionIndex,
  options: ConversionPlanOptions,
): PlannedVolume | { readonly refusals: readonly Refusal[] } {
  const { claim: ref, fromBefore, toAfter, policy, driver, plugin } = planned;
  const newName = toAfter.metadata?.name ?? "";
  const made = byName.get(newName);
  const claim = index.claim(ref.namespace, ref.name);
  const before = fromBefore.metadata?.name ?? "";
  // Nothing of the conversion but the policy was written where there is no new volume.
  const from = made ?? (toAfter as Stored<PersistentVolume>);
  const current = claim ?? (planned.claimAfter as Stored<PersistentVolumeClaim>);
  const back = convertedClaim(current, before, restoredVolume(fromBefore, made));
  if ("failure" in back) {
    const object = `PersistentVolumeClaim ${ref.namespace}/${ref.name}`;
    return { refusals: [{ code: "translation", object, reason: back.failure, remedy: "correct the field" }] };
  }
  const isBoundToNew = claim?.spec?.volumeName === newName;
  const use =
    claim === undefined || made === undefined || !isBoundToNew
      ? { inUseBy: [], workloads: [], refusals: [] }
      : volumeUse(made, claim, index, options);
  if (use.refusals.length > 0) return { refusals: use.refusals };
  const to = restoredVolume(fromBefore, made);
  return {
    volume: newName,
    volumeUid: made?.metadata.uid ?? "",
    plugin,
    driver,
    claim: { ...ref, uid: claim?.metadata.uid ?? ref.uid },
    fromBefore: from,
    claimBefore: current,
    toAfter: to,
    claimAfter: back.object,
    differences: back.differences,
    policy: made !== undefined && isBoundToNew && policyOf(made) !== "Retain" ? policyOf(made) : policy,
    workloads: use.workloads.length > 0 ? use.workloads : planned.workloads,
    owners: planned.owners,
    inUseBy: use.inUseBy,
    snapshots: planned.snapshots,
  };
}
