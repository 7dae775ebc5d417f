/**
 * The node's half of the in-tree AWS EBS plugin. `aws-ebs-plugin.ts` joins it with the controller's
 * half. Source: spec volume-plugins.md.
 */
import type { Pod } from "@longshore/kube";
import type { DeviceMounter, DeviceUnmounter, Mounter, Unmounter } from "../../framework/plugin.ts";
import type { VolumeSpec } from "../../framework/spec.ts";
import type { VolumeHost } from "../../framework/volume-host.ts";

/** What the node's half is built from. */
export interface AwsEbsNodeHalfOptions {
  /** The host given to the plugin's `init`; called only after it. */
  readonly host: () => VolumeHost;
}

/** The node's half. */
export interface AwsEbsNodeHalf {
  newMounter(spec: VolumeSpec, pod: Pod): Promise<Mounter>;
  newUnmounter(volumeName: string, podUID: string): Promise<Unmounter>;
  newDeviceMounter(): DeviceMounter;
  newDeviceUnmounter(): DeviceUnmounter;
  constructVolumeSpec(volumeName: string, mountPath: string): Promise<VolumeSpec>;
  /** Waits until the device is there; gives its path. */
  waitForAttach(spec: VolumeSpec, devicePath: string, signal: AbortSignal): Promise<string>;
}

/** Builds the node's half. */
export function createAwsEbsNodeHalf(_options: AwsEbsNodeHalfOptions): AwsEbsNodeHalf {
  const todo = (): never => {
    throw new Error("being built");
  };
  return {
    newMounter: async () => todo(),
    newUnmounter: async () => todo(),
    newDeviceMounter: todo,
    newDeviceUnmounter: todo,
    constructVolumeSpec: async () => todo(),
    waitForAttach: async () => todo(),
  };
}
