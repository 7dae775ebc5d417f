/** Which zone a new EBS volume goes to, and the region of a zone. Pure. */
import type { AllowedTopologies } from "../../framework/volume-plugin.ts";
import { EbsVolumeError } from "./ebs-volume-id.ts";

/** Labels of nodes and volumes, general availability first, then beta. */
export const zoneLabels = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"] as const;
/** Labels of the region, in the order of {@link zoneLabels}. */
export const regionLabels = [
  "topology.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/region",
] as const;

/** What affects the choice of a zone. */
export interface ZoneRequest {
  /** `zone` or `zones` of the storage class. */
  readonly parameterZones: readonly string[] | undefined;
  readonly allowedTopologies: AllowedTopologies;
  /** Labels of the node that the scheduler selected. */
  readonly selectedNodeLabels: Readonly<Record<string, string>> | undefined;
  /** Zones that have instances. */
  readonly zonesWithNodes: readonly string[];
  /** Spreads the volumes of one set over the zones. */
  readonly claimName: string;
}

/** The zone for a new volume. @throws EbsVolumeError when the requests contradict each other or no zone is left */
export function chooseZone(request: ZoneRequest): string {
  const allowed = allowedZones(request.allowedTopologies);
  if (request.parameterZones !== undefined && allowed !== undefined) {
    throw new EbsVolumeError("zone(s) cannot be specified in StorageClass if allowedTopologies is: drop one");
  }
  if (request.selectedNodeLabels !== undefined) {
    const labels = request.selectedNodeLabels;
    const zone = zoneLabels.map((key) => labels[key]).find((value) => value !== undefined);
    if (zone === undefined) {
      throw new EbsVolumeError(`the selected node has no label ${zoneLabels[0]}: label the node`);
    }
    if (request.parameterZones !== undefined) {
      throw new EbsVolumeError("zone(s) cannot be specified with volumeBindingMode WaitForFirstConsumer");
    }
    if (allowed !== undefined && !allowed.includes(zone)) {
      throw new EbsVolumeError(`the selected node's zone ${zone} is not in allowedTopologies`);
    }
    return zone;
  }
  // Sorted: the same claim must get the same zone when it is asked for again, in whatever order zones are listed.
  const zones = [...new Set(request.parameterZones ?? allowed ?? request.zonesWithNodes)].sort();
  if (zones.length === 0) throw new EbsVolumeError("no zone with a node to put the volume into");
  const { hash, offset } = spread(request.claimName);
  return zones[(hash + offset) % zones.length] as string;
}

/** `us-east-1a` → `us-east-1`; a name without a trailing letter is its own region. */
export function regionOfZone(zone: string): string {
  return /\d[a-z]$/.test(zone) ? zone.slice(0, -1) : zone;
}

function allowedZones(terms: AllowedTopologies): readonly string[] | undefined {
  if (terms.length === 0) return undefined;
  const zones: string[] = [];
  for (const term of terms) {
    for (const { key, values } of term.matchLabelExpressions ?? []) {
      if (!(zoneLabels as readonly string[]).includes(key)) {
        throw new EbsVolumeError(`allowedTopologies: key ${key} is not one of ${zoneLabels.join(", ")}`);
      }
      zones.push(...values);
    }
  }
  return zones;
}

/**
 * Claims of a StatefulSet are named `<template>-<set>-<ordinal>`: hashing the set's name only puts the
 * claims of one pod into one zone, and the ordinal moves on by one zone a pod.
 */
function spread(claimName: string): { readonly hash: number; readonly offset: number } {
  const ordinal = /^(.*)-(\d+)$/.exec(claimName);
  if (ordinal === null) return { hash: fnv1(claimName), offset: 0 };
  const prefix = ordinal[1] ?? "";
  return { hash: fnv1(prefix.slice(prefix.lastIndexOf("-") + 1)), offset: Number(ordinal[2]) };
}

function fnv1(text: string): number {
  let hash = 0x811c9dc5;
  // FNV-1 and not FNV-1a, as upstream (volume/helpers/zones.go): another hash would choose other zones.
  for (const byte of new TextEncoder().encode(text)) hash = (Math.imul(hash, 0x01000193) ^ byte) >>> 0;
  return hash;
}
