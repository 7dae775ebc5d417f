/** What the RPCs of a node see of the machine and of the cloud. */
import type { VolumeCapability } from "@longshore/csi";
import type { Host } from "@longshore/runtime";
import type { ProviderDisk } from "../disk-cloud/index.ts";
import type { DriverKind } from "./kinds/driver-kind.ts";
import type { NodeRecords } from "./node-records.ts";

/** How a volume is attached to the node. */
export interface NodeAttachment {
  /** Of a share: the directory of its files, known where it is opened alone. */
  readonly devicePath: string;
  /** The device refuses writes, whatever is asked for on the node. */
  readonly readOnly: boolean;
  /** The volume was made from another or has grown, so that its file system may be smaller than it. */
  readonly mayBeSmaller: boolean;
  /** The file system that the provider was asked for, when the volume was made. */
  readonly fsType?: string | undefined;
}

/** What a volume is staged with. */
export interface StageRequest {
  readonly volumeId: string;
  readonly capability: VolumeCapability;
  readonly secrets: Readonly<Record<string, string>>;
  readonly volumeContext: Readonly<Record<string, string>>;
}

/** A disk of which the node needs the attachment, and its id in the cloud. */
export interface OpenedDisk extends NodeAttachment {
  readonly diskId: string;
}

/** The node. */
export interface NodeMachine {
  readonly host: Host;
  readonly kind: DriverKind;
  readonly records: NodeRecords;
  /** The file system of a blank volume for which none is asked. */
  readonly defaultFsType: string;
  /** @throws CsiStatusError NOT_FOUND */
  existing(volumeId: string, signal: AbortSignal): Promise<ProviderDisk>;
  /** @throws CsiStatusError NOT_FOUND, or FAILED_PRECONDITION when the volume is not attached here */
  attachment(volumeId: string, signal: AbortSignal): Promise<NodeAttachment>;
  /** As `attachment`; a driver that attaches on the node does so. @throws CloudError as `attachDisk` */
  open(request: StageRequest, signal: AbortSignal): Promise<OpenedDisk>;
  /** Detaches what was attached on the node; fine when it is not. */
  close(volumeId: string, signal: AbortSignal): Promise<void>;
}
