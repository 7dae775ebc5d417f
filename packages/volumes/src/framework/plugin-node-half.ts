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

/**
 * The part of the plugin that the node half provides. The plugin hands these calls on, so each has the contract of the
 * same member of `volume-plugin.ts`. All need a node's host: elsewhere they fail as a broken invariant.
 */
export interface PluginNodeHalf {
  /** As `VolumePlugin.newMounter`. */
  newMounter(spec: VolumeSpec, pod: Pod): Promise<Mounter>;
  /** As `VolumePlugin.newUnmounter`. */
  newUnmounter(volumeName: string, podUID: string): Promise<Unmounter>;
  /** As `VolumePlugin.constructVolumeSpec`. */
  constructVolumeSpec(volumeName: string, mountPath: string): Promise<VolumeSpec>;
  /** As `DeviceMountableVolumePlugin.newDeviceMounter`. */
  newDeviceMounter(): DeviceMounter;
  /** As `DeviceMountableVolumePlugin.newDeviceUnmounter`. */
  newDeviceUnmounter(): DeviceUnmounter;
  /** As `NodeExpandableVolumePlugin.nodeExpand`. */
  nodeExpand(options: NodeExpandOptions, signal: AbortSignal): Promise<boolean>;
}

/** What a node half is made from. */
export interface PluginNodeHalfOptions {
  /** The host that the plugin was initialised with; called only after `init`. */
  readonly host: () => VolumeHost;
}
