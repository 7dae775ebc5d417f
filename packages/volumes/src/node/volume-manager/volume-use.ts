/** Who has a volume mounted for certain, and where. A pod that has it as a device has nothing mounted. */
import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import type { ActualState } from "./actual-state.ts";
import type { DesiredPod, DesiredState } from "./desired-state.ts";

/** A pod that has the volume mounted. */
export interface VolumeUser extends DesiredPod {
  readonly path: string;
}

/** A volume that is mounted for at least one pod. */
export interface VolumeUse {
  readonly plugin: VolumePlugin;
  /** The global mount; empty: none. */
  readonly deviceMountPath: string;
  /** Not empty; in the order in which the pods came. */
  readonly users: readonly [VolumeUser, ...VolumeUser[]];
}

/** Undefined: it is mounted for no pod that wants it. */
export function volumeUseOf(
  { desired, actual }: { readonly desired: DesiredState; readonly actual: ActualState },
  uniqueName: string,
): VolumeUse | undefined {
  const volume = actual.get(uniqueName);
  const wanted = desired.get(uniqueName);
  if (volume === undefined || wanted === undefined) return undefined;
  const users = [...wanted.pods].flatMap(([podUID, pod]) => {
    const mount = volume.pods.get(podUID);
    return mount?.state === "mounted" && mount.isBlock !== true ? [{ ...pod, path: mount.path }] : [];
  });
  const [first, ...others] = users;
  if (first === undefined) return undefined;
  const deviceMountPath = volume.device.state === "mounted" ? volume.device.path : "";
  return { plugin: wanted.plugin, deviceMountPath, users: [first, ...others] };
}
