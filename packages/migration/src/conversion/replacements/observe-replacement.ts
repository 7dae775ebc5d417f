/** Reads what the decision of one object needs, live from the API server. */
import {
  isPodTerminal,
  type KubeClient,
  type KubeObject,
  labelSelectorMatches,
  type PersistentVolumeClaim,
  type Pod,
  type Resource,
  resources,
  type StatefulSet,
  type Stored,
} from "@longshore/kube";
import {
  newNameOf,
  type PlannedReplacement,
  type ReplacedKind,
  type ReplacementJournal,
  type ReplacementObservation,
} from "./replacement-types.ts";

/** The resource of a kind. */
export function replacedResource(kind: ReplacedKind): Resource<KubeObject> {
  return (kind === "StatefulSet" ? resources.statefulSets : resources.storageClasses) as Resource<KubeObject>;
}

/** The object by its name. */
export function refOf({ namespace }: PlannedReplacement, name: string): { name: string; namespace?: string } {
  return namespace === undefined ? { name } : { namespace, name };
}

/** Costs one request for a class, and for a StatefulSet one more for the pods of its namespace. */
export async function observeReplacement(
  kube: KubeClient,
  { planned }: ReplacementJournal,
  signal: AbortSignal,
): Promise<ReplacementObservation> {
  const resource = replacedResource(planned.kind);
  const newName = newNameOf(planned);
  const from = await kube.get(resource, refOf(planned, planned.name), { signal });
  const to = newName === planned.name ? from : await kube.get(resource, refOf(planned, newName), { signal });
  const set = planned.kind === "StatefulSet" ? (from as Stored<StatefulSet> | undefined) : undefined;
  if (set === undefined) return { from, to, ownedClaims: [], orphans: [] };
  const ownedClaims = await claimsOwnedBy(kube, set, signal);
  const orphans =
    set.metadata.deletionTimestamp === undefined ? await orphansOf(kube, set, planned.uid, signal) : [];
  return { from, to, ownedClaims, orphans };
}

/** A server that does not know the field has no set that owns claims. */
async function claimsOwnedBy(
  kube: KubeClient,
  { metadata, spec }: Stored<StatefulSet>,
  signal: AbortSignal,
): Promise<readonly Stored<PersistentVolumeClaim>[]> {
  if (spec?.persistentVolumeClaimRetentionPolicy === undefined) return [];
  const { items } = await kube.list(resources.persistentVolumeClaims, {
    namespace: metadata.namespace ?? "",
    signal,
  });
  return items.filter((claim) => claim.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid));
}

/** Pods that the set is going to adopt. A pod that ends, or that another controller has, is not one of them. */
async function orphansOf(
  kube: KubeClient,
  { metadata, spec }: Stored<StatefulSet>,
  oldUid: string,
  signal: AbortSignal,
): Promise<readonly Stored<Pod>[]> {
  const { items } = await kube.list(resources.pods, { namespace: metadata.namespace ?? "", signal });
  return items.filter((pod) => {
    if (isPodTerminal(pod) || pod.metadata.deletionTimestamp !== undefined) return false;
    if (!isNamedFor(metadata.name, pod.metadata.name)) return false;
    if (!labelSelectorMatches(spec?.selector, pod.metadata.labels)) return false;
    const controller = pod.metadata.ownerReferences?.find((owner) => owner.controller === true);
    return controller === undefined || (controller.uid === oldUid && oldUid !== metadata.uid);
  });
}

/** `SET-ORDINAL`. */
function isNamedFor(set: string, pod: string): boolean {
  return pod.startsWith(`${set}-`) && /^\d+$/.test(pod.slice(set.length + 1));
}
