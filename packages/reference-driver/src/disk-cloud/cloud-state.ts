/** What the disk cloud stores besides its call log: the forms of its records. */
import type { CloudProvider, Instance } from "@longshore/volumes";
import type { AttachOptions, DiskSource } from "./provider-cloud.ts";

/** Where a disk stands in its life. */
export type DiskState = "creating" | "available" | "attaching" | "attached" | "detaching" | "deleting";

/** A machine, with limits that are its own. */
export interface CloudInstance extends Instance {
  /** Most disks of a provider on it, in place of the provider's own limit. */
  readonly attachLimits?: Readonly<Partial<Record<CloudProvider, number>>>;
}

/** One disk as it is stored. */
export interface DiskRecord {
  /** The cloud's own number, `vol-` and 17 hexadecimal digits, and the name of the backing file. */
  readonly id: string;
  /** Whose disk it is; default `aws-ebs`: before there were others, none was stored. */
  readonly provider?: CloudProvider;
  /** What the provider calls it; default `id`. */
  readonly providerId?: string;
  readonly name: string;
  readonly zone: string;
  readonly replicaZones?: readonly string[];
  /** In bytes, decimal. */
  readonly sizeBytes: string;
  readonly type: string;
  readonly storagePolicy?: string;
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
  /** Set with `instanceId`, where the provider numbers devices: the number on the instance. */
  readonly slot?: number;
  /** Set from `attached` on: the device on the instance. */
  readonly devicePath?: string;
  /** The other instances that read it, by their ids. */
  readonly readers?: Readonly<Record<string, ReaderRecord>>;
}

/** One more instance that reads a disk. */
export interface ReaderRecord {
  readonly slot?: number;
  /** The device on that instance; the same one under another name. */
  readonly devicePath: string;
}

/** An account of shares. */
export interface AccountRecord {
  readonly key: string;
}

/** Everything that the cloud stores besides its call log. */
export interface CloudState {
  readonly version: 1;
  readonly disks: Readonly<Record<string, DiskRecord>>;
  readonly instances: Readonly<Record<string, CloudInstance>>;
  /** Accounts of shares by their names. */
  readonly accounts?: Readonly<Record<string, AccountRecord>>;
  readonly snapshots?: Readonly<Record<string, SnapshotRecord>>;
  readonly groups?: Readonly<Record<string, GroupRecord>>;
}

/** A cloud that has nothing yet. */
export const emptyState: CloudState = { version: 1, disks: {}, instances: {} };

/** One snapshot as it is stored. */
export interface SnapshotRecord {
  readonly id: string;
  /** Whose snapshot it is; default `aws-ebs`. */
  readonly provider?: CloudProvider;
  readonly name: string;
  /** The disk as the provider calls it. */
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
  /** Whose group it is; default `aws-ebs`. */
  readonly provider?: CloudProvider;
  readonly name: string;
  readonly diskIds: readonly string[];
}
