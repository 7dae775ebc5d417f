/** The actions on a volume that pods get as a device. Source: docs/behaviour/node-agent.md 7.4, 7.5. */
import { type Actions, type Next, observeAgain, type Pass } from "@longshore/kube";
import {
  type BlockVolumePlugin,
  isBlockVolumePlugin,
  type VolumePlugin,
} from "../../../framework/volume-plugin.ts";
import { specName } from "../../../framework/volume-spec.ts";
import type { ActualPod, ActualVolume, PodMount } from "../actual-state.ts";
import type { MapProgress, MapStep } from "./decide-map-step.ts";
import { isDeviceWanted, type ObservedVolume, type VolumeStep } from "./decide-volume-step.ts";
import {
  bindDevice,
  checkedMapError,
  type DeviceMap,
  deviceMapOf,
  prepareMap,
  tearDownByName,
  unmapByName,
} from "./device-maps.ts";
import { expandOnNode } from "./expand-on-node.ts";
import { measureEnd } from "./measure-end.ts";
import { checkPlacement, waitForDevice } from "./mount-actions.ts";
import type { VolumeActionsEnv } from "./volume-actions-env.ts";
import { emitMapped } from "./volume-events.ts";
import {
  podMountKey,
  requireFreeDisk,
  requireFreePlace,
  requireNoOtherPod,
  requireNotHeld,
  requireSamePlace,
  VolumeOperationError,
} from "./volume-places.ts";
import { wholeVolume } from "./volume-records.ts";

/** What a step changes in the progress of a mapping. */
type Progress = Partial<MapProgress>;

/** The actions on block volumes, by step. */
export function mapActions(
  env: VolumeActionsEnv,
): Pick<Actions<ObservedVolume, VolumeStep>, MapStep["step"] | "beginMap" | "unmapForPod" | "unmapDevice"> {
  const step =
    (work: (env: VolumeActionsEnv, map: MapProgress, signal: AbortSignal) => Promise<Progress>) =>
    (_step: unknown, observed: ObservedVolume, pass: Pass) =>
      advanced(env, observed, pass, (map) => work(env, map, pass.signal));
  return {
    beginMap: ({ volume, pod }, observed, pass) => beginMap(env, { volume, pod }, observed, pass),
    checkMapPlacement: step(checkPlacement),
    waitForMapDevice: step(waitForDevice),
    setUpDevice: step(setUpDevice),
    mapForPod: step(mapForPod),
    growMapped: step(growMapped),
    finishMap(_step, observed) {
      measureEnd(env, observed, "map_volume", "success");
      return finishMap(env, observed.map);
    },
    unmapForPod: ({ pod }, observed, pass) => unmapForPod(env, pod, observed, pass),
    unmapDevice: ({ volume }, observed, pass) => unmapDevice(env, volume, observed, pass),
  };
}

/** @throws VolumeOperationError */
function requireBlockPlugin(plugin: VolumePlugin): BlockVolumePlugin {
  if (isBlockVolumePlugin(plugin)) return plugin;
  throw new VolumeOperationError(`plugin ${plugin.pluginName} has no block volumes`);
}

async function beginMap(
  env: VolumeActionsEnv,
  { volume, pod }: Pick<MapProgress, "volume" | "pod">,
  observed: ObservedVolume,
  { signal }: Pass,
): Promise<Next<ObservedVolume>> {
  const { uniqueName, origin, plugin } = volume;
  const { uid } = pod.pod.metadata;
  // The pod may have gone, or its plugin begun to change over, since that was observed.
  if (!env.paths.isDecided(origin) || env.desired.podOf(uniqueName, uid) === undefined) return observeAgain;
  // Before the first await: a pod that goes meanwhile is not forgotten while a mapping runs for it.
  const giveUp = env.mounts.begin(uniqueName, uid);
  try {
    requireFreeDisk(env, { uniqueName, spec: pod.spec });
    requireNoOtherPod(env, uniqueName, pod);
    const mapper = await requireBlockPlugin(plugin).newBlockVolumeMapper(pod.spec, pod.pod);
    const begun = { isPlacementChecked: false, isMapped: false, isGrown: false, devicePath: undefined };
    return { observed: { ...observed, map: { ...begun, volume, pod, mapper, giveUp } } };
  } catch (error) {
    signal.throwIfAborted();
    return { observed: { ...observed, failed: { operation: "map_volume", subject: uid, error } } };
  }
}

/** Runs one step of the mapping; a failure ends it. */
async function advanced(
  env: VolumeActionsEnv,
  observed: ObservedVolume,
  { key, signal }: Pass,
  work: (map: MapProgress) => Promise<Progress>,
): Promise<Next<ObservedVolume>> {
  const { map } = observed;
  if (map === undefined) return observeAgain;
  try {
    const progress = await work(map);
    return { observed: { ...observed, actual: env.actual.get(key), map: { ...map, ...progress } } };
  } catch (error) {
    signal.throwIfAborted();
    const failed = { operation: "map_volume", subject: map.pod.pod.metadata.uid, error } as const;
    return { observed: { ...observed, failed } };
  }
}

/** Sets the device up, once for all pods. */
async function setUpDevice(
  env: VolumeActionsEnv,
  { volume: { uniqueName }, pod: { spec }, mapper }: MapProgress,
  signal: AbortSignal,
): Promise<Progress> {
  const path = mapper.getGlobalMapPath(spec);
  const volumeName = specName(spec);
  await env.places.run(path, async () => {
    // Under the lock: while this waited, another volume of the same PersistentVolume name may have come there.
    requireFreePlace(env.actual, uniqueName, path);
    requireSamePlace(env.actual.get(uniqueName), path);
    try {
      const devicePath = (await mapper.setUpDevice?.(signal)) ?? "";
      env.actual.markDeviceMounted(uniqueName, path, { volumeName, devicePath });
    } catch (error) {
      env.actual.deviceMountFailed(uniqueName, path, error, { volumeName, devicePath: "" });
      throw error;
    }
  });
  return {};
}

async function mapForPod(env: VolumeActionsEnv, map: MapProgress, signal: AbortSignal): Promise<Progress> {
  const { volume, mapper } = map;
  const { uniqueName, plugin } = volume;
  const paths = mapOf(map);
  const mapped = podMapOf(map);
  requireSamePlace(env.actual.get(uniqueName), paths.globalMapPath);
  await env.places.run(podMountKey(plugin, mapped.podUID, mapped.volumeName), async () => {
    const published = await publishForPod(env, map, () => mapper.mapPodDevice?.(signal));
    // Whatever fails from here on, it is published and has to be undone.
    env.actual.markPodUncertain(uniqueName, mapped);
    const device = [published, env.actual.get(uniqueName)?.device.block?.devicePath, map.devicePath].find(
      (path) => path !== undefined && path !== "",
    );
    if (device === undefined) {
      throw new VolumeOperationError(
        `plugin ${plugin.pluginName} gives no device of volume ${mapped.volumeName}`,
      );
    }
    const isPlainDevice = mapper.isPlainDevice ?? mapper.mapPodDevice === undefined;
    if (isPlainDevice) await env.host.setDeviceReadOnly(device, isForReaders(env, map));
    await bindDevice(env.host, paths, device, mapper.readOnly);
  });
  emitMapped(env, map.pod, { globalMapPath: paths.globalMapPath, volumeMapPath: paths.link });
  return { isMapped: true };
}

/** Makes the pod's link, then publishes; a failure leaves the state that the table says. */
async function publishForPod(
  env: VolumeActionsEnv,
  map: MapProgress,
  publish: () => Promise<string> | undefined,
): Promise<string | undefined> {
  const { uniqueName } = map.volume;
  const mapped = podMapOf(map);
  const paths = mapOf(map);
  try {
    await prepareMap(env.host, paths);
    return await publish();
  } catch (error) {
    const mayBeMapped = env.actual.podOf(uniqueName, mapped.podUID) !== undefined;
    const checked = await checkedMapError(env.host, paths, error, mayBeMapped);
    env.actual.podMountFailed(uniqueName, mapped, checked);
    throw error;
  }
}

/** A bind mount does not keep a device from writes: the device itself refuses them while no pod here may write. */
function isForReaders(env: VolumeActionsEnv, { volume, pod, mapper }: MapProgress): boolean {
  const { uid } = pod.pod.metadata;
  const others = [...(env.actual.get(volume.uniqueName)?.pods.values() ?? [])];
  return mapper.readOnly && others.every(({ podUID, readOnly }) => podUID === uid || readOnly);
}

async function growMapped(env: VolumeActionsEnv, map: MapProgress, signal: AbortSignal): Promise<Progress> {
  const { volume, pod, mapper, devicePath = "" } = map;
  // What nothing is published of has no more than its device, which has grown with the volume.
  if (mapper.mapPodDevice === undefined) return { isGrown: true };
  const { globalMapPath, link } = mapOf(map);
  const where = {
    spec: pod.spec,
    devicePath,
    deviceMountPath: globalMapPath,
    path: link,
    phase: "published",
  } as const;
  const growth = await expandOnNode(env, volume.plugin, pod.pod, where, signal);
  if (growth === "refused") env.sizes.refused(volume.uniqueName);
  return { isGrown: true };
}

function finishMap(env: VolumeActionsEnv, map: MapProgress | undefined): Next<ObservedVolume> {
  if (map === undefined) return observeAgain;
  const { uniqueName } = map.volume;
  env.records.succeeded(uniqueName, map.pod.pod.metadata.uid);
  env.mounts.end(uniqueName);
  env.sizes.lookLater(uniqueName, env.clock.monotonicMs());
  env.actual.markPodMounted(uniqueName, podMapOf(map));
  return observeAgain;
}

/** Unmaps the volume from the pod, knowing no more than its link's name. */
async function unmapForPod(
  env: VolumeActionsEnv,
  pod: ActualPod,
  observed: ObservedVolume,
  { key, signal }: Pass,
): Promise<Next<ObservedVolume>> {
  const { podUID, volumeName } = pod;
  const volume = env.actual.get(key);
  // The pod may have come to want it again since that was observed.
  const isWanted = env.desired.podOf(key, podUID) !== undefined || !env.pods.mayUnmount(podUID);
  if (volume === undefined || isWanted) return observeAgain;
  // The answer may be lost although it was unmapped: until then it must not count as mapped.
  env.actual.markPodUncertain(key, pod);
  try {
    const plugin = requireBlockPlugin(volume.plugin);
    await env.places.run(podMountKey(plugin, podUID, volumeName), () =>
      unmapByName(env, plugin, pod, signal),
    );
  } catch (error) {
    signal.throwIfAborted();
    return { observed: { ...observed, failed: { operation: "unmap_volume", subject: podUID, error } } };
  }
  env.records.succeeded(key, podUID);
  measureEnd(env, observed, "unmap_volume", "success");
  env.actual.markPodUnmounted(key, podUID);
  if (env.actual.get(key)?.pods.size === 0) env.sizes.forget(key);
  return observeAgain;
}

/** Tears the device down, once no pod has it. */
async function unmapDevice(
  env: VolumeActionsEnv,
  { uniqueName, plugin, device, devicePath: attachedAs }: ActualVolume,
  observed: ObservedVolume,
  { signal }: Pass,
): Promise<Next<ObservedVolume>> {
  if (isDeviceWanted(env.desired.get(uniqueName), { device }) || device.block === undefined)
    return observeAgain;
  const { volumeName, devicePath } = device.block;
  // Whatever becomes of it: the next pod must set the device up again.
  env.actual.markDeviceUncertain(uniqueName, device.path, device.block);
  try {
    await env.places.run(device.path, async () => {
      const named = { volumeName, path: device.path, devicePath };
      await tearDownByName(env.host, requireBlockPlugin(plugin), named, signal);
      await requireNotHeld(env, plugin, attachedAs);
    });
  } catch (error) {
    signal.throwIfAborted();
    return { observed: { ...observed, failed: { operation: "unmap_device", subject: wholeVolume, error } } };
  }
  env.records.succeeded(uniqueName, wholeVolume);
  measureEnd(env, observed, "unmap_device", "success");
  env.actual.markDeviceUnmounted(uniqueName);
  return observeAgain;
}

function mapOf({ mapper, pod }: Pick<MapProgress, "mapper" | "pod">): DeviceMap {
  return deviceMapOf(mapper, pod.spec, pod.pod.metadata.uid);
}

function podMapOf({ pod, mapper }: MapProgress): PodMount {
  return {
    podUID: pod.pod.metadata.uid,
    volumeName: specName(pod.spec),
    path: mapOf({ mapper, pod }).link,
    readOnly: mapper.readOnly,
    isBlock: true,
  };
}
