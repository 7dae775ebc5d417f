/**
 * What comes next in the mapping of a block volume for one pod. Source: docs/behaviour/node-agent.md 7.4.
 *
 *     check placement ─► wait for device ─► set up device ─► map for pod ─► grow ─► finish
 *                                           └─ only where it is not set up
 *
 * Invariant: a pod's device does not count as ready before the volume has grown as its claim asks for.
 */
import type { BlockVolumeMapper } from "../../../framework/volume-plugin.ts";
import type { ActualVolume } from "../actual-state.ts";
import type { DesiredPod, DesiredVolume } from "../desired-state.ts";

/** How far a mapping has come. */
export interface MapProgress {
  readonly volume: DesiredVolume;
  readonly pod: DesiredPod;
  readonly mapper: BlockVolumeMapper;
  /** The node matches the volume's node affinity. */
  readonly isPlacementChecked: boolean;
  /** Ends the wait for the device. */
  readonly giveUp: AbortSignal;
  /** Undefined until the device, or the attachment, is there. */
  readonly devicePath: string | undefined;
  /** The device is in the pod's directory. */
  readonly isMapped: boolean;
  /** The volume has the size that its claim asks for. */
  readonly isGrown: boolean;
}

/** What comes next for a mapping. */
export type MapStep =
  /** Compare the live Node with the volume's node affinity. */
  | { readonly step: "checkMapPlacement" }
  | { readonly step: "waitForMapDevice" }
  | { readonly step: "setUpDevice" }
  | { readonly step: "mapForPod" }
  | { readonly step: "growMapped" }
  | { readonly step: "finishMap" };

/** Decides for a mapping that has begun; pure. */
export function decideMapStep(actual: Pick<ActualVolume, "device"> | undefined, map: MapProgress): MapStep {
  const affinity = map.pod.spec.persistentVolume?.spec?.nodeAffinity?.required;
  if (affinity != null && !map.isPlacementChecked) return { step: "checkMapPlacement" };
  if (map.devicePath === undefined) return { step: "waitForMapDevice" };
  if (actual?.device.state !== "mounted") return { step: "setUpDevice" };
  if (!map.isMapped) return { step: "mapForPod" };
  return map.isGrown ? { step: "finishMap" } : { step: "growMapped" };
}
