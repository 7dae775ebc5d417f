/** The sidecars of the controller side that can share a process: one table of what each is. */
import type { CsiCallOptions } from "@longshore/csi";
import { type AttacherOptions, serveAttachments } from "../attacher/attacher.ts";
import type { Serve } from "../common/sidecar.ts";
import type { Driver } from "../common/sidecar-env.ts";
import { UnsupportedByDriverError } from "../common/unsupported-by-driver-error.ts";
import { type HealthMonitorOptions, serveVolumeHealth } from "../health-monitor/index.ts";
import { healthSource } from "../health-monitor/volume-conditions.ts";
import { type ProvisionerOptions, serveClaims } from "../provisioner/provisioner.ts";
import { type ResizerOptions, serveResizes } from "../resizer/resizer.ts";
import { resizerKindOf } from "../resizer/resizer-kind.ts";
import { type SnapshotterOptions, serveSnapshotContents } from "../snapshotter/snapshotter.ts";

/** The options of each sidecar, by its name. */
export interface SidecarOptions {
  readonly provisioner: ProvisionerOptions;
  readonly attacher: AttacherOptions;
  readonly resizer: ResizerOptions;
  readonly snapshotter: SnapshotterOptions;
  readonly "health-monitor": HealthMonitorOptions;
}

/** Name of a sidecar that can share a process. */
export type SidecarName = keyof SidecarOptions;

/** What a sidecar is. */
export interface SidecarKind<O> {
  readonly serve: Serve<O>;
  /** Why a driver has no use for it; undefined where it has one. */
  useless(driver: Driver, options: CsiCallOptions): string | undefined | Promise<string | undefined>;
}

/** All of them, in the order in which they are started. */
export const sidecarKinds: { readonly [N in SidecarName]: SidecarKind<SidecarOptions[N]> } = {
  provisioner: { serve: serveClaims, useless: lacks("CREATE_DELETE_VOLUME") },
  // Never useless: without PUBLISH_UNPUBLISH_VOLUME the attacher must still mark each attachment as attached.
  attacher: { serve: serveAttachments, useless: () => undefined },
  resizer: {
    serve: serveResizes,
    useless: (driver, options) =>
      resizerKindOf(driver, options).then(
        () => undefined,
        (error) => {
          if (error instanceof UnsupportedByDriverError) return error.message;
          throw error;
        },
      ),
  },
  snapshotter: { serve: serveSnapshotContents, useless: lacks("CREATE_DELETE_SNAPSHOT") },
  "health-monitor": {
    serve: serveVolumeHealth,
    useless: (driver) =>
      healthSource(driver) === undefined
        ? "the driver does not report the condition of volumes (VOLUME_CONDITION with LIST_VOLUMES or GET_VOLUME)"
        : undefined,
  },
};

function lacks(capability: string): (driver: Driver) => string | undefined {
  return ({ capabilities }) =>
    capabilities.controller.has(capability) ? undefined : `the driver has not the capability ${capability}`;
}

/** Their names. */
export const sidecarNames = Object.keys(sidecarKinds) as readonly SidecarName[];
