/** The steps of one disk: every write, event, call and wait by its name. Source: docs/behaviour/controllers.md A7. */
import type { Stored, VolumeAttachment } from "@longshore/kube";
import type { DiskOperation } from "../disk-operations.ts";
import type { VolumeIdentity } from "../volume-identity.ts";

/** The disk on one node under one of its names. */
export interface VolumeOnNode {
  readonly nodeName: string;
  readonly uniqueName: string;
}

/** Why a detach does not wait for the unmount. */
export type ForceReason = "timeout" | "out-of-service";

/** Steps of attachments that pods want. */
type KeepStep =
  /** Takes back the request to detach. */
  | ({ readonly step: "keep" } & VolumeOnNode)
  /** It may be attached or not: it is attached again before it is listed. */
  | ({ readonly step: "doubt" } & VolumeOnNode)
  /** Puts it into the node's list of attached volumes. */
  | ({ readonly step: "list" } & VolumeOnNode);

/** Steps of attachments that no pod wants. */
type DetachStep =
  /** An attach that was recorded and never asked of the provider. */
  | ({ readonly step: "forgetIntent" } & VolumeOnNode)
  /** It was known by its VolumeAttachment alone: from now on it is an attachment of the disk that it is. */
  | ({ readonly step: "identify"; readonly disk: VolumeIdentity } & VolumeOnNode)
  /** Takes down since when it is to be detached. */
  | ({ readonly step: "requestDetach" } & VolumeOnNode)
  /** Takes it off the node's list of attached volumes and puts it into the record of uncertain ones. */
  | ({ readonly step: "unlist" } & VolumeOnNode)
  | ({
      readonly step: "readBeforeDetach";
      /** The mounts of the node and its CSINode; not asked when the detach is forced. */
      readonly asksNode: boolean;
      /** The VolumeAttachment of what the in-tree code was only presumed to have attached. */
      readonly asksVolumeAttachment: boolean;
    } & VolumeOnNode)
  | ({
      readonly step: "refuseDetach";
      readonly message: string;
      readonly isNodeEvent: boolean;
    } & VolumeOnNode)
  /** CSI has the disk that the in-tree code was only presumed to have attached: it is CSI's to detach. */
  | ({ readonly step: "leaveToCsi" } & VolumeOnNode)
  | ({ readonly step: "detachInTree"; readonly force: ForceReason | undefined } & VolumeOnNode)
  | ({ readonly step: "deleteVolumeAttachment"; readonly force: ForceReason | undefined } & VolumeOnNode);

/** Steps of volumes that pods want attached. */
type AttachStep =
  | ({ readonly step: "reportMultiAttach"; readonly otherNodes: readonly string[] } & VolumeOnNode)
  | ({ readonly step: "reportUnlisted"; readonly message: string } & VolumeOnNode)
  /** Whether nodes on which the disk may be attached use it. */
  | ({ readonly step: "readOtherNodes"; readonly otherNodes: readonly string[] } & VolumeOnNode)
  /** Puts it into the node's record of uncertain volumes, before the provider is asked for it. */
  | ({ readonly step: "recordIntent" } & VolumeOnNode)
  | ({ readonly step: "readBeforeAttach" } & VolumeOnNode)
  | ({
      readonly step: "refuseAttach";
      /** In the words of the event: `Attach`, or `NewAttacher` when it could not be prepared. */
      readonly part: "Attach" | "NewAttacher";
      readonly message: string;
      /** By which CSI has the disk there. */
      readonly volumeAttachment: Stored<VolumeAttachment> | undefined;
    } & VolumeOnNode)
  | ({ readonly step: "attachInTree" } & VolumeOnNode)
  | ({ readonly step: "createVolumeAttachment" } & VolumeOnNode);

/** Steps of operations that are under way. */
type OperationStep =
  | { readonly step: "confirmAttach"; readonly operation: DiskOperation; readonly devicePath: string }
  | { readonly step: "failAttach"; readonly operation: DiskOperation; readonly message: string }
  /** Nothing was asked of the provider. */
  | { readonly step: "abandonAttach"; readonly operation: DiskOperation; readonly message: string }
  /** The attach found the disk on another node. */
  | {
      readonly step: "recordDangling";
      readonly operation: DiskOperation;
      readonly message: string;
      readonly currentNode: string;
      readonly devicePath: string;
    }
  /** Takes down what a VolumeAttachment says after its deletion was requested. */
  | {
      readonly step: "noteDetaching";
      readonly operation: DiskOperation;
      readonly firstVersion: string;
      readonly seenAttached: boolean;
    }
  /** A9: the VolumeAttachment that would be there if CSI had attached what the in-tree code has detached. */
  | { readonly step: "deleteMigratedAttachment"; readonly operation: DiskOperation }
  /** It is detached. */
  | { readonly step: "forgetAttachment"; readonly operation: DiskOperation }
  | { readonly step: "failDetach"; readonly operation: DiskOperation; readonly message: string };

/** The next step for one disk. */
export type DiskStep =
  | OperationStep
  | KeepStep
  | DetachStep
  | AttachStep
  /** Something else has to change, or time to pass; in milliseconds. */
  | { readonly step: "wait"; readonly reason: string; readonly retryInMs: number | undefined }
  /** No pod wants the disk, and it is attached nowhere. */
  | { readonly step: "forgetDisk" };
