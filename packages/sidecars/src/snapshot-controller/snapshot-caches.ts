/** What the snapshot controller keeps in memory, and how its objects find each other. */
import type {
  Informer,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  SharedInformers,
  Stored,
} from "@longshore/kube";
import { isDeleting, keyOf } from "@longshore/kube";
import {
  snapshotClaimFinalizer,
  snapshotGroup,
  type VolumeGroupSnapshot,
  type VolumeGroupSnapshotClass,
  type VolumeGroupSnapshotContent,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import {
  cachedClaims,
  cachedGroupSnapshotClasses,
  cachedGroupSnapshotContents,
  cachedGroupSnapshots,
  cachedNodes,
  cachedSnapshotClasses,
  cachedSnapshotContents,
  cachedSnapshots,
  cachedVolumes,
} from "../common/caches.ts";
import { contentNameOf, groupOf } from "./binding.ts";
import { contentNameOfGroup } from "./group-binding.ts";
import type { ObservedGroup } from "./group-step.ts";
import { csiVolumeOf } from "./snapshot-source.ts";
import type { ObservedSnapshot } from "./snapshot-step.ts";

/** The caches for group snapshots. */
export interface GroupCaches {
  readonly groups: Informer<VolumeGroupSnapshot>;
  readonly contents: Informer<VolumeGroupSnapshotContent>;
  readonly classes: Informer<VolumeGroupSnapshotClass>;
  readonly volumes: Informer<PersistentVolume>;
}

/** The caches for snapshots; those for groups come once their kinds are served. */
export interface SnapshotCaches {
  readonly snapshots: Informer<VolumeSnapshot>;
  readonly contents: Informer<VolumeSnapshotContent>;
  readonly classes: Informer<VolumeSnapshotClass>;
  readonly claims: Informer<PersistentVolumeClaim>;
  /** Where the nodes have snapshotters of their own. */
  readonly nodes: Informer<Node> | undefined;
  groups: GroupCaches | undefined;
}

/** Starts the caches for snapshots; resolves when they are filled. */
export async function startSnapshotCaches(
  informers: SharedInformers,
  options: { readonly distributed: boolean },
  signal: AbortSignal,
): Promise<SnapshotCaches> {
  const snapshots = cachedSnapshots(informers);
  const contents = cachedSnapshotContents(informers);
  const claims = cachedClaims(informers);
  snapshots.addIndex("byContent", (snapshot) => present(contentNameOf(snapshot)));
  snapshots.addIndex("bySourceClaim", (snapshot) => present(sourceClaimKey(snapshot)));
  snapshots.addIndex("byGroup", (snapshot) => present(groupKeyOf(snapshot)));
  contents.addIndex("byGroupHandle", ({ spec, status }) =>
    present(driverHandleKey(spec.driver, status?.volumeGroupSnapshotHandle)),
  );
  claims.addIndex("bySourceSnapshot", (claim) => present(sourceSnapshotKey(claim)));
  const classes = cachedSnapshotClasses(informers);
  const nodes = options.distributed ? cachedNodes(informers) : undefined;
  const all = [snapshots, contents, claims, classes, ...(nodes === undefined ? [] : [nodes])];
  await Promise.all(all.map((cache) => cache.synced(signal)));
  return { snapshots, contents, classes, claims, nodes, groups: undefined };
}

/** Starts the caches for group snapshots; resolves when they are filled. */
export async function startGroupCaches(
  informers: SharedInformers,
  signal: AbortSignal,
): Promise<GroupCaches> {
  const groups = cachedGroupSnapshots(informers);
  const contents = cachedGroupSnapshotContents(informers);
  const classes = cachedGroupSnapshotClasses(informers);
  const volumes = cachedVolumes(informers);
  groups.addIndex("byContent", (group) => [contentNameOfGroup(group)]);
  contents.addIndex("byGroupHandle", ({ spec, status }) =>
    present(driverHandleKey(spec.driver, status?.volumeGroupSnapshotHandle)),
  );
  volumes.addIndex("byCsiHandle", csiHandleKeys);
  await Promise.all([groups, contents, classes, volumes].map((cache) => cache.synced(signal)));
  return { groups, contents, classes, volumes };
}

/** Everything known of the snapshot of this key; undefined: there is none. */
export function observeSnapshot(caches: SnapshotCaches, key: string): ObservedSnapshot | undefined {
  const snapshot = caches.snapshots.get(key);
  if (snapshot === undefined) return undefined;
  const contentName = contentNameOf(snapshot);
  const content = contentName === undefined ? undefined : caches.contents.get(contentName);
  const className = snapshot.spec.volumeSnapshotClassName;
  return {
    snapshot,
    content,
    snapshotClass: className === undefined ? undefined : caches.classes.get(className),
    isClaimFree: isClaimFree(caches, snapshot),
    isRestoring: isRestoring(caches, key),
    group: groupAround(caches, snapshot),
    groupName: content === undefined ? undefined : groupNameFor(caches, content, snapshot),
  };
}

/** Everything known of the group snapshot of this key; undefined: there is none, or groups are not served. */
export function observeGroup(caches: SnapshotCaches, key: string): ObservedGroup | undefined {
  const { groups: groupCaches } = caches;
  const group = groupCaches?.groups.get(key);
  if (groupCaches === undefined || group === undefined) return undefined;
  const className = group.spec.volumeGroupSnapshotClassName;
  const content = groupCaches.contents.get(contentNameOfGroup(group));
  const members = caches.snapshots
    .byIndex("byGroup", key)
    .filter((member) => [undefined, group.metadata.uid].includes(groupOf(member)?.uid));
  return {
    group,
    content,
    groupClass: className === undefined ? undefined : groupCaches.classes.get(className),
    members,
    restoring: members.map(keyOf).find((member) => isRestoring(caches, member)),
    memberSnapshot: (name) => caches.snapshots.get(`${group.metadata.namespace ?? ""}/${name}`),
    memberContent: (name) => caches.contents.get(name),
    volume: (volumeHandle) => {
      const found = groupCaches.volumes.byIndex(
        "byCsiHandle",
        driverHandleKey(content?.spec.driver ?? "", volumeHandle) ?? "",
      );
      return found.length === 1 ? found[0] : undefined;
    },
  };
}

/** Whether the claim of a snapshot exists, is not being deleted, and does not have the snapshot finalizer. */
function isClaimFree({ claims }: SnapshotCaches, snapshot: VolumeSnapshot): boolean {
  const key = sourceClaimKey(snapshot);
  const claim = key === undefined ? undefined : claims.get(key);
  if (claim === undefined || isDeleting(claim)) return false;
  return !(claim.metadata.finalizers ?? []).includes(snapshotClaimFinalizer);
}

function isRestoring({ claims }: SnapshotCaches, snapshotKey: string): boolean {
  return claims.byIndex("bySourceSnapshot", snapshotKey).some(isPendingClaim);
}

/** The group that a snapshot belongs to, while it exists. */
function groupAround(
  { groups }: SnapshotCaches,
  snapshot: Stored<VolumeSnapshot>,
): Stored<VolumeGroupSnapshot> | undefined {
  const named = groupOf(snapshot);
  const key = groupKeyOf(snapshot);
  const group = key === undefined ? undefined : groups?.groups.get(key);
  return named?.uid === undefined || named.uid === group?.metadata.uid ? group : undefined;
}

/** The group snapshot to whose content a content belongs by the driver's word. */
function groupNameFor(
  { groups }: SnapshotCaches,
  { spec, status }: VolumeSnapshotContent,
  { metadata }: Stored<VolumeSnapshot>,
): string | undefined | "unknown" {
  const key = driverHandleKey(spec.driver, status?.volumeGroupSnapshotHandle);
  if (groups === undefined || key === undefined) return undefined;
  const refs = groups.contents
    .byIndex("byGroupHandle", key)
    .map((content) => content.spec.volumeGroupSnapshotRef);
  if (refs.length === 0) return "unknown";
  return refs.find(({ namespace }) => namespace === metadata.namespace)?.name;
}

/** Key of the claim of which a snapshot is made. */
export function sourceClaimKey({ metadata, spec }: VolumeSnapshot): string | undefined {
  const name = spec.source.persistentVolumeClaimName;
  return name ? `${metadata?.namespace ?? ""}/${name}` : undefined;
}

/** Key of the snapshot from which a claim's volume is made. */
export function sourceSnapshotKey({ metadata, spec }: PersistentVolumeClaim): string | undefined {
  const source = spec?.dataSource ?? spec?.dataSourceRef;
  if (source?.kind !== "VolumeSnapshot" || source.apiGroup !== snapshotGroup) return undefined;
  const namespace = (spec?.dataSourceRef as { readonly namespace?: string } | undefined)?.namespace;
  return `${namespace ?? metadata?.namespace ?? ""}/${source.name}`;
}

/** Key of the group snapshot that a snapshot belongs to. */
export function groupKeyOf(snapshot: VolumeSnapshot): string | undefined {
  const group = groupOf(snapshot);
  return group === undefined ? undefined : `${snapshot.metadata?.namespace ?? ""}/${group.name}`;
}

/** Whether the volume of a claim is yet to be made. */
export function isPendingClaim({ status }: PersistentVolumeClaim): boolean {
  return (status?.phase ?? "Pending") === "Pending";
}

/** Key of a handle among those of all drivers. */
export function driverHandleKey(driver: string, handle: string | undefined): string | undefined {
  return handle ? `${driver}^${handle}` : undefined;
}

function csiHandleKeys(pv: Stored<PersistentVolume>): readonly string[] {
  try {
    const { driver, volumeHandle } = csiVolumeOf(pv);
    return present(driverHandleKey(driver, volumeHandle));
  } catch {
    return []; // No driver knows it.
  }
}

function present(value: string | undefined): readonly string[] {
  return value === undefined ? [] : [value];
}
