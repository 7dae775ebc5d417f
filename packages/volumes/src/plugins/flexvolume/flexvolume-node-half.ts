/**
 * The node's half of a Flexvolume plugin: the driver mounts, and what it does not support is done as for any block device.
 *
 * Invariants
 *  - A device that holds a file system is never formatted.
 *  - A directory is removed only when it is empty and nothing is mounted there.
 *  - Each step may be repeated after a crash at any point.
 * Source: docs/behaviour/flexvolume.md 4.
 */
import type { Pod } from "@longshore/kube";
import { errorChain, type Host, invariant } from "@longshore/runtime";
import { UncertainProgressError } from "../../framework/node-error-kind.ts";
import type { PluginNodeHalf } from "../../framework/plugin-node-half.ts";
import { setVolumeOwnership } from "../../framework/set-volume-ownership.ts";
import { type KubeletVolumeHost, kubeletPaths, type VolumeHost } from "../../framework/volume-host.ts";
import type {
  DeviceMounter,
  DeviceUnmounter,
  Mounter,
  MounterArgs,
  NodeExpandOptions,
  Unmounter,
} from "../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import { mountFormatted } from "../device-mounts.ts";
import { growFileSystemOf } from "../grow-file-system.ts";
import { DriverCallError, type FlexVolumeDriver } from "./driver-calls.ts";
import {
  driverOptions,
  FlexVolumeError,
  mountOptionsOf,
  readDriverSecret,
  requireFlexVolume,
  secretOptions,
  secretTexts,
} from "./driver-options.ts";
import type { DriverCapabilities } from "./driver-status.ts";
import { deviceMountPath } from "./flexvolume-names.ts";

/** What the node's half is made from. */
export interface FlexVolumeNodeHalfOptions {
  /** The host that the plugin was initialised with; called only after `init`. */
  readonly host: () => VolumeHost;
  readonly driver: FlexVolumeDriver;
  readonly capabilities: DriverCapabilities;
}

/** The node's half. */
export interface FlexVolumeNodeHalf extends PluginNodeHalf {
  /** As `Attacher.waitForAttach`. */
  waitForAttach(spec: VolumeSpec, devicePath: string, signal: AbortSignal): Promise<string>;
}

interface NodeEnv extends Omit<FlexVolumeNodeHalfOptions, "host"> {
  readonly volumeHost: VolumeHost;
  readonly kubelet: KubeletVolumeHost;
}

/** Builds the node's half. */
export function createFlexVolumeNodeHalf(options: FlexVolumeNodeHalfOptions): FlexVolumeNodeHalf {
  const env = (): NodeEnv => {
    const volumeHost = options.host();
    invariant(volumeHost.kubelet !== undefined, "a Flexvolume plugin mounts only on a node's host");
    return { ...options, volumeHost, kubelet: volumeHost.kubelet };
  };
  return {
    newMounter: async (spec, pod) => podMounter(env(), spec, pod),
    newUnmounter: async (volumeName, podUID) => podUnmounter(env(), volumeName, podUID),
    newDeviceMounter: () => deviceMounter(env()),
    newDeviceUnmounter: () => deviceUnmounter(env()),
    nodeExpand: (expand, signal) => nodeExpand(env(), expand, signal),
    constructVolumeSpec: async (volumeName) => flexVolumeSpecOf(options.driver.pluginName, volumeName),
    waitForAttach: (spec, devicePath, signal) => waitForAttach(env(), spec, devicePath, signal),
  };
}

/** A spec that is good for unmounting only. */
export function flexVolumeSpecOf(driver: string, volumeName: string): VolumeSpec {
  return {
    volume: { name: volumeName, flexVolume: { driver } },
    readOnly: false,
    inlineVolumeSpecForCsiMigration: false,
  };
}

async function waitForAttach(
  { driver }: NodeEnv,
  spec: VolumeSpec,
  devicePath: string,
  signal: AbortSignal,
): Promise<string> {
  const status = await driver.call("waitforattach", [devicePath, driverOptions(spec)], signal);
  return status === undefined || status.device === "" ? devicePath : status.device;
}

// Devices

function deviceMounter(env: NodeEnv): DeviceMounter {
  const { driver, kubelet } = env;
  return {
    getDeviceMountPath: (spec) =>
      deviceMountPath(kubelet.rootDir, driver.pluginName, checkedName(specName(spec))),
    async mountDevice(spec, devicePath, path, signal) {
      const { host } = kubelet;
      if (await host.isMountPoint(path)) return;
      await host.makeDirectory(path);
      try {
        const args = [path, devicePath, driverOptions(spec)];
        const status = await driver.call("mountdevice", args, signal);
        if (status === undefined && devicePath !== "") await formatAndMount(host, spec, devicePath, path);
      } catch (error) {
        await removeIfUnused(host, path);
        throw asMountError(error);
      }
    },
  };
}

/** Source: upstream SafeFormatAndMount.formatAndMountSensitive. */
async function formatAndMount(host: Host, spec: VolumeSpec, devicePath: string, path: string): Promise<void> {
  const { fsType, readOnly } = requireFlexVolume(spec);
  const volumeName = specName(spec);
  await mountFormatted(host, path, { volumeName, device: devicePath, fsType, readOnly, flags: [] });
}

function deviceUnmounter({ driver, kubelet: { host } }: NodeEnv): DeviceUnmounter {
  return {
    async unmountDevice(path, signal) {
      if ((await host.stat(path)) === undefined) return;
      if (await mayBeMounted(host, path)) {
        const status = await driver.call("unmountdevice", [path], signal);
        if (status === undefined) await unmountAll(host, path);
      }
      await host.removeDirectory(path);
    },
  };
}

/** What cannot be looked at, such as a mount whose server has gone, counts as mounted. */
async function mayBeMounted(host: Host, path: string): Promise<boolean> {
  return host.isMountPoint(path).catch(() => true);
}

// Pods

function podVolumePath({ kubelet, driver }: NodeEnv, podUID: string, volumeName: string): string {
  return kubeletPaths.podVolumeDir(kubelet.rootDir, podUID, driver.pluginName, checkedName(volumeName));
}

function podMounter(env: NodeEnv, spec: VolumeSpec, pod: Pod): Mounter {
  const { readOnly } = requireFlexVolume(spec);
  const path = podVolumePath(env, pod.metadata?.uid ?? "", specName(spec));
  return {
    getPath: () => path,
    readOnly,
    supportsSELinux: env.capabilities.selinuxRelabel,
    async setUp(args, signal) {
      const { host } = env.kubelet;
      if (!(await host.isMountPoint(path))) {
        const secret = await readDriverSecret(env.volumeHost.kube, spec, pod, signal);
        await host.makeDirectory(path);
        try {
          await mountForPod(env, { spec, pod, path, readOnly, secret, args }, signal);
        } catch (error) {
          await removeIfUnused(host, path);
          throw asMountError(error);
        }
      }
      await giveToGroup(env, path, readOnly, args);
    },
  };
}

interface PodMountRequest {
  readonly spec: VolumeSpec;
  readonly pod: Pod;
  readonly path: string;
  readonly readOnly: boolean;
  readonly secret: Readonly<Record<string, string>>;
  readonly args: MounterArgs;
}

async function mountForPod(
  { driver, capabilities, kubelet }: NodeEnv,
  { spec, pod, path, readOnly, secret, args }: PodMountRequest,
  signal: AbortSignal,
): Promise<void> {
  const extra = { ...mountOptionsOf(pod, args.fsGroup), ...secretOptions(secret) };
  const status = await driver.call("mount", [path, driverOptions(spec, extra)], signal, secretTexts(secret));
  if (status !== undefined) return;
  if (!capabilities.attach) {
    throw new FlexVolumeError(
      `Flexvolume driver ${driver.pluginName} supports neither attach nor mount: correct the driver`,
    );
  }
  const source = deviceMountPath(kubelet.rootDir, driver.pluginName, checkedName(specName(spec)));
  await kubelet.host.bindMount(source, path, { readOnly });
}

/** A group that the files do not take is no reason to keep the pod from its volume: drivers differ in that. */
async function giveToGroup(
  { capabilities, volumeHost }: NodeEnv,
  path: string,
  readOnly: boolean,
  { fsGroup }: MounterArgs,
): Promise<void> {
  if (!capabilities.fsGroup || readOnly || fsGroup === undefined) return;
  await setVolumeOwnership(volumeHost, path, fsGroup).catch((error: unknown) => {
    volumeHost.logger.warn("the files of a Flexvolume were not given to the pod's fsGroup", {
      path,
      error: errorChain(error),
    });
  });
}

function podUnmounter(env: NodeEnv, volumeName: string, podUID: string): Unmounter {
  const path = podVolumePath(env, podUID, volumeName);
  return {
    getPath: () => path,
    async tearDown(signal) {
      const { host } = env.kubelet;
      if ((await host.stat(path)) === undefined) return;
      const status = await env.driver.call("unmount", [path], signal);
      if (status === undefined) await unmountAll(host, path);
      await host.removeDirectory(path);
    },
  };
}

async function unmountAll(host: Host, path: string): Promise<void> {
  while (await host.isMountPoint(path)) await host.unmount(path);
}

async function removeIfUnused(host: Host, path: string): Promise<void> {
  if (await mayBeMounted(host, path)) return;
  await host.removeDirectory(path).catch(() => {});
}

/** A driver that was stopped may have mounted. */
function asMountError(error: unknown): unknown {
  if (!(error instanceof DriverCallError && error.isUncertain)) return error;
  return new UncertainProgressError(error.message, { cause: error });
}

// Expansion

async function nodeExpand(env: NodeEnv, options: NodeExpandOptions, signal: AbortSignal): Promise<boolean> {
  const { driver, capabilities, kubelet } = env;
  const { spec, devicePath, deviceMountPath: mountPath, path, newSizeBytes, oldSizeBytes } = options;
  if (!capabilities.requiresFSResize) return true;
  const { persistentVolume } = spec;
  if (persistentVolume === undefined) {
    throw new FlexVolumeError(`volume ${specName(spec)} cannot be expanded: it is of no PersistentVolume`);
  }
  const sizes = [`${newSizeBytes}`, `${oldSizeBytes ?? newSizeBytes}`];
  const status = await driver.call(
    "expandfs",
    [driverOptions(spec), devicePath, mountPath, ...sizes],
    signal,
  );
  const isForHost =
    status === undefined && persistentVolume.spec?.volumeMode !== "Block" && devicePath !== "";
  if (!isForHost) return true;
  await growFileSystemOf(kubelet.host, options, {
    unmount: () => deviceUnmounter(env).unmountDevice(path, signal),
    mount: () => deviceMounter(env).mountDevice(spec, devicePath, path, signal),
  });
  return true;
}

/** The name as one element of a path. @throws FlexVolumeError */
function checkedName(name: string): string {
  if (name !== "" && name !== "." && name !== ".." && !name.includes("/")) return name;
  throw new FlexVolumeError(`volume name "${name}" cannot be the name of a directory`);
}
