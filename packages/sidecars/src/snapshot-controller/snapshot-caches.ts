/** What the snapshot controller keeps in memory, and how its objects find each other. */
import type {
  Informer,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  SharedInformers,
  Stored,
} from "@longshore/kube";
import {
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
import { csiVolumeOf } from "./source-volume.ts";

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
