/**
 * The whole disk API of the provider: what the volume subsystem needs of it ({@link DiskCloud}), and what
 * a CSI driver offers beyond that: copies, snapshots, changes in flight, conditions, room.
 */
import type {
  CloudAttachOptions,
  CloudCredentials,
  Disk,
  DiskAttachment,
  DiskCloud,
} from "@longshore/volumes";

/** What a disk is a copy of. */
export interface DiskSource {
  readonly kind: "snapshot" | "disk";
  readonly id: string;
}

/** How a disk is attached. */
export interface AttachOptions extends CloudAttachOptions {
  /** The caller's own words for what it is attached for; another attach of the same must not differ. */
  readonly use?: string;
}

/** An attachment with how it was requested. */
export interface ProviderAttachment extends DiskAttachment, AttachOptions {}

/** A disk with what only the provider's own driver asks about. */
export interface ProviderDisk extends Disk {
  readonly attachments: readonly ProviderAttachment[];
  /** It is being made: it may come to nothing yet. */
  readonly isCreating: boolean;
  /** Its size when it was made. */
  readonly createdBytes: bigint;
  readonly source?: DiskSource;
  /** Performance settings, e.g. `iops`. */
  readonly settings: Readonly<Record<string, string>>;
}

/** A request to make a disk. */
export interface CreateDiskRequest {
  readonly name: string;
  readonly zone: string;
  /** The other zones of a regional disk. */
  readonly replicaZones?: readonly string[];
  readonly sizeBytes: bigint;
  readonly type: string;
  /** A policy of the provider's. */
  readonly storagePolicy?: string;
  readonly tags: Readonly<Record<string, string>>;
  /** What it is a copy of; not larger than the disk. */
  readonly source?: DiskSource;
  readonly settings?: Readonly<Record<string, string>>;
  /** What else was asked for, in the caller's words: a request of the same name that says otherwise is another one. */
  readonly fingerprint?: string;
}

/** What a disk held at one instant; independent of the disk from then on. */
export interface DiskSnapshot {
  /** e.g. `snap-0a1b2c3d4e5f60718` */
  readonly id: string;
  readonly name: string;
  readonly diskId: string;
  readonly sizeBytes: bigint;
  /** RFC 3339; the instant, or a moment after it. */
  readonly createdAt: string;
  readonly groupId?: string;
}

/** Snapshots of several disks, all of the same instant. */
export interface SnapshotGroup {
  /** e.g. `group-0a1b2c3d4e5f60718` */
  readonly id: string;
  readonly name: string;
  readonly createdAt: string;
  readonly snapshots: readonly DiskSnapshot[];
}

/** Bytes of a snapshot's block, as large as those of the EBS direct APIs; the disk's last one may be shorter. */
export const snapshotBlockBytes = 512 * 1024;

/** Which blocks of a snapshot are requested. */
export interface SnapshotBlocksRequest {
  readonly snapshotId: string;
  /** An earlier snapshot of the same disk: only blocks that changed since are wanted. */
  readonly baseSnapshotId?: string;
  /** Number of the first block that is wanted. */
  readonly from: number;
  /** Blocks that are wanted at most. */
  readonly max: number;
}

/** Some of the blocks of a snapshot. */
export interface SnapshotBlocks {
  /** Their numbers, ascending. */
  readonly blocks: readonly number[];
  /** Where to go on; undefined when that is all. */
  readonly next?: number;
}

/** What is wrong with a disk. */
export interface DiskCondition {
  readonly abnormal: boolean;
  readonly message: string;
}

/** The disk API as one caller sees it. All calls are idempotent and may be slow or fail. */
export interface ProviderCloud extends DiskCloud {
  /**
   * Makes a disk, or returns the one of that name; AlreadyExists when that one was requested differently; NotFound
   * without its source; InvalidArgument for an unknown policy; LimitExceeded when the zone has no room. A failure but Unavailable leaves nothing behind.
   */
  createDisk(request: CreateDiskRequest, signal: AbortSignal): Promise<ProviderDisk>;
  /** As in {@link DiskCloud}; AlreadyExists when it is attached there for another use; Unauthenticated. */
  attachDisk(
    diskId: string,
    instanceId: string,
    signal: AbortSignal,
    options?: AttachOptions,
  ): Promise<DiskAttachment>;
  describeDisk(diskId: string, signal: AbortSignal): Promise<ProviderDisk | undefined>;
  listDisks(signal: AbortSignal): Promise<readonly ProviderDisk[]>;
  /** Changes type and settings; those not named stay as they are. */
  modifyDisk(
    diskId: string,
    change: { readonly type?: string; readonly settings?: Readonly<Record<string, string>> },
    signal: AbortSignal,
  ): Promise<void>;
  /** The conditions of these disks; those that are not there are left out. */
  diskConditions(
    diskIds: readonly string[],
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, DiskCondition>>>;
  /** The zones in which disks can be made. */
  listZones(signal: AbortSignal): Promise<readonly string[]>;
  /** Room for disks in the zone, and the largest disk; none in a zone that is not there. */
  zoneCapacity(
    zone: string,
    signal: AbortSignal,
  ): Promise<{ readonly availableBytes: bigint; readonly largestBytes: bigint }>;
  /** Cuts a snapshot, or returns the one of that name; AlreadyExists when it is of another disk. */
  createSnapshot(
    request: { readonly name: string; readonly diskId: string },
    signal: AbortSignal,
  ): Promise<DiskSnapshot>;
  /** Deletes a snapshot; fine when it is gone; InvalidArgument when it is of a group. */
  deleteSnapshot(snapshotId: string, signal: AbortSignal): Promise<void>;
  /** All snapshots, those of groups too. */
  listSnapshots(signal: AbortSignal): Promise<readonly DiskSnapshot[]>;
  /**
   * The blocks that hold data, or that changed. NotFound without the snapshots; InvalidArgument when they are of two
   * disks, or the base is the later one. Source of the form: EBS direct APIs, ListSnapshotBlocks, ListChangedBlocks.
   */
  snapshotBlocks(request: SnapshotBlocksRequest, signal: AbortSignal): Promise<SnapshotBlocks>;
  /**
   * Cuts snapshots of all these disks at one instant, or returns the group of that name; AlreadyExists when it is of
   * others.
   */
  createSnapshotGroup(
    request: { readonly name: string; readonly diskIds: readonly string[] },
    signal: AbortSignal,
  ): Promise<SnapshotGroup>;
  /** Deletes a group with its snapshots; fine when it is gone. */
  deleteSnapshotGroup(groupId: string, signal: AbortSignal): Promise<void>;
  describeSnapshotGroup(groupId: string, signal: AbortSignal): Promise<SnapshotGroup | undefined>;
  /**
   * Account and key of a share: what the provider answers to a machine with rights of its own, which needs no secret.
   * NotFound; InvalidArgument for a provider without shares.
   */
  shareCredentials(diskId: string, signal: AbortSignal): Promise<CloudCredentials>;
}
