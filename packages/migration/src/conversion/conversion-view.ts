/** What a plan looks at, read once for all volumes. */
import {
  type CSIDriver,
  type CSINode,
  type Deployment,
  type KubeClient,
  type KubeObject,
  type ListPage,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type ReplicaSet,
  type Resource,
  resources,
  type StatefulSet,
  type StorageClass,
  type Stored,
  type VolumeAttachment,
} from "@longshore/kube";
import { snapshotResources, type VolumeSnapshot, type VolumeSnapshotContent } from "@longshore/storage";

const { volumeSnapshots, volumeSnapshotContents } = snapshotResources;

/** All that was read. */
export interface ConversionView {
  readonly volumes: readonly Stored<PersistentVolume>[];
  readonly claims: readonly Stored<PersistentVolumeClaim>[];
  readonly pods: readonly Stored<Pod>[];
  readonly nodes: readonly Stored<Node>[];
  readonly attachments: readonly Stored<VolumeAttachment>[];
  readonly statefulSets: readonly Stored<StatefulSet>[];
  readonly deployments: readonly Stored<Deployment>[];
  readonly replicaSets: readonly Stored<ReplicaSet>[];
  readonly csiNodes: readonly Stored<CSINode>[];
  readonly csiDrivers: readonly Stored<CSIDriver>[];
  readonly snapshots: readonly Stored<VolumeSnapshot>[];
  readonly snapshotContents: readonly Stored<VolumeSnapshotContent>[];
  readonly classes: readonly Stored<StorageClass>[];
}

/** Objects of one page. */
const pageSize = 500;

/** Reads it. @throws what the client throws */
export async function readConversionView(kube: KubeClient, signal: AbortSignal): Promise<ConversionView> {
  const all = <T extends KubeObject>(resource: Resource<T>) => listAll(kube, resource, signal);
  // One kind after the other: a plan is a guest of the API server.
  return {
    volumes: await all(resources.persistentVolumes),
    claims: await all(resources.persistentVolumeClaims),
    pods: await all(resources.pods),
    nodes: await all(resources.nodes),
    attachments: await all(resources.volumeAttachments),
    statefulSets: await all(resources.statefulSets),
    deployments: await all(resources.deployments),
    replicaSets: await all(resources.replicaSets),
    csiNodes: await all(resources.csiNodes),
    csiDrivers: await all(resources.csiDrivers),
    snapshots: await all(volumeSnapshots),
    snapshotContents: await all(volumeSnapshotContents),
    classes: await all(resources.storageClasses),
  };
}

/** All objects of the kind, without managed fields; empty where it is not served. @throws what the client throws */
export async function listAll<T extends KubeObject>(
  kube: KubeClient,
  resource: Resource<T>,
  signal: AbortSignal,
): Promise<readonly Stored<T>[]> {
  if ((await kube.servedVersion(resource, { signal })) === undefined) return [];
  const items: Stored<T>[] = [];
  let next: string | undefined;
  do {
    const page: ListPage<T> = await kube.list(resource, {
      limit: pageSize,
      dropManagedFields: true,
      ...(next === undefined ? {} : { continue: next }),
      signal,
    });
    items.push(...page.items);
    next = page.continue;
  } while (next !== undefined);
  return items;
}
