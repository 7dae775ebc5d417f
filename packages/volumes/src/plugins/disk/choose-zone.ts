/** Which zones a new volume goes to. Pure. Source: upstream cloud-provider/volume/helpers/zones.go. */
import type { AllowedTopologies } from "../../framework/volume-plugin.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";

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

/** The zone for a new volume. @throws InTreeVolumeError when the requests contradict each other or no zone is left */
export function chooseZone(request: ZoneRequest): string {
  return chooseZones(request, 1)[0] as string;
}

/**
 * The zones for a new volume with so many copies, that of the selected node first.
 *
 * @throws InTreeVolumeError when the requests contradict each other or too few zones are left
 */
export function chooseZones(request: ZoneRequest, count: number): readonly string[] {
  const { parameterZones, selectedNodeLabels } = request;
  const allowed = allowedZones(request.allowedTopologies);
  if (parameterZones !== undefined && allowed !== undefined) {
    throw new InTreeVolumeError(
      "zone(s) cannot be specified in StorageClass if allowedTopologies is: drop one",
    );
  }
  // Sorted: the same claim must get the same zone when it is asked for again, in whatever order zones are listed.
  const zones = [...new Set(parameterZones ?? allowed ?? request.zonesWithNodes)].sort();
  if (selectedNodeLabels === undefined) return spreadOver(zones, request.claimName, count);
  const zone = zoneLabels.map((key) => selectedNodeLabels[key]).find((value) => value !== undefined);
  if (zone === undefined) {
    throw new InTreeVolumeError(`the selected node has no label ${zoneLabels[0]}: label the node`);
  }
  if (parameterZones !== undefined) {
    throw new InTreeVolumeError("zone(s) cannot be specified with volumeBindingMode WaitForFirstConsumer");
  }
  if (allowed !== undefined && !allowed.includes(zone)) {
    throw new InTreeVolumeError(`the selected node's zone ${zone} is not in allowedTopologies`);
  }
  if (count === 1) return [zone];
  const others = zones.filter((other) => other !== zone);
  return [zone, ...spreadOver(others, request.claimName, count - 1)];
}

function spreadOver(zones: readonly string[], claimName: string, count: number): readonly string[] {
  if (zones.length === 0) throw new InTreeVolumeError("no zone with a node to put the volume into");
  if (zones.length < count) {
    throw new InTreeVolumeError(
      `the volume needs ${count} more zones and there are ${zones.length} (${zones.join(", ")}): allow more zones`,
    );
  }
  const { hash, offset } = spread(claimName);
  return Array.from(
    { length: count },
    (_, index) => zones[(hash + offset * count + index) % zones.length] as string,
  );
}

function allowedZones(terms: AllowedTopologies): readonly string[] | undefined {
  if (terms.length === 0) return undefined;
  const zones: string[] = [];
  for (const term of terms) {
    for (const { key, values } of term.matchLabelExpressions ?? []) {
      if (!(zoneLabels as readonly string[]).includes(key)) {
        throw new InTreeVolumeError(`allowedTopologies: key ${key} is not one of ${zoneLabels.join(", ")}`);
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
