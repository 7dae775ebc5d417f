/** The actions on a volume besides its mount: confirming, unmounting, forgetting, failing. Source: docs/behaviour/node-agent.md 7. */
import { type Actions, type Next, observeAgain, type Pass, settled } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { isDeviceMountable } from "../../../framework/volume-plugin.ts";
import type { VolumeSpec } from "../../../framework/volume-spec.ts";
import type { ActualPod, ActualVolume } from "../actual-state.ts";
import type { DesiredVolume } from "../desired-state.ts";
import { removeSubPaths } from "../sub-paths.ts";
import {
  type FailedOperation,
  isDeviceWanted,
  type ObservedVolume,
  type VolumeStep,
} from "./decide-volume-step.ts";
import { growthActions } from "./growth-actions.ts";
import { mapActions } from "./map-actions.ts";
import { measureEnd, operationInMetrics } from "./measure-end.ts";
import { mountActions } from "./mount-actions.ts";
import { republishActions } from "./republish-actions.ts";
import { getNode, type VolumeActionsEnv } from "./volume-actions-env.ts";
import { emitFailedMount } from "./volume-events.ts";
import { podMountKey, requireNoOtherMounts, requireNotHeld, VolumeOperationError } from "./volume-places.ts";
import { wholeVolume } from "./volume-records.ts";

/** The action of each step. */
export function volumeActions(env: VolumeActionsEnv): Actions<ObservedVolume, VolumeStep> {
  return {
    ...mountActions(env),
    ...mapActions(env),
    ...growthActions(env),
    ...republishActions(env),
    recordFailure({ failed }, observed, { key }) {
      measureEnd(env, observed, operationInMetrics(failed.operation), "fail-unknown");
      return recordFailure(env, key, failed, observed.desired);
    },
    verifyAttached: ({ volume, spec }, observed, pass) =>
      verifyAttached(env, { volume, spec }, observed, pass),
    scheduleLook({ atMs }, _observed, { key }) {
      env.records.look(key, { lookAtMs: atMs, refuted: env.records.of(key).refuted });
      return observeAgain;
    },
    unmountForPod: ({ pod }, observed, pass) => unmountForPod(env, pod, observed, pass),
    unmountDevice: ({ volume }, observed, pass) => unmountDevice(env, volume, observed, pass),
    forget: (_step, _observed, { key }) => forget(env, key),
    wait: ({ ms }) => ({ requeueAfterMs: ms }),
    settle: () => settled,
  };
}

/** The same observation with a failure in it, unless the controller stops. */
function failing(
  observed: ObservedVolume,
  { signal }: Pass,
  failed: FailedOperation,
): { readonly observed: ObservedVolume } {
  signal.throwIfAborted();
  return { observed: { ...observed, failed } };
}

function recordFailure(
  env: VolumeActionsEnv,
  uniqueName: string,
  { operation, subject, error }: FailedOperation,
  desired: DesiredVolume | undefined,
): Next<ObservedVolume> {
  const reason = errorChain(error);
  const nowMs = env.clock.monotonicMs();
  const { retryAtMs } = env.records.failed(uniqueName, subject, { operation, reason }, nowMs);
  env.records.keepOnly(
    uniqueName,
    (podUID) =>
      env.desired.podOf(uniqueName, podUID) !== undefined ||
      env.actual.podOf(uniqueName, podUID) !== undefined,
  );
  const retryInMs = retryAtMs - nowMs;
  env.logger.warn(`${operation} failed`, { volume: uniqueName, retryInMs, error: reason });
  if (operation === "volume_mount" || operation === "map_volume") {
    const pod = desired?.pods.get(subject);
    // A wait that was given up because its pod has gone is no failure to report.
    if (pod !== undefined && !env.mounts.isGivenUp(uniqueName)) emitFailedMount(env, operation, pod, error);
    env.mounts.end(uniqueName);
    // What is mounted stays, and is brought up to date when it is tried again.
    if (env.actual.podOf(uniqueName, subject)?.state === "mounted") env.remounts.request(uniqueName, subject);
  } else if (operation === "volume_republish") {
    const pod = desired?.pods.get(subject);
    if (pod !== undefined) emitFailedMount(env, "volume_mount", pod, error);
  }
  env.onOperationEnd(subject);
  return observeAgain;
}

/**
 * Takes a volume into the actual state once the controller says that it is attached here. The name
 * in `status.volumesAttached` must be identical, and ours must stand in `status.volumesInUse`:
 * before that the controller might be detaching it. Source: docs/behaviour/node-agent.md 7.2.
 */
async function verifyAttached(
  env: VolumeActionsEnv,
  { volume, spec }: { readonly volume: DesiredVolume; readonly spec: VolumeSpec },
  observed: ObservedVolume,
  pass: Pass,
): Promise<Next<ObservedVolume>> {
  const { uniqueName, origin } = volume;
  // The migration may have suspended the plugin since that was observed, because nothing of it is here.
  if (!env.paths.isDecided(origin) || env.desired.get(uniqueName) === undefined) return observeAgain;
  env.verifying.add(uniqueName);
  try {
    const seen = env.cachedNode();
    const devicePath = await confirmedDevicePath(env, volume, pass.signal);
    env.records.succeeded(uniqueName, wholeVolume);
    env.records.look(uniqueName, {
      lookAtMs: undefined,
      refuted: devicePath === undefined ? seen : undefined,
    });
    const { plugin, attachable } = volume;
    // While no pod wants it, the migration does not count it as about to be here.
    if (devicePath !== undefined) measureEnd(env, observed, "verify_controller_attached_volume", "success");
    if (devicePath !== undefined && env.desired.get(uniqueName) !== undefined)
      env.actual.markAttached({ uniqueName, spec, plugin, attachable, origin }, devicePath);
    return observeAgain;
  } catch (error) {
    env.records.look(uniqueName, { ...env.records.of(uniqueName), lookAtMs: undefined });
    const operation = "verify_controller_attached_volume";
    return failing(observed, pass, { operation, subject: wholeVolume, error });
  } finally {
    env.verifying.delete(uniqueName);
  }
}

/** @returns the device path of the attachment, or undefined: not attached yet, or not reported in use */
async function confirmedDevicePath(
  env: VolumeActionsEnv,
  { uniqueName, attachable }: DesiredVolume,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!attachable) return "";
  if (!env.isReportedInUse(uniqueName)) return undefined;
  const node = await getNode(env, signal);
  const { volumesAttached = [], volumesInUse = [] } = node.status ?? {};
  const attached = volumesAttached.find(({ name }) => name === uniqueName);
  // An API server that was restored from a backup knows nothing of a later report: its controller may be detaching the volume.
  if (!volumesInUse.includes(uniqueName)) env.foundNotInUse(uniqueName);
  // The report may have been withdrawn while the node was read.
  return env.isReportedInUse(uniqueName) ? attached?.devicePath : undefined;
}

/** Unmounts the volume from the pod, knowing no more than its directory's name. */
async function unmountForPod(
  env: VolumeActionsEnv,
  pod: ActualPod,
  observed: ObservedVolume,
  pass: Pass,
): Promise<Next<ObservedVolume>> {
  const { podUID, volumeName } = pod;
  const { key } = pass;
  const plugin = env.actual.get(key)?.plugin;
  // The pod may have come to want it again since that was observed.
  const isWanted = env.desired.podOf(key, podUID) !== undefined || !env.pods.mayUnmount(podUID);
  if (plugin === undefined || isWanted) return observeAgain;
  // The answer may be lost although it was unmounted: until then it must not count as mounted.
  env.actual.markPodUncertain(key, pod);
  try {
    await env.places.run(podMountKey(plugin, podUID, volumeName), async () => {
      await removeSubPaths(env, podUID, volumeName);
      const unmounter = await plugin.newUnmounter(volumeName, podUID);
      await unmounter.tearDown(pass.signal);
    });
  } catch (error) {
    return failing(observed, pass, { operation: "volume_unmount", subject: podUID, error });
  }
  env.records.succeeded(key, podUID);
  measureEnd(env, observed, "volume_unmount", "success");
  env.actual.markPodUnmounted(key, podUID);
  env.republications.forget(key, podUID);
  if (env.actual.get(key)?.pods.size === 0) env.sizes.forget(key);
  return observeAgain;
}

/** Unmounts the volume's device, once no pod's directory shares it any more. */
async function unmountDevice(
  env: VolumeActionsEnv,
  { uniqueName, plugin, device, devicePath }: ActualVolume,
  observed: ObservedVolume,
  pass: Pass,
): Promise<Next<ObservedVolume>> {
  if (isDeviceWanted(env.desired.get(uniqueName), { device })) return observeAgain;
  // Whatever becomes of it: the next pod must mount the device again.
  env.actual.markDeviceUncertain(uniqueName, device.path);
  try {
    if (!isDeviceMountable(plugin)) {
      throw new VolumeOperationError(`plugin ${plugin.pluginName} unmounts no devices`);
    }
    await env.places.run(device.path, async () => {
      await requireNoOtherMounts(env, device.path);
      await plugin.newDeviceUnmounter().unmountDevice(device.path, pass.signal);
      await requireNotHeld(env, plugin, devicePath);
    });
  } catch (error) {
    return failing(observed, pass, { operation: "unmount_device", subject: wholeVolume, error });
  }
  env.records.succeeded(uniqueName, wholeVolume);
  measureEnd(env, observed, "unmount_device", "success");
  env.actual.markDeviceUnmounted(uniqueName);
  return observeAgain;
}

/** Nothing of the volume is here and no pod wants it. */
function forget(env: VolumeActionsEnv, uniqueName: string): Next<ObservedVolume> {
  if (env.desired.get(uniqueName) !== undefined) return observeAgain;
  env.records.forget(uniqueName);
  env.remounts.forget(uniqueName);
  env.onVolumeForgotten(uniqueName);
  env.sizes.forget(uniqueName);
  env.actual.delete(uniqueName);
  return settled;
}
