/** `pxd.portworx.com`. */
import { driverKindOf, manyReaders } from "./driver-kind.ts";

/** Portworx: the node attaches. It ignores parameters that it does not know. */
export const portworx = driverKindOf("portworx-volume", {
  attachesOn: "node",
  // Pods that only read are so far on one node.
  sharedModes: manyReaders,
});
