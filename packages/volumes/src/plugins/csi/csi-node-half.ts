/**
 * The node's half of the CSI plugin: mounters, device mounters and reconstruction. `csi-plugin.ts`
 * joins it with the controller's half. Source: spec csi-plugin.md §8, §9, §12, §13, §15.
 */
import type { CsiConnector } from "@longshore/csi";
import type { Pod } from "@longshore/kube";
import type { DeviceMounter, DeviceUnmounter, Mounter, Unmounter } from "../../framework/plugin.ts";
import type { VolumeSpec } from "../../framework/spec.ts";
import type { VolumeHost } from "../../framework/volume-host.ts";
import { createRegisteredCsiDrivers, type HasCsiDrivers } from "./registered-csi-drivers.ts";

/** What the node's half is built from. */
export interface CsiNodeHalfOptions {
  readonly connector: CsiConnector;
  /** The host given to the plugin's `init`; called only after it. */
  readonly host: () => VolumeHost;
}

/** The node's half. `csiDrivers` must also be a property of the assembled plugin. */
export interface CsiNodeHalf extends HasCsiDrivers {
  newMounter(spec: VolumeSpec, pod: Pod): Promise<Mounter>;
  newUnmounter(volumeName: string, podUID: string): Promise<Unmounter>;
  newDeviceMounter(): DeviceMounter;
  newDeviceUnmounter(): DeviceUnmounter;
  constructVolumeSpec(volumeName: string, mountPath: string): Promise<VolumeSpec>;
  /** Waits until the VolumeAttachment says attached; gives its name. */
  waitForAttach(spec: VolumeSpec, devicePath: string, signal: AbortSignal): Promise<string>;
}

/** Builds the node's half. */
export function createCsiNodeHalf(_options: CsiNodeHalfOptions): CsiNodeHalf {
  const todo = (): never => {
    throw new Error("being built");
  };
  return {
    csiDrivers: createRegisteredCsiDrivers(),
    newMounter: async () => todo(),
    newUnmounter: async () => todo(),
    newDeviceMounter: todo,
    newDeviceUnmounter: todo,
    constructVolumeSpec: async () => todo(),
    waitForAttach: async () => todo(),
  };
}
