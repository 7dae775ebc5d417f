/** What the attacher does for every attachment of its driver alike. */
import { attacherFinalizer } from "@longshore/storage";
import type { Driver } from "../common/sidecar-env.ts";

/** What holds for every attachment of the driver. */
export interface AttachRules {
  readonly driverName: string;
  /** The finalizer that the attacher of this driver adds to attachments and volumes. */
  readonly finalizer: string;
  /** File system of a volume that names none. */
  readonly defaultFsType: string;
  /** The driver has PUBLISH_READONLY. */
  readonly publishesReadonly: boolean;
  /** The driver has SINGLE_NODE_MULTI_WRITER. */
  readonly singleNodeMultiWriter: boolean;
  /** A node without a CSINode is looked up by its deprecated annotation. */
  readonly readsAnnouncedNodeIds: boolean;
}

/** The rules for a driver. */
export function attachRules(
  driver: Pick<Driver, "name" | "capabilities">,
  defaultFsType: string,
  readsAnnouncedNodeIds: boolean,
): AttachRules {
  const { controller } = driver.capabilities;
  return {
    driverName: driver.name,
    finalizer: attacherFinalizer(driver.name),
    defaultFsType,
    publishesReadonly: controller.has("PUBLISH_READONLY"),
    singleNodeMultiWriter: controller.has("SINGLE_NODE_MULTI_WRITER"),
    readsAnnouncedNodeIds,
  };
}
