/** Workloads that have begun to use a volume since its conversion was planned: a run that goes on with it scales them, too. */
import type { KubeClient } from "@longshore/kube";
import { conversionIndex } from "./conversion-index.ts";
import { isScaledDown } from "./conversion-journal.ts";
import type { ConversionPlanOptions } from "./conversion-options.ts";
import type { VolumeJournal } from "./conversion-types.ts";
import { type ConversionView, readConversionView } from "./conversion-view.ts";
import { volumeUse } from "./volume-refusals.ts";

/**
 * The unfinished journals with the workloads that use their volumes now, where the run may scale them. Reads the cluster only where a
 * workload may be missing. @throws what the client throws
 */
export async function withLaterWorkloads(
  kube: KubeClient,
  journals: readonly VolumeJournal[],
  options: ConversionPlanOptions,
  signal: AbortSignal,
): Promise<readonly VolumeJournal[]> {
  if (options.scaleDown !== true || journals.every(isScaledDown)) return journals;
  return laterWorkloadsOf(await readConversionView(kube, signal), journals, options);
}

/** Those of what was read. What is scaled down keeps its replicas as they were planned. Pure. */
export function laterWorkloadsOf(
  view: ConversionView,
  journals: readonly VolumeJournal[],
  options: ConversionPlanOptions,
): readonly VolumeJournal[] {
  const index = conversionIndex(view);
  const volumes = new Map(view.volumes.map((volume) => [volume.metadata.name, volume]));
  return journals.map((journal) => {
    const { planned } = journal;
    const volume = volumes.get(planned.volume);
    const claim = index.claim(planned.claim.namespace, planned.claim.name);
    if (isScaledDown(journal) || volume === undefined || claim === undefined) return journal;
    const known = new Set(planned.workloads.map(({ uid }) => uid));
    const later = volumeUse(volume, claim, index, options).workloads.filter(({ uid }) => !known.has(uid));
    if (later.length === 0) return journal;
    return { ...journal, planned: { ...planned, workloads: [...planned.workloads, ...later] } };
  });
}
