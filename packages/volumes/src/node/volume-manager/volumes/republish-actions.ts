/**
 * Setting up again what is mounted. Source: docs/behaviour/csi-plugin.md 9.5.
 *
 * Invariant: whatever becomes of it, the pod keeps its mount.
 */
import { type Actions, type Next, observeAgain, type Pass } from "@longshore/kube";
import type { ObservedVolume, VolumeStep } from "./decide-volume-step.ts";
import { measureEnd } from "./measure-end.ts";
import { mounterArgsOf } from "./mounter-args.ts";
import type { VolumeActionsEnv } from "./volume-actions-env.ts";
import { podMountKey } from "./volume-places.ts";

type Republish = Extract<VolumeStep, { readonly step: "republish" }>;

/** The action of a republication. */
export function republishActions(
  env: VolumeActionsEnv,
): Pick<Actions<ObservedVolume, VolumeStep>, "republish"> {
  return { republish: (step, observed, pass) => republish(env, step, observed, pass) };
}

async function republish(
  env: VolumeActionsEnv,
  { volume, pod, mount }: Republish,
  observed: ObservedVolume,
  { key, signal }: Pass,
): Promise<Next<ObservedVolume>> {
  const { podUID, volumeName } = mount;
  const isMounted = env.actual.podOf(key, podUID)?.state === "mounted";
  if (env.desired.podOf(key, podUID) === undefined || !isMounted) return observeAgain;
  // A pod that goes meanwhile is not forgotten while the driver works at its mount.
  env.mounts.begin(key, podUID);
  try {
    const mounter = await volume.plugin.newMounter(pod.spec, pod.pod);
    const args = { ...mounterArgsOf(pod), isMounted: true };
    await env.places.run(podMountKey(volume.plugin, podUID, volumeName), () => mounter.setUp(args, signal));
    env.records.succeeded(key, podUID);
    measureEnd(env, observed, "volume_mount", "success");
    env.republications.setUp(key, podUID, env.clock.monotonicMs(), mounter.setUpAgainMs?.());
    return observeAgain;
  } catch (error) {
    signal.throwIfAborted();
    return { observed: { ...observed, failed: { operation: "volume_republish", subject: podUID, error } } };
  } finally {
    env.mounts.end(key);
    env.onOperationEnd(podUID);
  }
}
