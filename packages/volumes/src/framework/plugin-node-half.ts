/**
 * A bundled plugin is assembled from two halves: one works on the node, the other in the
 * controllers. Source: ARCHITECTURE.md, packages/volumes.
 */

import type { Pod } from "@longshore/kube";
import type { VolumeHost } from "./volume-host.ts";
import type {
  DeviceMounter,
  DeviceUnmounter,
  Mounter,
  NodeExpandOptions,
  Unmounter,
} from "./volume-plugin.ts";
import type { VolumeSpec } from "./volume-spec.ts";

/** The part of the plugin that the node half provides. */
export interface PluginNodeHalf {
  newMounter(spec: VolumeSpec, pod: Pod): Promise<Mounter>;
  newUnmounter(volumeName: string, podUID: string): Promise<Unmounter>;
  constructVolumeSpec(volumeName: string, mountPath: string): Promise<VolumeSpec>;
  newDeviceMounter(): DeviceMounter;
  newDeviceUnmounter(): DeviceUnmounter;
  nodeExpand(options: NodeExpandOptions, signal: AbortSignal): Promise<boolean>;
}

/** What a node half is made from. */
export interface PluginNodeHalfOptions {
  /** The host that the plugin was initialised with; called only after `init`. */
  readonly host: () => VolumeHost;
}
