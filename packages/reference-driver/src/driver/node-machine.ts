/** What the RPCs of a node see of the machine and of the cloud. */
import type { Host } from "@longshore/runtime";
import type { ProviderDisk } from "../disk-cloud/index.ts";
import type { NodeRecords } from "./node-records.ts";

/** How a volume is attached to the node. */
export interface NodeAttachment {
  readonly devicePath: string;
  /** The device refuses writes, whatever is asked for on the node. */
  readonly readOnly: boolean;
  /** The volume was made from another or has grown, so that its file system may be smaller than it. */
  readonly mayBeSmaller: boolean;
}

/** The node. */
export interface NodeMachine {
  readonly host: Host;
  readonly records: NodeRecords;
  /** The file system of a blank volume for which none is asked. */
  readonly defaultFsType: string;
  /** @throws CsiStatusError NOT_FOUND */
  existing(volumeId: string, signal: AbortSignal): Promise<ProviderDisk>;
  /** @throws CsiStatusError NOT_FOUND, or FAILED_PRECONDITION when the volume is not attached here */
  attachment(volumeId: string, signal: AbortSignal): Promise<NodeAttachment>;
}
