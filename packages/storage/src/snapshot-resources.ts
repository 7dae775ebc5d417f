/**
 * The kinds of snapshots, which come as custom resources: what their objects look like and where they are served.
 * Fields are those of `snapshot.storage.k8s.io/v1` and `groupsnapshot.storage.k8s.io` (external-snapshotter,
 * client/apis); the definitions are in `crds/`.
 */
import type { KubeObject, Resource } from "@longshore/kube";

/** What happens to a snapshot at the driver when its content is deleted. */
export type SnapshotDeletionPolicy = "Delete" | "Retain";

/** The last error in making a snapshot. */
export interface SnapshotError {
  /** RFC 3339. */
  time?: string;
  message?: string;
}

/** Names an object (core/v1 ObjectReference, as far as snapshots use it). */
export interface SnapshotReference {
  apiVersion?: string;
  kind?: string;
  name?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
}

/** A user's request for a snapshot of a claim, or for the use of an existing snapshot. */
export interface VolumeSnapshot extends KubeObject {
  spec: {
    /** Exactly one of the two. */
    source: { persistentVolumeClaimName?: string; volumeSnapshotContentName?: string };
    volumeSnapshotClassName?: string;
  };
  status?: VolumeSnapshotStatus;
}

/** What has become of a {@link VolumeSnapshot}. Trust it only where the content points back. */
export interface VolumeSnapshotStatus {
  boundVolumeSnapshotContentName?: string;
  /** When it was taken, RFC 3339. */
  creationTime?: string;
  readyToUse?: boolean;
  /** The least size of a volume made from it, a quantity. */
  restoreSize?: string | number;
  error?: SnapshotError | null;
  volumeGroupSnapshotName?: string;
}

/** A snapshot as its driver has it. */
export interface VolumeSnapshotContent extends KubeObject {
  spec: {
    volumeSnapshotRef: SnapshotReference;
    deletionPolicy: SnapshotDeletionPolicy;
    driver: string;
    volumeSnapshotClassName?: string;
    /** Exactly one of the two: the volume of a snapshot to make, or a snapshot that exists. */
    source: { volumeHandle?: string; snapshotHandle?: string };
    sourceVolumeMode?: string;
  };
  status?: VolumeSnapshotContentStatus;
}

/** What the driver said of a {@link VolumeSnapshotContent}. */
export interface VolumeSnapshotContentStatus {
  snapshotHandle?: string;
  /** When it was taken, in nanoseconds since 1970. Numbers are exact to a microsecond only. */
  creationTime?: number;
  /** In bytes. */
  restoreSize?: number;
  readyToUse?: boolean;
  error?: SnapshotError | null;
  volumeGroupSnapshotHandle?: string;
}

/** How snapshots of one driver are made. */
export interface VolumeSnapshotClass extends KubeObject {
  driver: string;
  parameters?: Record<string, string>;
  deletionPolicy: SnapshotDeletionPolicy;
}

/** A label selector (meta/v1). */
export interface SnapshotSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** A user's request for snapshots of several claims, all taken at the same moment. */
export interface VolumeGroupSnapshot extends KubeObject {
  spec: {
    /** Exactly one of the two. */
    source: { selector?: SnapshotSelector; volumeGroupSnapshotContentName?: string };
    volumeGroupSnapshotClassName?: string;
  };
  status?: VolumeGroupSnapshotStatus;
}

/** What has become of a {@link VolumeGroupSnapshot}. */
export interface VolumeGroupSnapshotStatus {
  boundVolumeGroupSnapshotContentName?: string;
  /** RFC 3339. */
  creationTime?: string;
  readyToUse?: boolean;
  error?: SnapshotError | null;
}

/** What is known of one snapshot of a group. */
export interface VolumeSnapshotInfo {
  volumeHandle?: string;
  snapshotHandle?: string;
  /** In nanoseconds since 1970. */
  creationTime?: number;
  readyToUse?: boolean;
  /** In bytes. */
  restoreSize?: number;
}

/** A group snapshot as its driver has it. */
export interface VolumeGroupSnapshotContent extends KubeObject {
  spec: {
    volumeGroupSnapshotRef: SnapshotReference;
    deletionPolicy: SnapshotDeletionPolicy;
    driver: string;
    volumeGroupSnapshotClassName?: string;
    /** Exactly one of the two. */
    source: {
      volumeHandles?: string[];
      groupSnapshotHandles?: { volumeGroupSnapshotHandle: string; volumeSnapshotHandles: string[] };
    };
  };
  status?: VolumeGroupSnapshotContentStatus;
}

/** What the driver said of a {@link VolumeGroupSnapshotContent}. */
export interface VolumeGroupSnapshotContentStatus {
  volumeGroupSnapshotHandle?: string;
  /** RFC 3339. */
  creationTime?: string;
  readyToUse?: boolean;
  error?: SnapshotError | null;
  /** From v1beta2 on. */
  volumeSnapshotInfoList?: VolumeSnapshotInfo[];
  /** In v1beta1 only. */
  volumeSnapshotHandlePairList?: { volumeHandle: string; snapshotHandle: string }[];
}

/** How group snapshots of one driver are made. */
export interface VolumeGroupSnapshotClass extends KubeObject {
  driver: string;
  parameters?: Record<string, string>;
  deletionPolicy: SnapshotDeletionPolicy;
}

/** API group of single snapshots. */
export const snapshotGroup = "snapshot.storage.k8s.io";
/** API group of group snapshots. */
export const groupSnapshotGroup = "groupsnapshot.storage.k8s.io";

function single<T extends KubeObject>(kind: string, namespaced = false): Resource<T> {
  return { group: snapshotGroup, versions: ["v1"], kind, plural: pluralOf(kind), namespaced };
}

function grouped<T extends KubeObject>(kind: string, namespaced = false): Resource<T> {
  const versions = ["v1", "v1beta2", "v1beta1"] as const;
  return { group: groupSnapshotGroup, versions, kind, plural: pluralOf(kind), namespaced };
}

function pluralOf(kind: string): string {
  const lower = kind.toLowerCase();
  return lower.endsWith("s") ? `${lower}es` : `${lower}s`;
}

/** Where the kinds of snapshots are served, by plural name. */
export const snapshotResources = {
  volumeSnapshots: single<VolumeSnapshot>("VolumeSnapshot", true),
  volumeSnapshotContents: single<VolumeSnapshotContent>("VolumeSnapshotContent"),
  volumeSnapshotClasses: single<VolumeSnapshotClass>("VolumeSnapshotClass"),
  volumeGroupSnapshots: grouped<VolumeGroupSnapshot>("VolumeGroupSnapshot", true),
  volumeGroupSnapshotContents: grouped<VolumeGroupSnapshotContent>("VolumeGroupSnapshotContent"),
  volumeGroupSnapshotClasses: grouped<VolumeGroupSnapshotClass>("VolumeGroupSnapshotClass"),
} as const;
