/** What the disk cloud stores besides its call log: the forms of its records. */
import type { Instance } from "@longshore/volumes";
import type { AttachOptions, DiskSource } from "./provider-cloud.ts";

/** Where a disk stands in its life. */
export type DiskState = "creating" | "available" | "attaching" | "attached" | "detaching" | "deleting";

/** One disk as it is stored. */
export interface DiskRecord {
  readonly id: string;
  readonly name: string;
  readonly zone: string;
  /** In bytes, decimal. */
  readonly sizeBytes: string;
  readonly type: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly state: DiskState;
  /** Size and type that it was made with, where they have changed since. */
  readonly createdBytes?: string;
  readonly createdType?: string;
  readonly source?: DiskSource;
  readonly settings?: Readonly<Record<string, string>>;
  readonly fingerprint?: string;
  /** What the operator says is wrong with it. */
  readonly condition?: string;
  /** Set from `attaching` to `detaching`. */
  readonly instanceId?: string;
  /** Set with `instanceId`, where it was requested. */
  readonly attachedFor?: AttachOptions;
  /** Set from `attached` on: the device on the instance. */
  readonly devicePath?: string;
}

/** Everything that the cloud stores besides its call log. */
export interface CloudState {
  readonly version: 1;
  readonly disks: Readonly<Record<string, DiskRecord>>;
  readonly instances: Readonly<Record<string, Instance>>;
  readonly snapshots?: Readonly<Record<string, SnapshotRecord>>;
  readonly groups?: Readonly<Record<string, GroupRecord>>;
}

/** A cloud that has nothing yet. */
export const emptyState: CloudState = { version: 1, disks: {}, instances: {} };

/** One snapshot as it is stored. */
export interface SnapshotRecord {
  readonly id: string;
  readonly name: string;
  readonly diskId: string;
  /** In bytes, decimal. */
  readonly sizeBytes: string;
  readonly state: "creating" | "ready" | "deleting";
  /** RFC 3339; set once it is ready. */
  readonly createdAt?: string;
  readonly groupId?: string;
}

/** One group as it is stored: its members are the snapshots with its id, in the order of these disks. */
export interface GroupRecord {
  readonly id: string;
  readonly name: string;
  readonly diskIds: readonly string[];
}
