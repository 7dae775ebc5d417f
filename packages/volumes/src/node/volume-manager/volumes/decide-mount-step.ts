/**
 * What comes next in the mount of a volume for one pod. Source: docs/behaviour/node-agent.md 7.3.
 *
 *     check placement ─► wait for device ─► mount device ─► grow ─► mount for pod ─► grow ─► finish
 *                                           └── only where it is not mounted ──┘    └ if not grown yet
 *
 * Invariant: neither the device nor the pod's mount counts as ready before it has grown with the volume.
 */
import type { Mounter } from "../../../framework/volume-plugin.ts";
import type { ActualVolume } from "../actual-state.ts";
import type { DesiredPod, DesiredVolume } from "../desired-state.ts";

/** How far a mount has come. */
export interface MountProgress {
  readonly volume: DesiredVolume;
  readonly pod: DesiredPod;
  readonly mounter: Mounter;
  /** The node matches the volume's node affinity. */
  readonly isPlacementChecked: boolean;
  /** Ends the wait for the device. */
  readonly giveUp: AbortSignal;
  /** Undefined until the device, or the attachment, is there. */
  readonly devicePath: string | undefined;
  /** This mount has mounted the device, which has not been grown yet. */
  readonly isDeviceToGrow: boolean;
  /** What is on the volume has the volume's size. */
  readonly isGrown: boolean;
  /** It is mounted in the pod's directory. */
  readonly isMounted: boolean;
}

/** What comes next for a mount. */
export type MountStep =
  /** Compare the live Node with the volume's node affinity. */
  | { readonly step: "checkPlacement" }
  | { readonly step: "waitForDevice" }
  | { readonly step: "mountDevice" }
  | { readonly step: "growStaged" }
  | { readonly step: "mountForPod" }
  | { readonly step: "growMounted" }
  | { readonly step: "finishMount" };

/** Decides for a mount that has begun; pure. */
export function decideMountStep(
  actual: Pick<ActualVolume, "device"> | undefined,
  mount: MountProgress,
): MountStep {
  const affinity = mount.pod.spec.persistentVolume?.spec?.nodeAffinity?.required;
  if (affinity != null && !mount.isPlacementChecked) return { step: "checkPlacement" };
  if (mount.devicePath === undefined) return { step: "waitForDevice" };
  // Before its state is looked at: until it has grown, a device counts as uncertain and would be mounted again.
  if (mount.isDeviceToGrow) return { step: "growStaged" };
  if (mount.volume.deviceMountable && actual?.device.state !== "mounted") return { step: "mountDevice" };
  if (!mount.isMounted) return { step: "mountForPod" };
  return mount.isGrown ? { step: "finishMount" } : { step: "growMounted" };
}
