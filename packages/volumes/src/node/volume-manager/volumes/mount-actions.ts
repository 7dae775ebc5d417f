/** The actions of a mount. Source: docs/behaviour/node-agent.md 7.3. */
import { type Actions, type Next, nodeSelectorMatches, observeAgain, type Pass } from "@longshore/kube";
import { withAnyOf, withDeadline } from "@longshore/runtime";
import type { UniqueVolumeName } from "../../../framework/unique-volume-name.ts";
import {
  type BlockVolume,
  type DeviceMounter,
  isAttachable,
  isDeviceMountable,
  type MounterArgs,
} from "../../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../../framework/volume-spec.ts";
import type { PodMount } from "../actual-state.ts";
import type { MapProgress } from "./decide-map-step.ts";
import type { MountProgress, MountStep } from "./decide-mount-step.ts";
import type { ObservedVolume, VolumeStep } from "./decide-volume-step.ts";
import { expandOnNode } from "./expand-on-node.ts";
import { measureEnd } from "./measure-end.ts";
import { mounterArgsOf } from "./mounter-args.ts";
import { getNode, type VolumeActionsEnv } from "./volume-actions-env.ts";
import {
  checkedMountError,
  podMountKey,
  requireFreeDisk,
  requireFreePlace,
  requireMountOptionsUsed,
  requireNoDevice,
  requireNoOtherPod,
  VolumeOperationError,
} from "./volume-places.ts";

const waitForAttachTimeoutMs = 600_000;

/** What a step changes in the progress of a mount. */
type Progress = Partial<MountProgress>;

/** The actions of a mount, by step. */
export function mountActions(
  env: VolumeActionsEnv,
): Pick<Actions<ObservedVolume, VolumeStep>, MountStep["step"] | "beginMount"> {
  const step =
    (work: (env: VolumeActionsEnv, mount: MountProgress, signal: AbortSignal) => Promise<Progress>) =>
    (_step: unknown, observed: ObservedVolume, pass: Pass) =>
      advanced(env, observed, pass, (mount) => work(env, mount, pass.signal));
  return {
    beginMount: ({ volume, pod }, observed, pass) => beginMount(env, { volume, pod }, observed, pass),
    checkPlacement: step(checkPlacement),
    waitForDevice: step(waitForDevice),
    mountDevice: step(mountDevice),
    growStaged: step(growStaged),
    mountForPod: step(mountForPod),
    growMounted: step(growMounted),
    finishMount(_step, observed) {
      measureEnd(env, observed, "volume_mount", "success");
      return finishMount(env, observed.mount);
    },
  };
}

async function beginMount(
  env: VolumeActionsEnv,
  { volume, pod }: Pick<MountProgress, "volume" | "pod">,
  observed: ObservedVolume,
  { signal }: Pass,
): Promise<Next<ObservedVolume>> {
  const { uniqueName, origin, plugin } = volume;
  const { uid } = pod.pod.metadata;
  // The pod may have gone, or its plugin begun to change over, since that was observed.
  if (!env.paths.isDecided(origin) || env.desired.podOf(uniqueName, uid) === undefined) return observeAgain;
  // Before the first await: a pod that goes meanwhile is not forgotten while a mount runs for it.
  const giveUp = env.mounts.begin(uniqueName, uid);
  env.remounts.begin(uniqueName, uid);
  try {
    requireNoDevice(env.actual.get(uniqueName));
    requireFreeDisk(env, { uniqueName, spec: pod.spec });
    requireNoOtherPod(env, uniqueName, pod);
    requireMountOptionsUsed(plugin, pod.spec);
    const mounter = await plugin.newMounter(pod.spec, pod.pod);
    const begun = { isPlacementChecked: false, isDeviceToGrow: false, isGrown: false, isMounted: false };
    return {
      observed: { ...observed, mount: { ...begun, volume, pod, mounter, giveUp, devicePath: undefined } },
    };
  } catch (error) {
    signal.throwIfAborted();
    return { observed: { ...observed, failed: { operation: "volume_mount", subject: uid, error } } };
  }
}

/** Runs one step of the mount; a failure ends the mount. */
async function advanced(
  env: VolumeActionsEnv,
  observed: ObservedVolume,
  { key, signal }: Pass,
  work: (mount: MountProgress) => Promise<Progress>,
): Promise<Next<ObservedVolume>> {
  const { mount } = observed;
  if (mount === undefined) return observeAgain;
  try {
    const progress = await work(mount);
    return { observed: { ...observed, actual: env.actual.get(key), mount: { ...mount, ...progress } } };
  } catch (error) {
    signal.throwIfAborted();
    const failed = { operation: "volume_mount", subject: mount.pod.pod.metadata.uid, error } as const;
    return { observed: { ...observed, failed } };
  }
}

/** Compares the node with the volume's node affinity. @throws VolumeOperationError */
export async function checkPlacement(
  env: VolumeActionsEnv,
  { pod: { spec } }: Pick<MountProgress, "pod">,
  signal: AbortSignal,
): Promise<{ readonly isPlacementChecked: true }> {
  const affinity = spec.persistentVolume?.spec?.nodeAffinity?.required;
  if (affinity != null && !nodeSelectorMatches(await getNode(env, signal), affinity)) {
    throw new VolumeOperationError(
      `PersistentVolume ${specName(spec)}: spec.nodeAffinity does not match node ${env.nodeName}`,
    );
  }
  return { isPlacementChecked: true };
}

/** Waits until the device, or the attachment, is there. */
export async function waitForDevice(
  env: VolumeActionsEnv,
  progress: Pick<MountProgress, "volume" | "pod" | "giveUp"> & Partial<Pick<MapProgress, "mapper">>,
  signal: AbortSignal,
): Promise<{ readonly devicePath: string }> {
  const { volume, giveUp } = progress;
  const { pod, spec } = progress.pod;
  const { uniqueName, plugin, attachable } = volume;
  const reported = env.actual.get(uniqueName)?.devicePath ?? "";
  if (!attachable || !isAttachable(plugin)) return { devicePath: reported };
  const attacher = plugin.newAttacher();
  if (attacher.attachesOnNode === true) markAttaching(env, uniqueName, spec, attacher, progress.mapper);
  try {
    const devicePath = await withDeadline(env.clock, waitForAttachTimeoutMs, signal, (waitSignal) =>
      withAnyOf([waitSignal, giveUp], (either) => attacher.waitForAttach(spec, reported, either, pod)),
    );
    return { devicePath };
  } catch (error) {
    // It may have been detached meanwhile, or attached with another device: the node's status is read before the next attempt.
    if (reported !== "") env.actual.doubtAttachment(uniqueName);
    throw error;
  }
}

/** Whatever the outcome, the volume may be attached from here on: its device is released once no pod wants it. */
function markAttaching(
  env: VolumeActionsEnv,
  uniqueName: UniqueVolumeName,
  spec: VolumeSpec,
  attacher: DeviceMounter,
  mapper: BlockVolume | undefined,
): void {
  if (env.actual.get(uniqueName)?.device.state !== "notMounted") return;
  const path = mapper?.getGlobalMapPath(spec) ?? attacher.getDeviceMountPath(spec);
  const block = mapper === undefined ? undefined : { volumeName: specName(spec), devicePath: "" };
  env.actual.markDeviceUncertain(uniqueName, path, block);
}

async function mountDevice(
  env: VolumeActionsEnv,
  { volume, pod, devicePath = "" }: MountProgress,
  signal: AbortSignal,
): Promise<Progress> {
  const { uniqueName, plugin } = volume;
  const { spec } = pod;
  if (!isDeviceMountable(plugin)) {
    throw new VolumeOperationError(`plugin ${plugin.pluginName} mounts no devices`);
  }
  const mounter = plugin.newDeviceMounter();
  const path = mounter.getDeviceMountPath(spec);
  await env.places.run(path, async () => {
    // Under the lock: while this waited, another volume of the same PersistentVolume name may have been mounted.
    requireFreePlace(env.actual, uniqueName, path);
    try {
      await mounter.mountDevice(spec, devicePath, path, signal, mounterArgsOf(pod));
    } catch (error) {
      env.actual.deviceMountFailed(uniqueName, path, await checkedMountError(env.host, path, error));
      throw error;
    }
    // Not ready before it has grown: a failure of that repeats both (docs/behaviour/node-agent.md 5).
    env.actual.markDeviceUncertain(uniqueName, path);
  });
  return { isDeviceToGrow: true };
}

async function growStaged(
  env: VolumeActionsEnv,
  { volume, pod: { pod, spec }, devicePath = "" }: MountProgress,
  signal: AbortSignal,
): Promise<Progress> {
  const path = env.actual.get(volume.uniqueName)?.device.path ?? "";
  const where = { spec, devicePath, deviceMountPath: path, path, phase: "staged" } as const;
  const growth = await expandOnNode(env, volume.plugin, pod, where, signal);
  if (growth === "refused") env.sizes.refused(volume.uniqueName);
  env.actual.markDeviceMounted(volume.uniqueName, path);
  return { isDeviceToGrow: false, isGrown: growth !== "later" };
}

async function mountForPod(
  env: VolumeActionsEnv,
  { volume, pod, mounter }: MountProgress,
  signal: AbortSignal,
): Promise<Progress> {
  const { uniqueName, plugin } = volume;
  const mount = podMountOf({ pod, mounter });
  const place = podMountKey(plugin, mount.podUID, mount.volumeName);
  try {
    await env.places.run(place, () => mounter.setUp(mounterArgsOf(pod), signal));
  } catch (error) {
    env.actual.podMountFailed(uniqueName, mount, await checkedMountError(env.host, mount.path, error));
    throw error;
  }
  // One that was set up again has been mounted all the time.
  if (env.actual.podOf(uniqueName, mount.podUID)?.state !== "mounted") {
    env.actual.markPodUncertain(uniqueName, mount);
  }
  await relabel(env, mounter, mounterArgsOf(pod));
  return { isMounted: true };
}

/** SELinux keeps a pod's containers from files of another label. Source: docs/behaviour/volume-plugins.md 2. */
async function relabel(
  { host }: VolumeActionsEnv,
  mounter: MountProgress["mounter"],
  { seLinuxLabel }: MounterArgs,
): Promise<void> {
  if (seLinuxLabel === undefined || mounter.supportsSELinux !== true) return;
  await host.relabelTree(mounter.getPath(), seLinuxLabel);
}

async function growMounted(
  env: VolumeActionsEnv,
  { volume, pod: { pod, spec }, mounter, devicePath = "" }: MountProgress,
  signal: AbortSignal,
): Promise<Progress> {
  const deviceMountPath = env.actual.get(volume.uniqueName)?.device.path ?? "";
  const where = { spec, devicePath, deviceMountPath, path: mounter.getPath(), phase: "published" } as const;
  const growth = await expandOnNode(env, volume.plugin, pod, where, signal);
  if (growth === "refused") env.sizes.refused(volume.uniqueName);
  return { isGrown: true };
}

function finishMount(env: VolumeActionsEnv, mount: MountProgress | undefined): Next<ObservedVolume> {
  if (mount === undefined) return observeAgain;
  const { uniqueName } = mount.volume;
  env.records.succeeded(uniqueName, mount.pod.pod.metadata.uid);
  env.mounts.end(uniqueName);
  const nowMs = env.clock.monotonicMs();
  env.sizes.lookLater(uniqueName, nowMs);
  env.republications.setUp(uniqueName, mount.pod.pod.metadata.uid, nowMs, mount.mounter.setUpAgainMs?.());
  env.actual.markPodMounted(uniqueName, podMountOf(mount));
  return observeAgain;
}

function podMountOf({ pod, mounter }: Pick<MountProgress, "pod" | "mounter">): PodMount {
  return {
    podUID: pod.pod.metadata.uid,
    volumeName: specName(pod.spec),
    path: mounter.getPath(),
    readOnly: mounter.readOnly,
  };
}
