/** Look-ups over what a plan has read. Pure; each costs as much as it finds. */
import {
  isPodTerminal,
  type KubeObject,
  type PersistentVolumeClaim,
  type Pod,
  type Stored,
} from "@longshore/kube";
import { uncertainVolumesOf, type VolumeSnapshot, type VolumeSnapshotContent } from "@longshore/storage";
import { diskKeyOf } from "../crossing/disk-key.ts";
import { uniqueNamesOf, volumeFormOf } from "../crossing/volume-form.ts";
import type { ConversionView } from "./conversion-view.ts";

/** The look-ups. */
export interface ConversionIndex {
  claim(namespace: string, name: string): Stored<PersistentVolumeClaim> | undefined;
  podsOf(claim: Stored<PersistentVolumeClaim>): readonly Stored<Pod>[];
  snapshotsOf(claim: Stored<PersistentVolumeClaim>): readonly Stored<VolumeSnapshot>[];
  /** The content that the snapshot names; undefined: it names none, or it is not there. */
  contentOf(snapshot: Stored<VolumeSnapshot>): Stored<VolumeSnapshotContent> | undefined;
  /** Names of all PersistentVolumes that stand for the disk. */
  volumesOf(diskKey: string): readonly string[];
  isVolume(name: string): boolean;
  /** VolumeAttachments and nodes that hold the disk, in words. */
  holdersOf(volume: ConversionView["volumes"][number]): readonly string[];
  /** The object of the kind with this UID, among the workloads that can be scaled. */
  workload(uid: string): Workload | undefined;
}

/** A workload that can be scaled. */
export interface Workload {
  readonly kind: "StatefulSet" | "Deployment" | "ReplicaSet";
  readonly object: Stored<KubeObject & { readonly spec?: { readonly replicas?: number } }>;
}

/** Makes the look-ups. */
export function conversionIndex(view: ConversionView): ConversionIndex {
  const claims = new Map(view.claims.map((claim) => [keyIn(claim, claim.metadata.name), claim]));
  const pods = new Map<string, Stored<Pod>[]>();
  for (const pod of view.pods) {
    if (isPodTerminal(pod)) continue;
    for (const name of claimNamesOf(pod)) listIn(pods, keyIn(pod, name)).push(pod);
  }
  const snapshots = new Map<string, Stored<VolumeSnapshot>[]>();
  for (const snapshot of view.snapshots) {
    const name = snapshot.spec.source.persistentVolumeClaimName;
    if (name !== undefined) listIn(snapshots, keyIn(snapshot, name)).push(snapshot);
  }
  const contents = new Map(view.snapshotContents.map((content) => [content.metadata.name, content]));
  const disks = new Map<string, string[]>();
  for (const volume of view.volumes) {
    const key = diskKeyOf(volume);
    if (key !== undefined) listIn(disks, key).push(volume.metadata.name);
  }
  const names = new Set(view.volumes.map(({ metadata }) => metadata.name));
  const holders = holdersByName(view);
  const workloads = new Map<string, Workload>();
  const note = (kind: Workload["kind"], objects: readonly Workload["object"][]) => {
    for (const object of objects) workloads.set(object.metadata.uid, { kind, object });
  };
  note("StatefulSet", view.statefulSets as readonly Workload["object"][]);
  note("Deployment", view.deployments as readonly Workload["object"][]);
  note("ReplicaSet", view.replicaSets as readonly Workload["object"][]);
  return {
    claim: (namespace, name) => claims.get(`${namespace}/${name}`),
    podsOf: (claim) => pods.get(keyIn(claim, claim.metadata.name)) ?? [],
    snapshotsOf: (claim) => snapshots.get(keyIn(claim, claim.metadata.name)) ?? [],
    contentOf: ({ status }) => contents.get(status?.boundVolumeSnapshotContentName ?? ""),
    volumesOf: (diskKey) => disks.get(diskKey) ?? [],
    isVolume: (name) => names.has(name),
    holdersOf(volume) {
      const keys = [`PersistentVolume ${volume.metadata.name}`, ...uniqueNamesOf(volumeFormOf(volume))];
      return [...new Set(keys.flatMap((key) => holders.get(key) ?? []))];
    },
    workload: (uid) => workloads.get(uid),
  };
}

function holdersByName({ nodes, attachments }: ConversionView): ReadonlyMap<string, readonly string[]> {
  const holders = new Map<string, string[]>();
  for (const { metadata, spec } of attachments) {
    const name = spec.source.persistentVolumeName;
    if (name == null) continue;
    listIn(holders, `PersistentVolume ${name}`).push(
      `VolumeAttachment ${metadata.name} on Node ${spec.nodeName}`,
    );
  }
  for (const node of nodes) {
    const attached = (node.status?.volumesAttached ?? []).map(({ name }) => name);
    for (const name of [...(node.status?.volumesInUse ?? []), ...attached, ...uncertainVolumesOf(node)]) {
      listIn(holders, name).push(`Node ${node.metadata.name} (status: ${name})`);
    }
  }
  return holders;
}

/** Names of the claims that the pod uses; that of a generic ephemeral volume is named for the pod (KEP-1698). */
export function claimNamesOf({ metadata, spec }: Stored<Pod>): string[] {
  return (spec?.volumes ?? []).flatMap((volume) =>
    volume.ephemeral != null
      ? [`${metadata.name}-${volume.name}`]
      : (volume.persistentVolumeClaim?.claimName ?? []),
  );
}

const keyIn = ({ metadata }: Stored, name: string): string => `${metadata.namespace ?? ""}/${name}`;

function listIn<V>(lists: Map<string, V[]>, key: string): V[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}
