/** The sidecars of the controller side that can share a process: one table of what each is. */
import { type AttacherOptions, serveAttachments } from "../attacher/attacher.ts";
import type { Driver } from "../common/env.ts";
import type { Serve } from "../common/sidecar.ts";
import { type ProvisionerOptions, serveClaims } from "../provisioner/provisioner.ts";

/** The options of each sidecar, by its name. */
export interface SidecarOptions {
  readonly provisioner: ProvisionerOptions;
  readonly attacher: AttacherOptions;
}

/** Name of a sidecar that can share a process. */
export type SidecarName = keyof SidecarOptions;

/** What a sidecar is. */
export interface SidecarKind<O> {
  readonly serve: Serve<O>;
  /** Why a driver has no use for it; undefined where it has one. */
  useless(driver: Driver): string | undefined;
}

/** All of them, in the order in which they are started. */
export const sidecarKinds: { readonly [N in SidecarName]: SidecarKind<SidecarOptions[N]> } = {
  provisioner: {
    serve: serveClaims,
    useless: ({ capabilities }) =>
      capabilities.controller.has("CREATE_DELETE_VOLUME")
        ? undefined
        : "the driver has not the capability CREATE_DELETE_VOLUME",
  },
  // Without PUBLISH_UNPUBLISH_VOLUME it says of each attachment that it is done, and somebody must.
  attacher: { serve: serveAttachments, useless: () => undefined },
};

/** Their names. */
export const sidecarNames = Object.keys(sidecarKinds) as readonly SidecarName[];
