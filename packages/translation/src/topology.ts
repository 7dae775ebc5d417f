/**
 * Where a volume can be reached from, in both vocabularies: the zone and region labels of Kubernetes (the
 * general ones and their beta forerunners) and the zone key of a CSI driver. Affinities are
 * rewritten copy on write.
 */

import { compareText, trimSpace } from "./go-text.ts";
import { entry, withEntry } from "./objects.ts";
import type { Trace } from "./trace.ts";
import { type Fault, isFault, objectLabel, TranslationError } from "./translation-error.ts";
import type {
  NodeSelectorRequirement,
  NodeSelectorTerm,
  ObjectMeta,
  PersistentVolume,
  VolumeNodeAffinity,
} from "./types.ts";

/** The zone label of nodes and volumes. */
export const ZONE = "topology.kubernetes.io/zone";
/** The region label of nodes and volumes. */
export const REGION = "topology.kubernetes.io/region";
/** The beta form of {@link ZONE}. */
export const BETA_ZONE = "failure-domain.beta.kubernetes.io/zone";
/** The beta form of {@link REGION}. */
export const BETA_REGION = "failure-domain.beta.kubernetes.io/region";

/** Joins the zones of a regional volume in one label. */
export const ZONE_DELIMITER = "__";

/** The affinity and metadata after translation; the same objects where nothing changed. */
export interface Placement {
  readonly nodeAffinity: VolumeNodeAffinity | null | undefined;
  readonly metadata: ObjectMeta | undefined;
}

/** Returns the region that contains all of the zones. */
export type RegionOfZones = (zones: readonly string[]) => string | Fault;

/** Rewrites the zones of an in-tree volume to the driver's key; labels serve where the affinity names none. */
export function placementToCSI(pv: PersistentVolume, csiZone: string, trace: Trace | undefined): Placement {
  const metadata = pv.metadata;
  let nodeAffinity = pv.spec?.nodeAffinity;
  const { zone: zoneKey, region: regionKey } = labelFamily(nodeAffinity, metadata);
  nodeAffinity = moveOrAdd(nodeAffinity, metadata, zoneKey, csiZone, splitZones, trace);
  // A rule of the newest library: the beta region becomes the general one (docs/behaviour/volume-plugins.md 8.4).
  if (regionKey === BETA_REGION && hasValues(nodeAffinity, BETA_REGION)) {
    nodeAffinity = renameKey(nodeAffinity, BETA_REGION, REGION, trace);
  }
  return { nodeAffinity, metadata };
}

/** As `placementToCSI`, for a driver that has a key for regions as well. */
export function zoneAndRegionToCSI(
  pv: PersistentVolume,
  csiZone: string,
  csiRegion: string,
  trace: Trace | undefined,
): Placement {
  const metadata = pv.metadata;
  let nodeAffinity = pv.spec?.nodeAffinity;
  const { zone: zoneKey, region: regionKey } = labelFamily(nodeAffinity, metadata);
  nodeAffinity = moveOrAdd(nodeAffinity, metadata, zoneKey, csiZone, oneValue, trace);
  nodeAffinity = moveOrAdd(nodeAffinity, metadata, regionKey, csiRegion, oneValue, trace);
  return { nodeAffinity, metadata };
}

/** Rewrites the driver's zones to Kubernetes labels, adds the region and labels the volume, for a way back. */
export function placementToInTree(
  pv: PersistentVolume,
  csiZone: string,
  regionOf: RegionOfZones | undefined,
  trace: Trace | undefined,
): Placement {
  let metadata = pv.metadata;
  let nodeAffinity = pv.spec?.nodeAffinity;
  const { zone: zoneKey, region: regionKey } = labelFamily(nodeAffinity, metadata);
  nodeAffinity = renameKey(nodeAffinity, csiZone, zoneKey, trace);
  metadata = labelFrom(metadata, nodeAffinity, zoneKey, joinZones, trace);
  // After the rename: the region comes from the zones under the key of Kubernetes.
  if (regionOf !== undefined) {
    nodeAffinity = addRegions(pv, nodeAffinity, zoneKey, regionKey, regionOf, trace);
    metadata = labelRegion(metadata, nodeAffinity, regionKey, trace);
  }
  return { nodeAffinity, metadata };
}

/** As `placementToInTree`, for a driver that has a key for regions as well. */
export function zoneAndRegionToInTree(
  pv: PersistentVolume,
  csiZone: string,
  csiRegion: string,
  trace: Trace | undefined,
): Placement {
  let metadata = pv.metadata;
  let nodeAffinity = pv.spec?.nodeAffinity;
  const { zone: zoneKey, region: regionKey } = labelFamily(nodeAffinity, metadata);
  nodeAffinity = renameKey(nodeAffinity, csiZone, zoneKey, trace);
  nodeAffinity = renameKey(nodeAffinity, csiRegion, regionKey, trace);
  metadata = labelFrom(metadata, nodeAffinity, zoneKey, first, trace);
  metadata = labelFrom(metadata, nodeAffinity, regionKey, first, trace);
  return { nodeAffinity, metadata };
}

/** Names of the labels that a volume speaks. */
interface LabelFamily {
  readonly zone: string;
  readonly region: string;
}

const GENERAL: LabelFamily = { zone: ZONE, region: REGION };
const BETA: LabelFamily = { zone: BETA_ZONE, region: BETA_REGION };

/** Which labels this volume speaks: those of its affinity first, then its own; general before beta. */
function labelFamily(
  affinity: VolumeNodeAffinity | null | undefined,
  metadata: ObjectMeta | undefined,
): LabelFamily {
  if (hasKey(affinity, ZONE)) return GENERAL;
  if (hasKey(affinity, BETA_ZONE)) return BETA;
  if (entry(metadata?.labels, ZONE) !== undefined) return GENERAL;
  if (entry(metadata?.labels, BETA_ZONE) !== undefined) return BETA;
  return GENERAL;
}

function moveOrAdd(
  affinity: VolumeNodeAffinity | null | undefined,
  metadata: ObjectMeta | undefined,
  key: string,
  csiKey: string,
  valuesOfLabel: (label: string) => readonly string[],
  trace: Trace | undefined,
): VolumeNodeAffinity | null | undefined {
  if (hasValues(affinity, key)) return renameKey(affinity, key, csiKey, trace);
  const label = entry(metadata?.labels, key);
  if (label === undefined) return affinity;
  const values = sorted(
    valuesOfLabel(label)
      .map(trimSpace)
      .filter((value) => value !== ""),
  );
  if (values.length === 0) return affinity;
  trace?.({
    from: `metadata.labels[${key}]`,
    to: `spec.nodeAffinity.required[${csiKey}]`,
    value: values,
    why: "the affinity names no zone, so the label does",
  });
  const requirement: NodeSelectorRequirement = { key: csiKey, operator: "In", values };
  // Terms are alternatives: one without the zone would let the volume onto nodes of every zone.
  const terms = termsOf(affinity);
  return withTerms(
    affinity,
    (terms.length === 0 ? [{}] : terms).map((term) => appendTo(term, requirement)),
  );
}

/** The label of a regional disk holds several zones. */
function splitZones(label: string): readonly string[] {
  return label.split(ZONE_DELIMITER);
}

/** Where a label holds one zone, or one region, whatever its text. */
function oneValue(label: string): readonly string[] {
  return [label];
}

function appendTo(term: NodeSelectorTerm, requirement: NodeSelectorRequirement): NodeSelectorTerm {
  return { ...term, matchExpressions: [...(term.matchExpressions ?? []), requirement] };
}

/** In each term without a region, the region of its zones. */
function addRegions(
  pv: PersistentVolume,
  affinity: VolumeNodeAffinity | null | undefined,
  zoneKey: string,
  regionKey: string,
  regionOf: RegionOfZones,
  trace: Trace | undefined,
): VolumeNodeAffinity | null | undefined {
  let changed = false;
  const before = termsOf(affinity);
  if (before.every((term) => termHasKey(term, regionKey))) return affinity;
  const terms = before.map((term) => {
    const expressions = term.matchExpressions ?? [];
    if (termHasKey(term, regionKey)) return term;
    const zones = expressions.flatMap((e) => (e.key === zoneKey ? (e.values ?? []) : []));
    const region = regionOf(zones);
    if (isFault(region)) {
      throw new TranslationError(
        objectLabel("PersistentVolume", pv.metadata),
        "spec.nodeAffinity",
        region.problem,
        region.remedy,
      );
    }
    changed = true;
    trace?.({
      from: `spec.nodeAffinity.required[${zoneKey}]`,
      to: `spec.nodeAffinity.required[${regionKey}]`,
      value: region,
      why: "the region of the zones, as in-tree volumes carry it",
    });
    return appendTo(term, { key: regionKey, operator: "In", values: [region] });
  });
  return changed ? withTerms(affinity, terms) : affinity;
}

function termHasKey(term: NodeSelectorTerm, key: string): boolean {
  return term.matchExpressions?.some((expression) => expression.key === key) ?? false;
}

function labelFrom(
  metadata: ObjectMeta | undefined,
  affinity: VolumeNodeAffinity | null | undefined,
  key: string,
  textOf: (values: readonly string[]) => string,
  trace: Trace | undefined,
): ObjectMeta | undefined {
  if (entry(metadata?.labels, key) !== undefined) return metadata;
  const values = valuesOf(affinity, key);
  if (values.length === 0) return metadata;
  const value = textOf(values);
  trace?.({
    from: `spec.nodeAffinity.required[${key}]`,
    to: `metadata.labels[${key}]`,
    value,
    why: "in-tree volumes carry their zones as labels",
  });
  return withEntry(metadata, "labels", key, value);
}

function joinZones(values: readonly string[]): string {
  return values.join(ZONE_DELIMITER);
}

function first(values: readonly string[]): string {
  return values[0] as string;
}

function labelRegion(
  metadata: ObjectMeta | undefined,
  affinity: VolumeNodeAffinity | null | undefined,
  key: string,
  trace: Trace | undefined,
): ObjectMeta | undefined {
  // Zones are joined in one label, regions are not: of several none is written (docs/behaviour/volume-plugins.md 8.4).
  if (entry(metadata?.labels, key) !== undefined || valuesOf(affinity, key).length !== 1) return metadata;
  return labelFrom(metadata, affinity, key, first, trace);
}

function termsOf(affinity: VolumeNodeAffinity | null | undefined): readonly NodeSelectorTerm[] {
  return affinity?.required?.nodeSelectorTerms ?? [];
}

function withTerms(
  affinity: VolumeNodeAffinity | null | undefined,
  nodeSelectorTerms: readonly NodeSelectorTerm[],
): VolumeNodeAffinity {
  return { ...affinity, required: { ...affinity?.required, nodeSelectorTerms } };
}

// The loops below are the hottest of the package and written for speed: no iterators, no closures.

function hasKey(affinity: VolumeNodeAffinity | null | undefined, key: string): boolean {
  return findKey(affinity, key, 0);
}

function hasValues(affinity: VolumeNodeAffinity | null | undefined, key: string): boolean {
  return findKey(affinity, key, 1);
}

/** True when some term has `key` with at least `valuesMin` values. */
function findKey(affinity: VolumeNodeAffinity | null | undefined, key: string, valuesMin: number): boolean {
  const terms = affinity?.required?.nodeSelectorTerms;
  if (terms == null) return false;
  for (let i = 0; i < terms.length; i++) {
    const expressions = terms[i]?.matchExpressions;
    if (expressions == null) continue;
    for (let j = 0; j < expressions.length; j++) {
      const expression = expressions[j] as NodeSelectorRequirement;
      if (expression.key === key && (expression.values?.length ?? 0) >= valuesMin) return true;
    }
  }
  return false;
}

/** The values that the affinity has for `key` in any term, each once, in order. */
function valuesOf(affinity: VolumeNodeAffinity | null | undefined, key: string): readonly string[] {
  const values: string[] = [];
  for (const term of termsOf(affinity)) {
    for (const expression of term.matchExpressions ?? []) {
      if (expression.key === key) values.push(...(expression.values ?? []));
    }
  }
  return values.length < 2 ? values : sorted(values);
}

function sorted(values: readonly string[]): string[] {
  return [...new Set(values)].sort(compareText);
}

function renameKey(
  affinity: VolumeNodeAffinity | null | undefined,
  from: string,
  to: string,
  trace: Trace | undefined,
): VolumeNodeAffinity | null | undefined {
  const before = affinity?.required?.nodeSelectorTerms;
  if (before == null || from === to) return affinity;
  let after: NodeSelectorTerm[] | undefined;
  for (let i = 0; i < before.length; i++) {
    const term = before[i] as NodeSelectorTerm;
    const renamed = withRenamedKey(term, from, to);
    if (renamed === term) continue;
    after ??= before.slice();
    after[i] = renamed;
  }
  if (after === undefined) return affinity;
  trace?.({
    from: `spec.nodeAffinity.required[${from}]`,
    to: `spec.nodeAffinity.required[${to}]`,
    value: valuesOf(affinity, from),
    why: "the same places under the other side's key",
  });
  return withTerms(affinity, after);
}

function withRenamedKey(term: NodeSelectorTerm, from: string, to: string): NodeSelectorTerm {
  const before = term.matchExpressions;
  if (before == null) return term;
  let after: NodeSelectorRequirement[] | undefined;
  for (let i = 0; i < before.length; i++) {
    const expression = before[i] as NodeSelectorRequirement;
    if (expression.key !== from) continue;
    after ??= before.slice();
    after[i] = { ...expression, key: to };
  }
  return after === undefined ? term : { ...term, matchExpressions: after };
}
