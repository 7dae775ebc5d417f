/** `pxd.portworx.com`. */
import { driverKindOf, manyUsers, renamed } from "./driver-kind.ts";

/** Portworx: the node attaches. It ignores parameters that it does not know. */
export const portworx = driverKindOf("portworx-volume", {
  attachesOn: "node",
  // As in-tree: every mode is taken, and the pods are so far on one node.
  sharedModes: manyUsers,
  // Volumes do not say it, in-tree or migrated: the provider keeps what the class asked for.
  tagsOf: (parameters) => renamed(parameters, { fs: "fs" }),
  fsTypeOf: ({ tags }) => tags.fs,
});
