/** Plans an undo, and has the API server try the in-tree objects: later versions accept some sources no more. */
import type { KubeClient } from "@longshore/kube";
import type { ConversionPlanOptions } from "./conversion-options.ts";
import type { PlannedVolume, VolumeJournal } from "./conversion-types.ts";
import { readConversionView } from "./conversion-view.ts";
import { probeCreations } from "./probe-creations.ts";
import { type UndoPlan, undoPlanOf } from "./undo-plan.ts";

export type { UndoPlan } from "./undo-plan.ts";

/** Makes the plan; changes nothing. */
export async function planUndo(
  kube: KubeClient,
  journals: readonly VolumeJournal[],
  options: ConversionPlanOptions,
  signal: AbortSignal,
): Promise<UndoPlan> {
  const plan = undoPlanOf(await readConversionView(kube, signal), journals, options);
  const volumes: PlannedVolume[] = [];
  const refused = [...plan.refused];
  for (const planned of plan.volumes) {
    const refusals = await probeCreations(kube, planned, signal);
    const volume = planned.toAfter.metadata?.name ?? "";
    if (refusals.length === 0) volumes.push(planned);
    else refused.push({ volume, refusals });
  }
  return { volumes, refused };
}
