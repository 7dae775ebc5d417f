/**
 * Volumes that exist already, for claims that wait for their pod: local disks above all. Pure. Source:
 * docs/behaviour/controllers.md B7; Kubernetes volume binder, findMatchingVolumes.
 */
import {
  type Node,
  nodeSelectorMatches,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type Stored,
} from "@longshore/kube";
import { bestVolume, classOfClaim } from "@longshore/volumes";
import type { ClusterView } from "./cluster-view.ts";
import { volumeOnNode } from "./counted-volumes.ts";
import { claimsOfPod, isFullyBound, namespaceOf } from "./pod-claims.ts";

/** What a claim gets on a node. */
export type StaticChoice =
  /** A volume that is there; one that names the claim is bound already by its own side. */
  | { readonly kind: "volume"; readonly volume: Stored<PersistentVolume> }
  /** A volume names the claim, and the node cannot reach it. */
  | { readonly kind: "elsewhere" }
  /** There is none: it has to be made. */
  | { readonly kind: "none" };

/**
 * What each delayed claim of the pod that is not bound gets on the node, by name: of the volumes that fit the smallest, and
 * no volume twice.
 */
export function staticVolumes(
  view: ClusterView,
  pod: Pod,
  node: Stored<Node>,
): ReadonlyMap<string, StaticChoice> {
  const taken = new Set<string>();
  const choices = new Map<string, StaticChoice>();
  for (const { name, claim } of claimsOfPod(view, pod)) {
    if (claim === undefined || isFullyBound(claim)) continue;
    const choice = choose(view, claim, `${namespaceOf(pod)}/${name}`, node, taken);
    if (choice.kind === "volume") taken.add(choice.volume.metadata.name);
    choices.set(name, choice);
  }
  return choices;
}

function choose(
  view: ClusterView,
  claim: Stored<PersistentVolumeClaim>,
  key: string,
  node: Stored<Node>,
  taken: ReadonlySet<string>,
): StaticChoice {
  const named = bestVolume(claim, view.volumesNaming(key), []);
  if (named !== undefined) {
    return canReach(view, named, node) ? { kind: "volume", volume: named } : { kind: "elsewhere" };
  }
  const free = view
    .availableVolumes(classOfClaim(claim))
    .filter((volume) => !taken.has(volume.metadata.name) && canReach(view, volume, node));
  const volume = bestVolume(claim, [], free);
  return volume === undefined ? { kind: "none" } : { kind: "volume", volume };
}

function canReach(view: ClusterView, volume: Stored<PersistentVolume>, node: Stored<Node>): boolean {
  return affinityReason(view, volume, node) === undefined;
}

/** Why the volume, as the node will see it, is out of its reach; undefined: it can be used there. */
export function affinityReason(
  view: ClusterView,
  volume: Stored<PersistentVolume>,
  node: Stored<Node>,
): string | undefined {
  let required: NonNullable<NonNullable<PersistentVolume["spec"]>["nodeAffinity"]>["required"];
  try {
    required = volumeOnNode(view, volume, node.metadata.name).spec?.nodeAffinity?.required;
  } catch {
    return "node(s) had a volume that cannot be translated to CSI"; // What is wrong with it, its own events say.
  }
  if (required === undefined || nodeSelectorMatches(node, required)) return undefined;
  return "node(s) had volume node affinity conflict";
}
