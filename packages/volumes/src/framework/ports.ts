/** What the volume subsystem needs from the outside besides Kubernetes and CSI. */

/** A disk of the provider. */
export interface Disk {
  /** The provider's id, e.g. `vol-0a1b2c3d4e5f60718`. */
  readonly id: string;
  /** The name given at creation; makes creation idempotent. */
  readonly name: string;
  readonly zone: string;
  readonly sizeBytes: bigint;
  readonly type: string;
  readonly tags: Readonly<Record<string, string>>;
  /** Where it is attached; at most one for a disk that may have one writer. */
  readonly attachments: readonly DiskAttachment[];
}

/** One attachment of a disk. */
export interface DiskAttachment {
  readonly instanceId: string;
  /** The device on the instance, e.g. a loop device's path. */
  readonly devicePath: string;
}

/** A machine of the provider. */
export interface Instance {
  readonly instanceId: string;
  readonly nodeName: string;
  readonly zone: string;
  readonly region: string;
  /** Most disks that can be attached at once. */
  readonly attachLimit: number;
}

/** Who calls the cloud: the disk cloud counts calls by it. */
export interface CloudCaller {
  readonly path: "in-tree" | "csi";
  /** e.g. `attach-detach-controller`, `persistent-volume-controller`, `ebs.csi.aws.com` */
  readonly component: string;
}

/** Why the cloud refused. */
export type CloudErrorCode =
  | "NotFound"
  | "InUse"
  | "AlreadyExists"
  | "LimitExceeded"
  | "InvalidArgument"
  | "ZoneMismatch"
  | "Throttled"
  | "NoSpace"
  | "Unavailable";

/** The cloud answered with a failure, or (Unavailable) did not answer; then the outcome is unknown. */
export class CloudError extends Error {
  override readonly name = "CloudError";
  readonly code: CloudErrorCode;
  constructor(code: CloudErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A provider's disk API, as one caller sees it. All calls are idempotent and may be slow or fail. */
export interface DiskCloud {
  /** Makes a disk, or returns the one of that name; AlreadyExists when it differs in zone, size or type. */
  createDisk(
    request: {
      readonly name: string;
      readonly zone: string;
      readonly sizeBytes: bigint;
      readonly type: string;
      readonly tags: Readonly<Record<string, string>>;
    },
    signal: AbortSignal,
  ): Promise<Disk>;
  /** Deletes a disk; fine when it is gone; InUse while attached. */
  deleteDisk(diskId: string, signal: AbortSignal): Promise<void>;
  /** Attaches, or finds attached; InUse when attached elsewhere; ZoneMismatch; LimitExceeded. */
  attachDisk(diskId: string, instanceId: string, signal: AbortSignal): Promise<DiskAttachment>;
  /** Detaches; fine when the disk is not attached there or gone. */
  detachDisk(diskId: string, instanceId: string, signal: AbortSignal): Promise<void>;
  /** Grows to at least this size; returns the new size in bytes. */
  resizeDisk(diskId: string, sizeBytes: bigint, signal: AbortSignal): Promise<bigint>;
  describeDisk(diskId: string, signal: AbortSignal): Promise<Disk | undefined>;
  listDisks(signal: AbortSignal): Promise<readonly Disk[]>;
  /** The instance of that node, or undefined. */
  describeInstance(nodeName: string, signal: AbortSignal): Promise<Instance | undefined>;
  listInstances(signal: AbortSignal): Promise<readonly Instance[]>;
}

/** What runs pods, as the volume manager needs to know it. */
export interface ContainerRuntime {
  /** UIDs of the pods that still have a running container. */
  podsWithRunningContainers(signal: AbortSignal): Promise<ReadonlySet<string>>;
}
