/**
 * The node's half of the CSI plugin: mounters, device mounters and reconstruction. `csi-plugin.ts`
 * joins it with the controller's half. Source: docs/behaviour/csi-plugin.md 8, 9, 12, 13, 15.
 */
import type { CsiConnector } from "@longshore/csi";
import { invariant } from "@longshore/runtime";
import type { PluginNodeHalf, PluginNodeHalfOptions } from "../../framework/plugin-node-half.ts";
import type { BlockVolumePlugin, VolumePluginWithStats } from "../../framework/volume-plugin.ts";
import { specOfVolume, type VolumeSpec } from "../../framework/volume-spec.ts";
import { csiBlockMapper } from "./csi-block-mapper.ts";
import { blockDataDirectory } from "./csi-block-paths.ts";
import { csiBlockUnmapper } from "./csi-block-unmapper.ts";
import { csiDeviceMounter, csiDeviceUnmounter } from "./csi-device-mounter.ts";
import { csiMounter, csiUnmounter } from "./csi-mounter.ts";
import { type CsiNodeContext, csiDriverPolicy, csiVolumeOf } from "./csi-node-context.ts";
import { csiNodeExpand } from "./csi-node-expand.ts";
import { csiNodeStats } from "./csi-node-stats.ts";
import { createRegisteredCsiDrivers, type HasCsiDrivers } from "./registered-csi-drivers.ts";
import { readVolData, type VolData, VolDataError } from "./vol-data.ts";
import { waitForVolumeAttachment } from "./wait-for-volume-attachment.ts";

/** What the node's half is built from. */
export interface CsiNodeHalfOptions extends PluginNodeHalfOptions {
  readonly connector: CsiConnector;
}

type BlockHalf = Pick<
  BlockVolumePlugin,
  "newBlockVolumeMapper" | "newBlockVolumeUnmapper" | "constructBlockVolumeSpec"
>;

/** The node's half. The agent's registration handler fills `csiDrivers`. */
export interface CsiNodeHalf extends PluginNodeHalf, BlockHalf, HasCsiDrivers {
  /** As `VolumePluginWithStats.getVolumeStats`. */
  getVolumeStats: VolumePluginWithStats["getVolumeStats"];
  /** Waits until the VolumeAttachment says attached; returns its name. */
  waitForAttach(spec: VolumeSpec, devicePath: string, signal: AbortSignal): Promise<string>;
}

/** Builds the node's half. */
export function createCsiNodeHalf(options: CsiNodeHalfOptions): CsiNodeHalf {
  const csiDrivers = createRegisteredCsiDrivers();
  const context = (): CsiNodeContext => {
    const volumeHost = options.host();
    const { kubelet } = volumeHost;
    invariant(kubelet !== undefined, "the CSI plugin mounts only on a node's host");
    return { volumeHost, kubelet, connector: options.connector, drivers: csiDrivers };
  };
  return {
    csiDrivers,
    newMounter: async (spec, pod) => csiMounter(context(), spec, pod),
    newUnmounter: (volumeName, podUID) => csiUnmounter(context(), volumeName, podUID),
    newDeviceMounter: () => csiDeviceMounter(context()),
    newDeviceUnmounter: () => csiDeviceUnmounter(context()),
    nodeExpand: (expand, signal) => csiNodeExpand(context(), expand, signal),
    getVolumeStats: (spec, pod, where, signal) => csiNodeStats(context(), { spec, pod }, where, signal),
    async constructVolumeSpec(volumeName, mountPath) {
      const data = await readVolData(context().kubelet.host, mountPath);
      if (data === undefined) throw new VolDataError(`${mountPath} has no vol_data.json`);
      return specOfVolData(data, volumeName);
    },
    newBlockVolumeMapper: async (spec, pod) => csiBlockMapper(context(), spec, pod),
    newBlockVolumeUnmapper: async (volumeName, podUID) => csiBlockUnmapper(context(), volumeName, podUID),
    async constructBlockVolumeSpec(_podUID, volumeName) {
      const { kubelet } = context();
      const directory = blockDataDirectory(kubelet.rootDir, volumeName);
      const data = await readVolData(kubelet.host, directory);
      if (data === undefined) throw new VolDataError(`${directory} has no vol_data.json`);
      return blockSpecOfVolData(data, volumeName);
    },
    async waitForAttach(spec, _devicePath, signal) {
      const { source } = csiVolumeOf(spec);
      const policy = await csiDriverPolicy(context(), source.driver, signal);
      return policy.attachRequired ? waitForVolumeAttachment(context(), source, signal) : "";
    },
  };
}

/** A spec that is good for unmounting only: no access modes, secrets or attributes are known. */
export function specOfVolData(data: VolData, volumeName: string): VolumeSpec {
  return knownSpec(data, data.specVolID ?? volumeName, "Filesystem");
}

/** The same of a volume that pods have as a device; the name is that of its directory. */
export function blockSpecOfVolData(data: VolData, volumeName: string): VolumeSpec {
  return knownSpec(data, volumeName, "Block");
}

function knownSpec(data: VolData, name: string, volumeMode: "Filesystem" | "Block"): VolumeSpec {
  if (data.volumeLifecycleMode === "Ephemeral") {
    return specOfVolume({ name, csi: { driver: data.driverName } });
  }
  return {
    persistentVolume: {
      metadata: { name },
      spec: { csi: { driver: data.driverName, volumeHandle: data.volumeHandle }, volumeMode },
    },
    readOnly: false,
    inlineVolumeSpecForCsiMigration: false,
  };
}
