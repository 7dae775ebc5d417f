/** What the volume subsystem needs from the outside besides Kubernetes and CSI. */

/** The providers of disks, by the names of their in-tree plugins without `kubernetes.io/`. */
export const cloudProviders = [
  "aws-ebs",
  "gce-pd",
  "azure-disk",
  "azure-file",
  "cinder",
  "vsphere-volume",
  "portworx-volume",
  "rbd",
] as const;

/** One of {@link cloudProviders}. */
export type CloudProvider = (typeof cloudProviders)[number];

/** A disk of the provider, or a share of files. */
export interface Disk {
  /** The provider's id, e.g. `vol-0a1b2c3d4e5f60718`; for a provider that names disks by their names, such a name or path. */
  readonly id: string;
  /** The name given at creation; makes creation idempotent. */
  readonly name: string;
  /** Empty for a provider without zones. */
  readonly zone: string;
  /** The other zones of a regional disk. */
  readonly replicaZones?: readonly string[];
  readonly sizeBytes: bigint;
  readonly type: string;
  /** The storage policy that it was made under (vSphere). */
  readonly storagePolicy?: string;
  readonly tags: Readonly<Record<string, string>>;
  /** Where it is attached; at most one for a disk that may have one writer. */
  readonly attachments: readonly DiskAttachment[];
}

/** One attachment of a disk. */
export interface DiskAttachment {
  readonly instanceId: string;
  /**
   * The device on the instance, e.g. a loop device's path or a link to it by the provider's name of the device. Of a share:
   * the directory that stands for the remote file system, to be bound.
   */
  readonly devicePath: string;
  /** The disk's number on the instance, where the provider gives one (Azure Disk). */
  readonly lun?: number;
  /** How the machine caches the disk, where the provider does (Azure Disk). */
  readonly caching?: string;
}

/** What proves to a provider that a node may use a volume: an account of shares, a user of an image. Never logged. */
export interface CloudCredentials {
  readonly user: string;
  readonly key: string;
}

/** How a disk is to be attached. */
export interface CloudAttachOptions {
  /** The instance cannot write to it. */
  readonly readOnly?: boolean;
  /** How the machine is to cache the disk (Azure Disk: `None`, `ReadOnly`, `ReadWrite`); left out: as the provider does it. */
  readonly caching?: string;
  /** Providers that ask nodes for them (Azure File, Ceph RBD) refuse with Unauthenticated where they are wrong or missing. */
  readonly credentials?: CloudCredentials;
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
  /** Whose disks are meant; default `aws-ebs`. */
  readonly provider?: CloudProvider;
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
  | "Unauthenticated"
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
  /**
   * Makes a disk, or returns the one of that name; AlreadyExists when it differs in zone, size, type or policy;
   * InvalidArgument for a storage policy that the provider does not have.
   */
  createDisk(
    request: {
      readonly name: string;
      readonly zone: string;
      /** The other zones of a regional disk. */
      readonly replicaZones?: readonly string[];
      readonly sizeBytes: bigint;
      readonly type: string;
      /** One of {@link DiskCloud.listStoragePolicies}. */
      readonly storagePolicy?: string;
      readonly tags: Readonly<Record<string, string>>;
    },
    signal: AbortSignal,
  ): Promise<Disk>;
  /** The names of the provider's storage policies (vSphere); none where it has no such thing. */
  listStoragePolicies(signal: AbortSignal): Promise<readonly string[]>;
  /** Deletes a disk; fine when it is gone; InUse while attached. */
  deleteDisk(diskId: string, signal: AbortSignal): Promise<void>;
  /** Attaches, or finds attached; InUse when attached elsewhere; ZoneMismatch; LimitExceeded. */
  attachDisk(
    diskId: string,
    instanceId: string,
    signal: AbortSignal,
    options?: CloudAttachOptions,
  ): Promise<DiskAttachment>;
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
