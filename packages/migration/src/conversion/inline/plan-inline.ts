/** Plans conversions of inline volumes, and the way back, and has the API server try the objects. Changes nothing. */
import { KubeApiError, type KubeClient, resources } from "@longshore/kube";
import { claimNamesOf } from "../conversion-index.ts";
import type { Refusal } from "../conversion-types.ts";
import { workloadResource } from "../observe-volume.ts";
import { probeCreation, refusalOf } from "../probe-creations.ts";
import { turnedVolumes } from "./inline-actions.ts";
import { inlineDiskKey } from "./inline-disks.ts";
import { isInlineScaledDown, templateKey } from "./inline-journal.ts";
import { type InlinePlanOptions, inlinePlanOf } from "./inline-plan.ts";
import { stateRefusals } from "./inline-refusals.ts";
import {
  type InlineJournal,
  type InlinePlan,
  type PlannedTemplate,
  type TemplateWorkload,
  templateName,
} from "./inline-types.ts";
import { disksOfPod } from "./inline-users.ts";
import { type InlineView, readInlineView } from "./inline-view.ts";

/** @param skipped keys of workloads that an unfinished run carries @throws what the client throws */
export async function planInlineConversion(
  kube: KubeClient,
  options: InlinePlanOptions,
  signal: AbortSignal,
  skipped: ReadonlySet<string> = new Set(),
): Promise<InlinePlan> {
  const view = await readInlineView(kube, signal);
  const plan = inlinePlanOf(view, options, skipped);
  const templates: PlannedTemplate[] = [];
  const refused = [...plan.refused];
  for (const planned of plan.templates) {
    const refusals: Refusal[] = [];
    for (const { volume, claim } of planned.volumes) {
      const { name = "", namespace } = claim.metadata ?? {};
      const tried = [
        await probeCreation(kube, resources.persistentVolumes, volume, volume.metadata?.name ?? "", signal),
        await probeCreation(kube, resources.persistentVolumeClaims, claim, `${namespace}/${name}`, signal),
      ];
      refusals.push(...tried.filter((each) => each !== undefined));
    }
    refusals.push(...(await probeTemplate(kube, planned, view, "convert", signal)));
    if (refusals.length === 0) templates.push(planned);
    else refused.push({ volume: templateName(planned), refusals });
  }
  return { templates, refused };
}

/** The way back, from journals of conversions, also of those that have not come to their end. */
export async function planInlineUndo(
  kube: KubeClient,
  journals: readonly InlineJournal[],
  options: InlinePlanOptions,
  signal: AbortSignal,
): Promise<InlinePlan> {
  if (journals.length === 0) return { templates: [], refused: [] };
  const view = await readInlineView(kube, signal);
  const templates: PlannedTemplate[] = [];
  const refused: { volume: string; refusals: readonly Refusal[] }[] = [];
  for (const journal of journals) {
    const planned = undoOf(journal, view, options);
    const tried =
      "refusals" in planned ? planned.refusals : await probeTemplate(kube, planned, view, "undo", signal);
    if (tried.length > 0) refused.push({ volume: templateName(journal.planned), refusals: tried });
    else if (!("refusals" in planned)) templates.push(planned);
  }
  return { templates, refused };
}

function undoOf(
  journal: InlineJournal,
  view: InlineView,
  options: InlinePlanOptions,
): PlannedTemplate | { readonly refusals: readonly Refusal[] } {
  const { planned } = journal;
  const object = templateName(planned);
  const found = storedOf(planned, view);
  if (found === undefined) {
    const refusal: Refusal = {
      code: "changed-by-others",
      object,
      field: "metadata.uid",
      reason: "it is gone, or another one of its name is there",
      remedy: "remove its claims and their PersistentVolumes by hand: these have policy Retain",
    };
    return { refusals: [refusal] };
  }
  const { namespace } = planned.workload;
  const keys = new Set(planned.volumes.map(({ before }) => inlineDiskKey(before, namespace)));
  const claims = new Set(planned.volumes.map(({ claim }) => claim.metadata?.name ?? ""));
  const users = view.pods.filter(
    (pod) =>
      disksOfPod(pod).some((key) => keys.has(key)) ||
      (pod.metadata.namespace === namespace && claimNamesOf(pod).some((name) => claims.has(name))),
  );
  const isDown = isInlineScaledDown(journal);
  const isClaims = (found as TemplateWorkload).spec?.template?.spec?.volumes?.some((volume) =>
    claims.has(volume.persistentVolumeClaim?.claimName ?? ""),
  );
  // A template that was not changed yet is not touched: its pods run on.
  const refusals = isClaims === true ? stateRefusals(found, object, users, options) : [];
  if (refusals.length > 0) return { refusals };
  const { replicas = 1 } = (found as TemplateWorkload).spec ?? {};
  return {
    ...planned,
    workload: { ...planned.workload, replicas: isDown ? planned.workload.replicas : replicas },
    scaleDown: options.scaleDown === true,
    inUseBy: users.map((pod) => `Pod ${pod.metadata.namespace}/${pod.metadata.name}`),
  };
}

/** Has the API server try the template of the other form. */
async function probeTemplate(
  kube: KubeClient,
  planned: PlannedTemplate,
  view: InlineView,
  direction: InlineJournal["direction"],
  signal: AbortSignal,
): Promise<readonly Refusal[]> {
  const { workload } = planned;
  const found = storedOf(planned, view);
  if (found === undefined) return [];
  const volumes = turnedVolumes(found as TemplateWorkload, planned, direction);
  const body = { metadata: { uid: workload.uid }, spec: { template: { spec: { volumes } } } };
  try {
    await kube.patch(workloadResource(workload), workload, { type: "merge", body, dryRun: true }, { signal });
    return [];
  } catch (error) {
    if (!(error instanceof KubeApiError)) throw error;
    return [refusalOf(error, templateName(planned))];
  }
}

function storedOf({ workload }: PlannedTemplate, { workloads }: InlineView) {
  return workloads.find(({ metadata }) => metadata.uid === workload.uid);
}

/** Keys of the workloads that an unfinished run carries. */
export function openTemplates(journals: Iterable<InlineJournal>): ReadonlySet<string> {
  return new Set(
    [...journals]
      .filter(({ finishedAt }) => finishedAt === undefined)
      .map((each) => templateKey(each.planned)),
  );
}
