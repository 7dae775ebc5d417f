/** Which classes and StatefulSets are replaced, by what, and why others stay as they are. Pure. */
import {
  type KubeObject,
  type PersistentVolume,
  parseLabelSelector,
  type StatefulSet,
  type StorageClass,
  type Stored,
} from "@longshore/kube";
import { getCSINameFromInTreeName, isMigratableIntreePluginByName } from "@longshore/translation";
import type { ConversionPlanOptions } from "../conversion-options.ts";
import type { ConversionPlan, PlannedVolume, Refusal } from "../conversion-types.ts";
import type { ConversionView } from "../conversion-view.ts";
import { convertedFromAnnotation } from "../converted-from.ts";
import { convertedClass, convertedTemplates, ownersOf } from "../objects/index.ts";
import { driverRefusals } from "../volume-refusals.ts";
import { retentionRefusal, unfinishedRollout } from "./decide-replacement-step.ts";
import { hasForm, isDefaultClass } from "./replaced-form.ts";
import type { PlannedReplacement } from "./replacement-types.ts";

/** What is replaced, and what is not. */
export interface ReplacementPlan {
  readonly replacements: readonly PlannedReplacement[];
  readonly refused: ConversionPlan["refused"];
}

type Planned = PlannedReplacement | { readonly key: string; readonly refusals: readonly Refusal[] };

/** Classes come first, since templates may name new ones. @param volumes those that get another name in the same run */
export function planReplacements(
  view: ConversionView,
  options: ConversionPlanOptions,
  volumes: readonly PlannedVolume[],
): ReplacementPlan {
  const classes =
    options.classes === true ? view.classes.flatMap((each) => planClass(each, view, options)) : [];
  const names = newClassNames(view, classes, options);
  const volumeNames = newVolumeNames(view.volumes, volumes);
  const sets =
    options.templates === true
      ? view.statefulSets.flatMap((each) => planSet(each, names, volumeNames, options))
      : [];
  const all = [...classes, ...sets];
  return {
    replacements: all.flatMap((planned) => ("refusals" in planned ? [] : [planned])),
    refused: all.flatMap((planned) =>
      "refusals" in planned ? [{ volume: planned.key, refusals: planned.refusals }] : [],
    ),
  };
}

function planClass(
  found: Stored<StorageClass>,
  view: ConversionView,
  options: ConversionPlanOptions,
): readonly Planned[] {
  const { provisioner, metadata } = found;
  const { plugins, classSuffix = "" } = options;
  if (!isMigratableIntreePluginByName(provisioner)) return [];
  if (plugins !== undefined && !plugins.includes(provisioner)) return [];
  const key = `StorageClass ${metadata.name}`;
  const before: StorageClass = { ...found, apiVersion: "storage.k8s.io/v1", kind: "StorageClass" };
  const converted = convertedClass(before);
  if ("failure" in converted) {
    const remedy = "correct the field named, or leave the class out by naming plugins";
    const reason = `it cannot be translated: ${converted.failure}`;
    return [{ key, refusals: [{ code: "translation", object: key, reason, remedy }] }];
  }
  const newName = `${metadata.name}${classSuffix}`;
  const after: StorageClass = {
    ...converted.object,
    metadata: { ...converted.object.metadata, name: newName },
  };
  const other = newName === metadata.name ? undefined : classNamed(view, newName);
  if (other !== undefined) {
    if (!hasForm("StorageClass", other, after)) return [{ key, refusals: [nameTaken(newName)] }];
    if (!isDefaultClass(before)) return [];
  }
  const refusals = [
    ...driverRefusals(getCSINameFromInTreeName(provisioner), view, key),
    ...controllerRefusals(before, key, options),
    ...deletionRefusals(before, key),
  ];
  if (refusals.length > 0) return [{ key, refusals }];
  const isBeside = newName !== metadata.name;
  return [plannedOf(key, before, after, converted.differences, isBeside)];
}

function planSet(
  found: Stored<StatefulSet>,
  classes: ReadonlyMap<string, string>,
  volumes: ReadonlyMap<string, string>,
  options: ConversionPlanOptions,
): readonly Planned[] {
  const { namespace = "", name, labels = {} } = found.metadata;
  const { namespaces, selector } = options;
  if (namespaces !== undefined && !namespaces.includes(namespace)) return [];
  if (selector !== undefined && !parseLabelSelector(selector).matches(labels)) return [];
  const key = `StatefulSet ${namespace}/${name}`;
  const before: StatefulSet = { ...found, apiVersion: "apps/v1", kind: "StatefulSet" };
  const { persistentVolumeClaimRetentionPolicy: _policy, ...spec } = before.spec ?? {};
  // The policy is looked at below: a set whose templates stay is not refused for it.
  if ("failure" in convertedTemplates({ ...before, spec } as StatefulSet, classes, volumes)) return [];
  const retention = retentionRefusal(before, key);
  const converted = convertedTemplates(before, classes, volumes);
  if (retention !== undefined || "failure" in converted) {
    return [{ key, refusals: retention === undefined ? [] : [retention] }];
  }
  const refusals = [
    ...controllerRefusals(before, key, options),
    ...deletionRefusals(before, key),
    ...rolloutRefusals(before, key),
  ];
  if (refusals.length > 0) return [{ key, refusals }];
  return [plannedOf(key, before, converted.object, converted.differences, false)];
}

function plannedOf(
  key: string,
  before: Stored<KubeObject> | KubeObject,
  after: KubeObject,
  differences: PlannedReplacement["differences"],
  keepsOld: boolean,
): PlannedReplacement {
  const { namespace, name = "", uid = "" } = before.metadata ?? {};
  return {
    key,
    kind: before.kind === "StatefulSet" ? "StatefulSet" : "StorageClass",
    ...(namespace === undefined ? {} : { namespace }),
    name,
    uid,
    before,
    after,
    keepsOld,
    deletionBegun: false,
    differences,
    owners: ownersOf(before, after).filter(({ kind }) => kind !== "controller"),
  };
}

/** The in-tree classes whose new name differs, where a class of that name is there or is made in this run. */
function newClassNames(
  view: ConversionView,
  classes: readonly Planned[],
  { classSuffix = "" }: ConversionPlanOptions,
): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  if (classSuffix === "") return names;
  const made = new Set(classes.flatMap((each) => ("refusals" in each ? [] : [each.after.metadata?.name])));
  for (const { metadata, provisioner } of view.classes) {
    if (!isMigratableIntreePluginByName(provisioner)) continue;
    const name = `${metadata.name}${classSuffix}`;
    const isDrivers = classNamed(view, name)?.provisioner === getCSINameFromInTreeName(provisioner);
    if (made.has(name) || isDrivers) names.set(metadata.name, name);
  }
  return names;
}

/** Volumes that have been converted, and those that are in this run. */
function newVolumeNames(
  volumes: readonly Stored<PersistentVolume>[],
  planned: readonly PlannedVolume[],
): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const { metadata } of volumes) {
    const old = metadata.annotations?.[convertedFromAnnotation];
    if (old !== undefined) names.set(old, metadata.name);
  }
  for (const { volume, toAfter } of planned) names.set(volume, toAfter.metadata?.name ?? "");
  return names;
}

const classNamed = ({ classes }: ConversionView, name: string) =>
  classes.find(({ metadata }) => metadata.name === name);

/** A controller writes its object again in the old form. */
function controllerRefusals(
  { metadata }: KubeObject,
  object: string,
  { ownersPaused = false }: ConversionPlanOptions,
): readonly Refusal[] {
  if (ownersPaused) return [];
  return (metadata?.ownerReferences ?? []).map(({ kind, name }) => ({
    code: "owner-needs-action" as const,
    object,
    field: "metadata.ownerReferences",
    reason: `${kind} ${name} owns it and may write it again in its old form`,
    remedy: `change it in ${kind} ${name}, or pause its operator, and say so: \`ownersPaused\``,
  }));
}

function deletionRefusals({ metadata }: KubeObject, object: string): readonly Refusal[] {
  if (metadata?.deletionTimestamp === undefined) return [];
  const field = "metadata.deletionTimestamp";
  return [
    {
      code: "changed-by-others",
      object,
      field,
      reason: "it is being deleted",
      remedy: "wait until it is gone",
    },
  ];
}

function rolloutRefusals(set: StatefulSet, object: string): readonly Refusal[] {
  const reason = unfinishedRollout(set);
  if (reason === undefined) return [];
  const field = "status.updateRevision";
  const remedy = "wait until the rollout has ended; a partition has to be 0 for that";
  return [{ code: "owner-needs-action", object, field, reason, remedy }];
}

function nameTaken(name: string): Refusal {
  return {
    code: "name-taken",
    object: `StorageClass ${name}`,
    field: "metadata.name",
    reason: "it is there already, and is another one than the new class would be",
    remedy: "remove it, or choose another end of the names: `classSuffix`",
  };
}
