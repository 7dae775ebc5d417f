/**
 * The plugin of one Flexvolume driver. Whether it attaches is what the driver said at its `init`; the plugin is made again when
 * the driver is replaced. Source: docs/behaviour/flexvolume.md 3 and 4.
 */
import { invariant, type Logger } from "@longshore/runtime";
import type { VolumeHost } from "../../framework/volume-host.ts";
import type {
  Detacher,
  ExpandableVolumePlugin,
  InTreeAttachableVolumePlugin,
  InTreeAttacher,
  NodeExpandableVolumePlugin,
} from "../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import type { FlexVolumeDriver } from "./driver-calls.ts";
import { driverOptions, flexVolumeSourceOf } from "./driver-options.ts";
import type { DriverCapabilities } from "./driver-status.ts";
import { deviceMountPath } from "./flexvolume-names.ts";
import { createFlexVolumeNodeHalf, type FlexVolumeNodeHalf } from "./flexvolume-node-half.ts";

/** What every Flexvolume plugin can do. */
export type FlexVolumePlugin = ExpandableVolumePlugin & NodeExpandableVolumePlugin;

/** The plugin of a driver with these capabilities; attachable where they say so. */
export function flexVolumePlugin(
  driver: FlexVolumeDriver,
  capabilities: DriverCapabilities,
): FlexVolumePlugin | (FlexVolumePlugin & InTreeAttachableVolumePlugin) {
  let initialised: VolumeHost | undefined;
  const host = (): VolumeHost => {
    invariant(initialised !== undefined, "a volume plugin is initialised before it is used");
    return initialised;
  };
  const nodeHalf = createFlexVolumeNodeHalf({ host, driver, capabilities });
  const base: FlexVolumePlugin = {
    pluginName: driver.pluginName,
    async init(given) {
      initialised = given;
    },
    // The driver's own name of a volume is ignored, as in the reference; it is asked in `canAttach`.
    getVolumeName: specName,
    canSupport: (spec) => flexVolumeSourceOf(spec)?.driver === driver.pluginName,
    supportsMountOption: () => false,
    supportsMetrics: () => capabilities.supportsMetrics,
    newMounter: (spec, pod) => nodeHalf.newMounter(spec, pod),
    newUnmounter: (volumeName, podUID) => nodeHalf.newUnmounter(volumeName, podUID),
    constructVolumeSpec: (volumeName, mountPath) => nodeHalf.constructVolumeSpec(volumeName, mountPath),
    nodeExpand: (expand, signal) => nodeHalf.nodeExpand(expand, signal),
    expandVolumeDevice: (spec, newSizeBytes, oldSizeBytes, signal) =>
      expandVolume(driver, { spec, newSizeBytes, oldSizeBytes, rootDir: host().kubelet?.rootDir }, signal),
    requiresFSResize: () => capabilities.requiresFSResize,
  };
  return capabilities.attach ? { ...base, ...attaching({ driver, nodeHalf, host }) } : base;
}

type Attaching = Pick<
  InTreeAttachableVolumePlugin,
  "canAttach" | "canDeviceMount" | "newAttacher" | "newDetacher" | "newDeviceMounter" | "newDeviceUnmounter"
>;

interface AttachEnv {
  readonly driver: FlexVolumeDriver;
  readonly nodeHalf: FlexVolumeNodeHalf;
  readonly host: () => VolumeHost;
}

/** What an attachable plugin has besides. */
function attaching({ driver, nodeHalf, host }: AttachEnv): Attaching {
  return {
    async canAttach(spec) {
      // Asks nothing but whether the driver takes the volume: a driver that refuses to name it fails the caller.
      await driver.call("getvolumename", [driverOptions(spec)], new AbortController().signal);
      return true;
    },
    canDeviceMount: async () => true,
    newDeviceMounter: () => nodeHalf.newDeviceMounter(),
    newDeviceUnmounter: () => nodeHalf.newDeviceUnmounter(),
    newAttacher: (): InTreeAttacher => ({
      getDeviceMountPath: (spec) => nodeHalf.newDeviceMounter().getDeviceMountPath(spec),
      mountDevice: (spec, devicePath, path, signal) =>
        nodeHalf.newDeviceMounter().mountDevice(spec, devicePath, path, signal),
      attach: (spec, nodeName, signal) => attach(driver, host().logger, spec, nodeName, signal),
      volumesAreAttached: (specs, nodeName, signal) => volumesAreAttached(driver, specs, nodeName, signal),
      waitForAttach: (spec, devicePath, signal) => nodeHalf.waitForAttach(spec, devicePath, signal),
    }),
    newDetacher: (): Detacher => ({
      unmountDevice: (path, signal) => nodeHalf.newDeviceUnmounter().unmountDevice(path, signal),
      detach: (volumeName, nodeName, signal) => detach(driver, host().logger, volumeName, nodeName, signal),
    }),
  };
}

async function attach(
  driver: FlexVolumeDriver,
  logger: Logger,
  spec: VolumeSpec,
  nodeName: string,
  signal: AbortSignal,
): Promise<string> {
  const status = await driver.call("attach", [driverOptions(spec), nodeName], signal);
  if (status !== undefined) return status.device;
  logger.warn("the Flexvolume driver does not support attach", { driver: driver.pluginName, node: nodeName });
  return "";
}

async function detach(
  driver: FlexVolumeDriver,
  logger: Logger,
  volumeName: string,
  nodeName: string,
  signal: AbortSignal,
): Promise<void> {
  const status = await driver.call("detach", [volumeName, nodeName], signal);
  if (status !== undefined) return;
  logger.warn("the Flexvolume driver does not support detach", { driver: driver.pluginName, node: nodeName });
}

/** A volume of which the driver does not say whether it is attached is in no answer: it is not declared detached. */
async function volumesAreAttached(
  driver: FlexVolumeDriver,
  specs: readonly VolumeSpec[],
  nodeName: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<VolumeSpec, boolean>> {
  const answers = new Map<VolumeSpec, boolean>();
  for (const spec of specs) {
    const status = await driver.call("isattached", [driverOptions(spec), nodeName], signal);
    if (status === undefined) return new Map();
    if (status.attached !== undefined) answers.set(spec, status.attached);
  }
  return answers;
}

interface Expansion {
  readonly spec: VolumeSpec;
  readonly newSizeBytes: bigint;
  readonly oldSizeBytes: bigint;
  /** Undefined on a controller, which has no kubelet root directory. */
  readonly rootDir: string | undefined;
}

async function expandVolume(
  driver: FlexVolumeDriver,
  { spec, newSizeBytes, oldSizeBytes, rootDir }: Expansion,
  signal: AbortSignal,
): Promise<bigint> {
  const path = rootDir === undefined ? "" : deviceMountPath(rootDir, driver.pluginName, specName(spec));
  const args = [driverOptions(spec), path, `${newSizeBytes}`, `${oldSizeBytes}`];
  const status = await driver.call("expandvolume", args, signal);
  return status?.volumeNewSize ?? newSizeBytes;
}
