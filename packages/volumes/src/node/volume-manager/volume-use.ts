/** Who has a volume for certain, mounted or as a device, and where. */

import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import { isBlockSpec } from "../../framework/volume-spec.ts";
import type { ActualState } from "./actual-state.ts";
import type { DesiredPod, DesiredState } from "./desired-state.ts";

/** A pod that has the volume. */
export interface VolumeUser extends DesiredPod {
  /** The mount, or the file that its device is bound on. */
  readonly path: string;
}

/** A volume that at least one pod has. */
export interface VolumeUse {
  readonly plugin: VolumePlugin;
  /** The global mount, of a block volume the directory of mappings; empty: none. */
  readonly deviceMountPath: string;
  /** Not empty; in the order in which the pods came. */
  readonly users: readonly [VolumeUser, ...VolumeUser[]];
}

/** Undefined: no pod that wants it has it. */
export function volumeUseOf(
  { desired, actual }: { readonly desired: DesiredState; readonly actual: ActualState },
  uniqueName: string,
): VolumeUse | undefined {
  const volume = actual.get(uniqueName);
  const wanted = desired.get(uniqueName);
  if (volume === undefined || wanted === undefined) return undefined;
  const users = [...wanted.pods].flatMap(([podUID, pod]) => {
    const mount = volume.pods.get(podUID);
    const isBlock = mount?.isBlock === true;
    // A PersistentVolume that was made over with the other mode is not what the pod has.
    if (mount?.state !== "mounted" || isBlock !== isBlockSpec(pod.spec)) return [];
    return [{ ...pod, path: isBlock ? `${volume.device.path}/${podUID}` : mount.path }];
  });
  const [first, ...others] = users;
  if (first === undefined) return undefined;
  const deviceMountPath = volume.device.state === "mounted" ? volume.device.path : "";
  return { plugin: wanted.plugin, deviceMountPath, users: [first, ...others] };
}
