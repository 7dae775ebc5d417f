/**
 * What comes next for one volume of the node. Unmounts come before mounts, so that a volume that moves between
 * pods is released first; the device comes last. Source: docs/behaviour/node-agent.md 6, 7.
 *
 * Invariants
 *  - Nothing is mounted before the controller has confirmed the attachment, after the posted `volumesInUse` named it.
 *  - Nothing is unmounted for a pod that may still use it, or about which too little is known.
 *  - A volume is forgotten only after its device is certainly not mounted.
 *  - A volume has one device: one that is left where no pod wants it goes before another is set up.
 */
import { isDeviceMountable } from "../../../framework/volume-plugin.ts";
import { isBlockSpec, specName, type VolumeSpec } from "../../../framework/volume-spec.ts";
import type { ActualPod, ActualVolume } from "../actual-state.ts";
import type { DesiredPod, DesiredVolume } from "../desired-state.ts";
import { decideGrowthStep, type GrowthStep } from "./decide-growth-step.ts";
import { decideMapStep, type MapProgress, type MapStep } from "./decide-map-step.ts";
import { decideMountStep, type MountProgress, type MountStep } from "./decide-mount-step.ts";
import { type OperationFailure, type VolumeOperation, wholeVolume } from "./volume-records.ts";
import type { VolumeSize } from "./volume-sizes.ts";

/** An attachment is looked for in the live Node this often, in milliseconds, whatever the cached one says. */
export const verifyAnywayMs = 5_000;

/** An operation that has just failed. */
export interface FailedOperation {
  readonly operation: VolumeOperation;
  /** Pod UID, or that of the whole volume. */
  readonly subject: string;
  readonly error: unknown;
}

/** What is known of the attachment without asking the API server. */
export interface AttachmentView {
  /** The stored `volumesInUse` names the volume. */
  readonly isReported: boolean;
  /** The cached Node lists it as attached, and was not proved wrong by the live one. */
  readonly isListed: boolean;
  /** Monotonic time in milliseconds at which the live Node is read in any case; undefined: not set. */
  readonly lookAtMs: number | undefined;
}

/** One volume as a pass sees it. */
export interface ObservedVolume {
  /** Monotonic time in milliseconds. */
  readonly nowMs: number;
  readonly desired: DesiredVolume | undefined;
  readonly actual: ActualVolume | undefined;
  /** Pods of `actual` whose mounts may be taken away if they do not want them. */
  readonly mayUnmount: ReadonlySet<string>;
  /** Pods of `actual` for which it is to be set up again. */
  readonly toRemount: ReadonlySet<string>;
  /** Its CSI driver has not registered: it waits for that, without failing again and again. */
  readonly isDriverMissing: boolean;
  /** False while its plugin is changing over. */
  readonly isPathDecided: boolean;
  /** Every pod that was here at the start has been looked at. */
  readonly hasAddedPods: boolean;
  readonly attachment: AttachmentView;
  /** Failures that wait for their repetition, by subject. */
  readonly failures: ReadonlyMap<string, OperationFailure>;
  /** When it is to be set up again for a pod that has it mounted, in monotonic milliseconds, by pod UID. */
  readonly republishAtMs: ReadonlyMap<string, number>;
  /** What is known of its size; undefined: it is mounted for no pod. */
  readonly size: VolumeSize | undefined;
  /** The mount that this pass has begun. */
  readonly mount: MountProgress | undefined;
  /** The same for a volume that pods get as a device. */
  readonly map: MapProgress | undefined;
  /** What has just failed. */
  readonly failed: FailedOperation | undefined;
}

/** What comes next for a volume. */
export type VolumeStep =
  | { readonly step: "recordFailure"; readonly failed: FailedOperation }
  | { readonly step: "unmountForPod"; readonly pod: ActualPod }
  | { readonly step: "unmapForPod"; readonly pod: ActualPod }
  /** Read the live Node: may the volume be used here? */
  | { readonly step: "verifyAttached"; readonly volume: DesiredVolume; readonly spec: VolumeSpec }
  /** The live Node is to be read at this monotonic time, in milliseconds. */
  | { readonly step: "scheduleLook"; readonly atMs: number }
  | { readonly step: "beginMount"; readonly volume: DesiredVolume; readonly pod: DesiredPod }
  | MountStep
  | GrowthStep
  /** Set it up again for a pod that has it mounted. */
  | {
      readonly step: "republish";
      readonly volume: DesiredVolume;
      readonly pod: DesiredPod;
      readonly mount: ActualPod;
    }
  | { readonly step: "beginMap"; readonly volume: DesiredVolume; readonly pod: DesiredPod }
  | MapStep
  | { readonly step: "unmountDevice"; readonly volume: ActualVolume }
  | { readonly step: "unmapDevice"; readonly volume: ActualVolume }
  | { readonly step: "forget" }
  /** Something is due after this time, in milliseconds. */
  | { readonly step: "wait"; readonly ms: number }
  /** An event will wake the volume. */
  | { readonly step: "settle" };

/** A step, and the monotonic time in milliseconds from which it may be taken. */
interface Due {
  readonly atMs: number;
  readonly step: VolumeStep;
}

/** Decides for a volume; pure. */
export function decideVolumeStep(observed: ObservedVolume): VolumeStep {
  const { failed, mount, map, desired, actual, nowMs } = observed;
  if (failed !== undefined) return { step: "recordFailure", failed };
  if (mount !== undefined) return decideMountStep(actual, mount);
  if (map !== undefined) return decideMapStep(actual, map);
  if (desired === undefined && actual === undefined) return { step: "forget" };
  const steps = [
    ...unmounts(observed),
    ...mounts(observed),
    ...releases(observed),
    ...republications(observed),
    ...growths(observed),
  ];
  const due = steps.find(({ atMs }) => atMs <= nowMs);
  if (due !== undefined) return due.step;
  if (steps.length === 0) return { step: "settle" };
  return { step: "wait", ms: Math.min(...steps.map(({ atMs }) => atMs)) - nowMs };
}

/** Mounts of pods that do not want the volume (any more). */
function unmounts(observed: ObservedVolume): readonly Due[] {
  const { actual, desired, mayUnmount, isDriverMissing } = observed;
  if (actual === undefined || isDriverMissing) return [];
  return [...actual.pods.values()]
    .filter(({ podUID }) => desired?.pods.has(podUID) !== true && mayUnmount.has(podUID))
    .map((pod) => ({
      atMs: retryAt(observed, pod.isBlock === true ? "unmap_volume" : "volume_unmount", pod.podUID),
      step: { step: pod.isBlock === true ? "unmapForPod" : "unmountForPod", pod },
    }));
}

/** Mounts that pods want, once the attachment is confirmed. */
function mounts(observed: ObservedVolume): readonly Due[] {
  const { desired, actual, isDriverMissing, isPathDecided, toRemount } = observed;
  if (desired === undefined || !isPathDecided) return [];
  if (actual?.attachVerified !== true) return verification(observed, desired);
  if (isDriverMissing || isDeviceInTheWay(desired, actual)) return [];
  return [...desired.pods]
    .filter(([podUID]) => actual.pods.get(podUID)?.state !== "mounted" || toRemount.has(podUID))
    .map(([podUID, pod]) => ({
      atMs: retryAt(observed, isBlockSpec(pod.spec) ? "map_volume" : "volume_mount", podUID),
      step: { step: isBlockSpec(pod.spec) ? "beginMap" : "beginMount", volume: desired, pod },
    }));
}

/** Spares the API server live reads that cannot succeed yet, but never trusts the cache for long. */
function verification(observed: ObservedVolume, desired: DesiredVolume): readonly Due[] {
  const { attachment, nowMs } = observed;
  const [pod] = desired.pods.values();
  if (pod === undefined) return [];
  const verify = { step: "verifyAttached", volume: desired, spec: pod.spec } as const;
  const atMs = retryAt(observed, "verify_controller_attached_volume", wholeVolume);
  if (!desired.attachable) return [{ atMs, step: verify }];
  // Before the list is stored the controller may be detaching it (docs/behaviour/node-agent.md 7.2).
  if (!attachment.isReported) return [];
  if (attachment.isListed) return [{ atMs, step: verify }];
  if (attachment.lookAtMs === undefined)
    return [{ atMs: nowMs, step: { step: "scheduleLook", atMs: nowMs + verifyAnywayMs } }];
  return [{ atMs: Math.max(atMs, attachment.lookAtMs), step: verify }];
}

/** What is left of a volume that no pod wants or has, or that none wants as it is set up. */
function releases(observed: ObservedVolume): readonly Due[] {
  const { desired, actual, hasAddedPods, isDriverMissing, nowMs } = observed;
  // After a restart a volume that no pod wants yet may belong to one that has not been looked at.
  if (actual === undefined || actual.pods.size > 0 || !hasAddedPods) return [];
  if (actual.device.state === "notMounted")
    return desired === undefined ? [{ atMs: nowMs, step: { step: "forget" } }] : [];
  if (isDriverMissing || isDeviceWanted(desired, actual)) return [];
  const isBlock = actual.device.block !== undefined;
  const atMs = retryAt(observed, isBlock ? "unmap_device" : "unmount_device", wholeVolume);
  return [{ atMs, step: { step: isBlock ? "unmapDevice" : "unmountDevice", volume: actual } }];
}

/** Whether a pod wants the volume as its device is set up: mapped or mounted, and where. A conversion changes the name that both go by. */
export function isDeviceWanted(
  desired: DesiredVolume | undefined,
  { device }: Pick<ActualVolume, "device">,
): boolean {
  if (desired === undefined) return false;
  const { block } = device;
  return [...desired.pods.values()].some(({ spec }) => {
    if (isBlockSpec(spec) || block !== undefined)
      return isBlockSpec(spec) && specName(spec) === block?.volumeName;
    const { plugin } = desired;
    return !isDeviceMountable(plugin) || plugin.newDeviceMounter().getDeviceMountPath(spec) === device.path;
  });
}

/** Nothing but a device is here, and that where no pod wants it: it goes before anything is mounted, which would not use it. */
function isDeviceInTheWay(desired: DesiredVolume, actual: ActualVolume): boolean {
  if (actual.device.state === "notMounted" || actual.pods.size > 0) return false;
  return !isDeviceWanted(desired, actual);
}

/** Mounts of drivers that renew what is in them. */
function republications(observed: ObservedVolume): readonly Due[] {
  const { desired, actual, republishAtMs, isDriverMissing } = observed;
  if (desired === undefined || actual === undefined || isDriverMissing) return [];
  return [...republishAtMs].flatMap(([podUID, dueMs]) => {
    const pod = desired.pods.get(podUID);
    const mount = actual.pods.get(podUID);
    // A device has nothing in it that its driver renews.
    if (pod === undefined || mount?.state !== "mounted" || mount.isBlock === true) return [];
    const atMs = Math.max(dueMs, retryAt(observed, "volume_republish", podUID));
    return [{ atMs, step: { step: "republish", volume: desired, pod, mount } }];
  });
}

/** The growth of a volume that pods use; last, since a pod that waits for a mount goes first. */
function growths(observed: ObservedVolume): readonly Due[] {
  if (observed.isDriverMissing) return [];
  const growth = decideGrowthStep(observed);
  if (growth === undefined) return [];
  const { atMs, step } = growth;
  return [{ atMs: Math.max(atMs, retryAt(observed, "volume_fs_resize", wholeVolume)), step }];
}

/** When the operation may be tried (again). */
function retryAt({ failures, nowMs }: ObservedVolume, operation: VolumeOperation, subject: string): number {
  const failure = failures.get(subject);
  return failure?.operation === operation ? failure.retryAtMs : nowMs;
}
