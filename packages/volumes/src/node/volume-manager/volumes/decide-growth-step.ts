/**
 * Whether a mounted volume is to grow while its pods use it. Source: docs/behaviour/node-agent.md 7.6.
 *
 *     claim waits for the node? ── no ──► look later
 *        └─ yes ─► grow where a pod has it mounted for writing
 *
 * Invariant: only what is certainly mounted grows; a mount that is uncertain is made again first, and grows with that.
 */
import { isNodeExpandable } from "../../../framework/volume-plugin.ts";
import type { ActualPod, ActualVolume } from "../actual-state.ts";
import type { DesiredPod, DesiredVolume } from "../desired-state.ts";
import type { VolumeSize } from "./volume-sizes.ts";

/** What comes next for the size of a mounted volume. */
export type GrowthStep =
  /** Read the claim: does it wait for this node? */
  | { readonly step: "lookAtSize"; readonly volume: DesiredVolume; readonly pod: DesiredPod }
  | {
      readonly step: "growInUse";
      readonly volume: DesiredVolume;
      readonly pod: DesiredPod;
      readonly mount: ActualPod;
      /** The capacity of the PersistentVolume. */
      readonly size: string;
    };

/** What the decision sees of a volume. */
export interface ObservedSize {
  readonly desired: DesiredVolume | undefined;
  readonly actual: ActualVolume | undefined;
  /** Undefined: it is mounted for no pod. */
  readonly size: VolumeSize | undefined;
}

/** The step, and the monotonic time in milliseconds from which it may be taken; undefined: nothing can grow. Pure. */
export function decideGrowthStep({
  desired,
  actual,
  size,
}: ObservedSize): { readonly atMs: number; readonly step: GrowthStep } | undefined {
  if (desired === undefined || actual === undefined || size === undefined || size.isRefused) return undefined;
  if (!isNodeExpandable(desired.plugin)) return undefined;
  if (desired.deviceMountable && actual.device.state !== "mounted") return undefined;
  const use = writableUse(desired, actual);
  if (use === undefined) return undefined;
  const { pod, mount } = use;
  const { lookAtMs: atMs, pending } = size;
  if (pending === undefined) return { atMs, step: { step: "lookAtSize", volume: desired, pod } };
  return { atMs, step: { step: "growInUse", volume: desired, pod, mount, size: pending } };
}

/** A pod that has the volume mounted for writing, through a claim. */
function writableUse(
  desired: DesiredVolume,
  actual: ActualVolume,
): { readonly pod: DesiredPod; readonly mount: ActualPod } | undefined {
  for (const [podUID, pod] of desired.pods) {
    const mount = actual.pods.get(podUID);
    const { persistentVolume, inlineVolumeSpecForCsiMigration, readOnly } = pod.spec;
    if (mount?.state !== "mounted" || mount.readOnly || readOnly || inlineVolumeSpecForCsiMigration) continue;
    if (persistentVolume?.spec?.claimRef !== undefined) return { pod, mount };
  }
  return undefined;
}
