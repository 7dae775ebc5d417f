/** What the driver says of where a node or a volume is. */
import type { DriverKind } from "./kinds/driver-kind.ts";

/** The region label of nodes and in-tree volumes. */
const regionKey = "topology.kubernetes.io/region";

/**
 * The topology of a zone; undefined for a driver without topology. In a cloud whose zones have the names of another provider it names the
 * region as well, which translation otherwise reads off the zone's name (docs/behaviour/volume-plugins.md 8.4).
 */
export function topologyOfZone(
  { topologyKey, regionOfZone, region }: Pick<DriverKind, "topologyKey" | "regionOfZone" | "region">,
  zone: string,
): { readonly segments: Record<string, string> } | undefined {
  if (topologyKey === undefined) return undefined;
  const isForeign = region !== undefined && regionOfZone !== undefined && regionOfZone(zone) !== region;
  return { segments: { [topologyKey]: zone, ...(isForeign && { [regionKey]: region }) } };
}
