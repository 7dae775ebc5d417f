/** Plans a conversion: which volumes, what they become, and why others stay as they are. Changes nothing. */
import { type PersistentVolume, parseLabelSelector, type StorageClass, type Stored } from "@longshore/kube";
import { readClusterId } from "../crossing/crossing-plan.ts";
import { volumeFormOf } from "../crossing/volume-form.ts";
import { type ConversionIndex, conversionIndex } from "./conversion-index.ts";
import type { ConversionEnv, ConversionPlanOptions } from "./conversion-options.ts";
import type { ConversionPlan, PlannedReplacement, PlannedVolume, Refusal } from "./conversion-types.ts";
import { type ConversionView, readConversionView } from "./conversion-view.ts";
import { convertedFromAnnotation } from "./converted-from.ts";
import { policyOf } from "./decide-volume-step.ts";
import { convertedClaim, convertedClass, convertedVolume, ownersOf } from "./objects/index.ts";
import { probeCreations } from "./probe-creations.ts";
import { planReplacements } from "./replacements/plan-replacements.ts";
import { probeReplacement } from "./replacements/probe-replacement.ts";
import { snapshotRefusals } from "./snapshot-refusals.ts";
import {
  claimRefusals,
  driverRefusals,
  ownerRefusals,
  volumeRefusals,
  volumeUse,
} from "./volume-refusals.ts";

/** Makes the plan. @param skipped names of volumes that an unfinished run carries @throws what the client throws */
export async function planConversion(
  env: Pick<ConversionEnv, "kube" | "clock">,
  options: ConversionPlanOptions,
  signal: AbortSignal,
  skipped: ReadonlySet<string> = new Set(),
): Promise<ConversionPlan> {
  const clusterId = await readClusterId(env.kube, signal);
  const view = await readConversionView(env.kube, signal);
  const plan = conversionPlanOf(view, options, skipped);
  const volumes: PlannedVolume[] = [];
  const refused = [...plan.refused];
  for (const planned of plan.volumes) {
    const refusals = await probeCreations(env.kube, planned, signal);
    if (refusals.length === 0) volumes.push(planned);
    else refused.push({ volume: planned.volume, refusals });
  }
  const replacements: PlannedReplacement[] = [];
  const objects = planReplacements(view, options, volumes);
  refused.push(...objects.refused.filter(({ volume }) => !skipped.has(volume)));
  for (const planned of objects.replacements) {
    if (skipped.has(planned.key)) continue;
    const refusals = await probeReplacement(env.kube, planned, signal);
    if (refusals.length === 0) replacements.push(planned);
    else refused.push({ volume: planned.key, refusals });
  }
  const classes = classesOf(view, volumes, replacements);
  const madeAt = env.clock.now().toISOString();
  return { version: 1, clusterId, madeAt, volumes, refused, classes, replacements };
}

/** The in-tree classes of the claims that are not replaced, and what takes their place. */
function classesOf(
  { classes }: ConversionView,
  volumes: readonly PlannedVolume[],
  replacements: readonly PlannedReplacement[],
): NonNullable<ConversionPlan["classes"]> {
  const names = new Set(volumes.map(({ claimBefore }) => claimBefore.spec?.storageClassName ?? ""));
  const replaced = new Set(replacements.map(({ key }) => key));
  return classes.flatMap((each) => {
    const { name } = each.metadata;
    if (!names.has(name) || replaced.has(`StorageClass ${name}`)) return [];
    const before: StorageClass = { ...each, apiVersion: "storage.k8s.io/v1", kind: "StorageClass" };
    const converted = convertedClass(before);
    // One of a driver already is none to convert.
    return "failure" in converted ? [] : [{ before, after: converted.object }];
  });
}

/** The plan for what was read. Pure. */
export function conversionPlanOf(
  view: ConversionView,
  options: ConversionPlanOptions,
  skipped: ReadonlySet<string> = new Set(),
): Pick<ConversionPlan, "volumes" | "refused"> {
  const index = conversionIndex(view);
  const volumes: PlannedVolume[] = [];
  const refused: { volume: string; refusals: readonly Refusal[] }[] = [];
  for (const name of options.volumes ?? []) {
    if (index.isVolume(name)) continue;
    const remedy = "see the names of the PersistentVolumes";
    refused.push({
      volume: name,
      refusals: [
        { code: "volume-not-found", object: `PersistentVolume ${name}`, reason: "it is not there", remedy },
      ],
    });
  }
  const named = new Set(options.volumes ?? []);
  for (const volume of options.noVolumes === true ? [] : view.volumes) {
    const { name } = volume.metadata;
    if (skipped.has(name) || !isSelected(volume, index, options, named)) continue;
    const planned = planVolume(volume, view, index, options);
    if ("refusals" in planned) refused.push({ volume: name, refusals: planned.refusals });
    else volumes.push(planned);
  }
  return { volumes, refused };
}

function isSelected(
  volume: Stored<PersistentVolume>,
  index: ConversionIndex,
  { namespaces, plugins, selector, rule }: ConversionPlanOptions,
  named: ReadonlySet<string>,
): boolean {
  const form = volumeFormOf(volume);
  if (rule === undefined ? form.kind !== "in-tree" : form.kind !== "csi" || form.driver !== rule.fromDriver) {
    return named.has(volume.metadata.name);
  }
  if (named.size > 0 && !named.has(volume.metadata.name)) return false;
  if (plugins !== undefined && form.kind === "in-tree" && !plugins.includes(form.plugin)) return false;
  const { namespace = "", name = "" } = volume.spec?.claimRef ?? {};
  if (namespaces !== undefined && !namespaces.includes(namespace)) return false;
  if (selector === undefined) return true;
  const labels = index.claim(namespace, name)?.metadata.labels ?? {};
  return parseLabelSelector(selector).matches(labels);
}

function planVolume(
  volume: Stored<PersistentVolume>,
  view: ConversionView,
  index: ConversionIndex,
  options: ConversionPlanOptions,
): PlannedVolume | { readonly refusals: readonly Refusal[] } {
  const object = `PersistentVolume ${volume.metadata.name}`;
  const own = volumeRefusals(volume, index);
  if (own.length > 0) return { refusals: own };
  const { namespace = "", name = "" } = volume.spec?.claimRef ?? {};
  const claim = index.claim(namespace, name);
  const ofClaim = claimRefusals(volume, claim);
  if (ofClaim.length > 0 || claim === undefined) return { refusals: ofClaim };
  const newName = newVolumeName(volume.metadata.name);
  const converted = convertedVolume(volume, {
    newName,
    ...(options.rule === undefined ? {} : { rule: options.rule }),
  });
  if ("failure" in converted) return { refusals: [untranslatable(object, converted.failure)] };
  const convertedOne = convertedClaim(claim, newName, converted.object);
  if ("failure" in convertedOne) {
    return { refusals: [untranslatable(`PersistentVolumeClaim ${namespace}/${name}`, convertedOne.failure)] };
  }
  const driver = converted.object.spec?.csi?.driver ?? "";
  const use = volumeUse(volume, claim, index, options);
  const refusals = [
    ...ownerRefusals(claim, index, options),
    ...(index.isVolume(newName) ? [nameTaken(newName)] : []),
    ...driverRefusals(driver, view, object),
    ...snapshotRefusals(claim, converted.object, index),
    ...use.refusals,
  ];
  if (refusals.length > 0) return { refusals };
  const { annotations } = converted.object.metadata ?? {};
  const form = volumeFormOf(volume);
  return {
    volume: volume.metadata.name,
    volumeUid: volume.metadata.uid,
    plugin: form.kind === "in-tree" ? form.plugin : form.kind === "csi" ? form.driver : "",
    driver,
    claim: { namespace, name, uid: claim.metadata.uid },
    // Items of a list come without these.
    fromBefore: { apiVersion: "v1", kind: "PersistentVolume", ...volume },
    claimBefore: { apiVersion: "v1", kind: "PersistentVolumeClaim", ...claim },
    toAfter: {
      ...converted.object,
      metadata: {
        ...converted.object.metadata,
        annotations: { ...annotations, [convertedFromAnnotation]: volume.metadata.name },
      },
    },
    claimAfter: convertedOne.object,
    differences: [...converted.differences, ...convertedOne.differences],
    policy: policyOf(volume),
    workloads: use.workloads,
    owners: [...ownersOf(volume, converted.object), ...ownersOf(claim, convertedOne.object)],
    inUseBy: use.inUseBy,
    snapshots: index.snapshotsOf(claim).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
  };
}

/** A name of its own for the new PersistentVolume, the same in each run. */
export function newVolumeName(name: string): string {
  const suffix = "-csi";
  return `${name.slice(0, 253 - suffix.length)}${suffix}`;
}

function nameTaken(name: string): Refusal {
  return {
    code: "name-taken",
    object: `PersistentVolume ${name}`,
    field: "metadata.name",
    reason: "it is there already, and the new volume would have its name",
    remedy: "rename or remove it",
  };
}

function untranslatable(object: string, failure: string): Refusal {
  return {
    code: "translation",
    object,
    reason: `it cannot be translated: ${failure}`,
    remedy: "correct the field named",
  };
}
