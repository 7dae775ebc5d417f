/** Waiting until all volumes of a pod are mounted. Source: docs/behaviour/node-agent.md 8, `waitForAttachAndMount`. */
import type { Pod, Stored } from "@longshore/kube";
import { type Clock, DeadlineError, withDeadline } from "@longshore/runtime";
import type { RegisteredCsiDrivers } from "../../plugins/csi/registered-csi-drivers.ts";
import type { DesiredVolume } from "./desired-state.ts";
import { mountedVolumesOf, type NodeVolumeStates } from "./node-volume-states.ts";
import { usedVolumes } from "./pods/pod-volume-spec.ts";
import type { VolumeWaits } from "./volume-waits.ts";
import { isDriverMissing } from "./volumes/volume-controller.ts";

/** How long a pod waits for its volumes where nothing else is asked for, in milliseconds. */
export const mountTimeoutMs = 123_000;

/** Not all volumes of a pod were mounted in time. */
export class MountTimeoutError extends Error {
  override readonly name = "MountTimeoutError";
}

/** Volumes of a pod cannot be resolved; the message says which and why. */
export class PodVolumesError extends Error {
  override readonly name = "PodVolumesError";
}

/** What waiting reads. */
export interface VolumeWaitEnv extends NodeVolumeStates {
  readonly clock: Clock;
  readonly csiDrivers: RegisteredCsiDrivers | undefined;
  readonly waits: VolumeWaits;
}

/**
 * Resolves when all volumes that the pod's containers use are mounted.
 * @throws MountTimeoutError after `withinMs`; PodVolumesError when they cannot be resolved
 */
export async function waitForVolumes(
  env: VolumeWaitEnv,
  pod: Stored<Pod>,
  withinMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { uid } = pod.metadata;
  const expected = usedVolumes(pod).map(({ name }) => name);
  const missing = () => {
    const mounted = mountedVolumesOf(env, uid);
    return expected.filter((name) => !mounted.has(name));
  };
  try {
    await withDeadline(env.clock, withinMs, signal, async (waitSignal) => {
      while (env.pods.get(uid)?.isResolved !== true || missing().length > 0) {
        const errors = env.pods.get(uid)?.errors ?? [];
        if (errors.length > 0) throw new PodVolumesError(errors.join("; "));
        await env.waits.next(uid, waitSignal);
      }
    });
  } catch (error) {
    if (!(error instanceof DeadlineError) || signal.aborted) throw error;
    // As in Kubernetes: what came at the last moment is no timeout (docs/behaviour/node-agent.md 8).
    if (missing().length === 0) return;
    throw new MountTimeoutError(timeoutMessage(env, uid, missing()), { cause: error });
  }
}

function timeoutMessage(env: VolumeWaitEnv, podUID: string, unmounted: readonly string[]): string {
  const volumes = env.desired
    .volumesOf(podUID)
    .filter(({ uniqueName }) => env.actual.podOf(uniqueName, podUID)?.state !== "mounted");
  const isVerified = ({ uniqueName }: DesiredVolume) => env.actual.get(uniqueName)?.attachVerified === true;
  const unattached = volumes
    .filter((volume) => !isVerified(volume))
    .flatMap(({ pods }) => [...(pods.get(podUID)?.outerNames ?? [])]);
  const reasons = [
    ...volumes.filter(isVerified).flatMap((volume) => missingDriverReason(env, volume)),
    ...volumes.flatMap(({ uniqueName }) => mountErrorOf(env, uniqueName, podUID)),
  ];
  const why = reasons.length === 0 ? "" : `: ${reasons.join("; ")}`;
  return `timed out waiting for volumes: unmounted volumes=[${unmounted.join(" ")}], unattached volumes=[${unattached.join(" ")}]${why}`;
}

function missingDriverReason(env: VolumeWaitEnv, volume: DesiredVolume): readonly string[] {
  if (!isDriverMissing(env, volume, undefined)) return [];
  const [pod] = volume.pods.values();
  const driver = pod?.spec.persistentVolume?.spec?.csi?.driver ?? pod?.spec.volume?.csi?.driver;
  return [`CSI driver ${driver} is not registered on this node`];
}

function mountErrorOf({ records }: VolumeWaitEnv, uniqueName: string, podUID: string): readonly string[] {
  const failure = records.of(uniqueName).failures.get(podUID);
  return failure?.operation === "volume_mount" || failure?.operation === "map_volume" ? [failure.reason] : [];
}
