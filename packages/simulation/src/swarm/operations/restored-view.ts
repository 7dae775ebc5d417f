/** What the objects of a cluster say of volumes, before a restore and after it, and how the two differ. */
import {
  type CSINode,
  type PersistentVolume,
  type Pod,
  type Volume as PodVolume,
  resources,
  type Stored,
} from "@longshore/kube";
import { clusterPlugins, type InProcessCluster, inTreeHandle } from "@longshore/local";
import { migratedPluginsAnnotation } from "@longshore/storage";
import { diskOf } from "../../contract-watch.ts";
import { worldOf } from "../../world.ts";

type Cluster = InProcessCluster;
/** A stored PersistentVolume. */
export type Volume = Stored<PersistentVolume>;

/** What the objects say of volumes. */
export interface Seen {
  readonly volumes: readonly Volume[];
  /** The disks of those in use, and those that pods or their templates name themselves. */
  readonly disks: ReadonlySet<string>;
  /** The disks of all volumes, and those that pods or their templates name themselves. */
  readonly named: ReadonlySet<string>;
  /** Disks that their nodes attach themselves, each with the names of the volumes that name it, or `a pod`. */
  readonly namesOfOwn: ReadonlyMap<string, string>;
  /** UIDs of claims by their names. */
  readonly claims: ReadonlyMap<string, string>;
  readonly csiNodes: readonly Stored<CSINode>[];
  /** Names and UIDs of those on nodes. */
  readonly pods: readonly string[];
  /** UIDs of the claims that were made for pods, one line for each pod, by names and UIDs of the pods. */
  readonly claimsOfPods: ReadonlyMap<string, string>;
}

/** What they say now. */
export function seen(cluster: Cluster): Seen {
  const claims = cluster.objects(resources.persistentVolumeClaims);
  const volumes = cluster.objects(resources.persistentVolumes);
  const pods = cluster.objects(resources.pods);
  const uids = new Map(claims.map(({ metadata: { name, uid } }) => [name, uid]));
  const ofPods = disksOfPods(cluster);
  const disksOf = (some: readonly Volume[]) =>
    new Set([...some.flatMap((volume) => diskOfVolume(cluster, volume) ?? []), ...ofPods]);
  return {
    volumes,
    disks: disksOf(volumes.filter(isInUse)),
    named: disksOf(volumes),
    namesOfOwn: namesOfOwn(cluster, volumes),
    claims: uids,
    csiNodes: cluster.objects(resources.csiNodes),
    pods: pods.filter(({ spec }) => spec?.nodeName !== undefined).map(nameAndUid),
    claimsOfPods: new Map(pods.map((pod) => [nameAndUid(pod), madeFor(pod, uids)])),
  };
}

const nameAndUid = ({ metadata: { name, uid } }: Stored<Pod>) => `${name}/${uid}`;

function madeFor({ metadata, spec }: Stored<Pod>, claims: Seen["claims"]): string {
  const made = (spec?.volumes ?? []).filter(({ ephemeral }) => ephemeral !== undefined);
  return made.map(({ name }) => claims.get(`${metadata.name}-${name}`) ?? "").join("\n");
}

/** Names and UIDs of pods without the volumes that were made for them: those that were gone, and those whose claims are lost. */
export function emptiedPods(before: Seen, after: Seen): readonly string[] {
  const again = after.pods.filter((pod) => !before.pods.includes(pod));
  const lost = [...after.claimsOfPods].filter(([pod, of]) => (before.claimsOfPods.get(pod) ?? of) !== of);
  return [...new Set([...again, ...lost.map(([pod]) => pod)])];
}

/** The disks that pods name themselves, or the templates of pods. */
function disksOfPods(cluster: Cluster): readonly string[] {
  return volumesOfPods(cluster).flatMap((volume) => diskOfSpec(cluster, volume) ?? []);
}

function volumesOfPods(cluster: Cluster): readonly PodVolume[] {
  const templates = cluster.objects(resources.statefulSets).map(({ spec }) => spec?.template);
  return [...cluster.objects(resources.pods), ...templates].flatMap((pod) => pod?.spec?.volumes ?? []);
}

function namesOfOwn(cluster: Cluster, volumes: readonly Volume[]): ReadonlyMap<string, string> {
  const names = new Map<string, Set<string>>();
  const add = (name: string, spec: Volume["spec"] | PodVolume) => {
    const disk = isAttachedByNode(spec) ? diskOfSpec(cluster, spec) : undefined;
    if (disk !== undefined) names.set(disk, (names.get(disk) ?? new Set()).add(name));
  };
  for (const { metadata, spec } of volumes) add(metadata.name, spec);
  for (const volume of volumesOfPods(cluster)) add("a pod", volume);
  return new Map([...names].map(([disk, of]) => [disk, [...of].sort().join()]));
}

/** Whether no controller attaches such disks: they are kept from being attached twice by no object. */
function isAttachedByNode(source: Volume["spec"] | PodVolume): boolean {
  const spec = source as Volume["spec"];
  const plugin = clusterPlugins.find(
    (each) => spec?.[each.source] !== undefined || each.driverName === spec?.csi?.driver,
  );
  return plugin !== undefined && !plugin.controllerPublishes && !plugin.isShared;
}

/** Disks that a conversion has carried since, and that their nodes attach themselves: other volumes name them. */
export function carriedSince(before: Seen, after: Seen): ReadonlySet<string> {
  const names = after.namesOfOwn;
  const carried = [...before.namesOfOwn].filter(([disk, of]) => (names.get(disk) ?? of) !== of);
  return new Set(carried.map(([disk]) => disk));
}

/** Whether both CSINodes are of one node and list the same plugins as migrated. */
export function listsSame(one: Stored<CSINode>, other: Stored<CSINode>): boolean {
  const listed = (csiNode: Stored<CSINode>) =>
    csiNode.metadata.annotations?.[migratedPluginsAnnotation] ?? "";
  return one.metadata.name === other.metadata.name && listed(one) === listed(other);
}

/**
 * Volumes that were made since: those whose claims are there, and those whose claims are lost, too; with the UIDs of all lost claims. A volume
 * that a conversion has made since is left out: its disk is named as it was before.
 */
export function madeSince(cluster: Cluster, before: Seen, after: Seen) {
  const isThere = new Set(after.volumes.map(({ metadata }) => metadata.name));
  const isNamed = (volume: Volume) => after.named.has(diskOfVolume(cluster, volume) ?? "");
  const uids = new Set(after.claims.values());
  const made = before.volumes.filter((volume) => !isThere.has(volume.metadata.name) && !isNamed(volume));
  const claimOf = ({ spec }: Volume) => spec?.claimRef?.uid ?? "";
  const claimed = [...before.claims.values(), ...made.map(claimOf)];
  return {
    known: made.filter((volume) => isInUse(volume) && uids.has(claimOf(volume))),
    lost: made.filter((volume) => isInUse(volume) && !uids.has(claimOf(volume))),
    claims: claimed.filter((uid) => uid !== "" && !uids.has(uid)),
  };
}

function isInUse({ metadata, status }: Volume): boolean {
  return metadata.deletionTimestamp === undefined && status?.phase === "Bound";
}

/**
 * Volumes that were given up since, and are there again: their disks are gone, or about to be. One that was converted since was not given up:
 * its disk was in use, by another volume or by a pod that named it.
 */
export function returnedOf(cluster: Cluster, before: Seen, after: Seen): readonly Volume[] {
  const uids = new Set(before.volumes.filter(isInUse).map(({ metadata }) => metadata.uid));
  const isUsed = (volume: Volume) => before.disks.has(diskOfVolume(cluster, volume) ?? "");
  return after.volumes.filter(
    (volume) => isInUse(volume) && !uids.has(volume.metadata.uid) && !isUsed(volume),
  );
}

/** The disk of a PersistentVolume. One of the Flexvolume driver has its disk's name. */
export function diskOfVolume(cluster: Cluster, { metadata, spec }: Volume): string | undefined {
  return spec?.flexVolume == null ? diskOfSpec(cluster, spec) : metadata.name;
}

/** The disk that a volume names, or a pod itself. */
export function diskOfSpec(cluster: Cluster, source: Volume["spec"] | PodVolume): string | undefined {
  const spec = source as Volume["spec"];
  const handle = inTreeHandle(spec) ?? spec?.csi?.volumeHandle;
  return handle === undefined ? undefined : diskOf(handle, worldOf(cluster));
}
