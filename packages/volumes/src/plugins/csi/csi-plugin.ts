/**
 * The CSI volume plugin `kubernetes.io/csi`: what the controller asks of it, and the node's half, which mounts
 * (csi-node-half.ts). It does not attach: the attach/detach controller writes VolumeAttachments. It neither provisions,
 * deletes nor expands: sidecars do. Source: docs/behaviour/csi-plugin.md.
 */
import type { CsiConnector } from "@longshore/csi";
import { invariant } from "@longshore/runtime";
import { csiVolumeName } from "@longshore/storage";
import type { VolumeHost } from "../../framework/volume-host.ts";
import type {
  AttachableVolumePlugin,
  Attacher,
  BlockVolumePlugin,
  NodeExpandableVolumePlugin,
  VolumePluginWithStats,
} from "../../framework/volume-plugin.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import { CsiVolumeError, csiPluginName, csiSourceOf } from "./csi-names.ts";
import { createCsiNodeHalf } from "./csi-node-half.ts";
import { csiVolumesAreAttached } from "./csi-volumes-are-attached.ts";
import type { HasCsiDrivers } from "./registered-csi-drivers.ts";

/** What the CSI plugin is made from. */
export interface CsiPluginOptions {
  /** Opens connections to drivers; left out in a controller, which has none. */
  readonly connector?: CsiConnector;
}

/** The plugin, to be given to `createVolumePluginManager`. */
export function csiPlugin(
  options: CsiPluginOptions = {},
): AttachableVolumePlugin &
  BlockVolumePlugin &
  NodeExpandableVolumePlugin &
  VolumePluginWithStats &
  HasCsiDrivers {
  let initialised: VolumeHost | undefined;
  const host = (): VolumeHost => {
    invariant(initialised !== undefined, "a volume plugin is initialised before it is used");
    return initialised;
  };
  const never = new AbortController().signal;

  /** A missing CSIDriver object means that attach is required. */
  const skipAttach = async (driver: string, signal: AbortSignal): Promise<boolean> =>
    (await host().csiDriver(driver, signal))?.spec.attachRequired === false;

  const nodeHalf = createCsiNodeHalf({ host, connector: options.connector ?? noConnector });

  return {
    pluginName: csiPluginName,
    csiDrivers: nodeHalf.csiDrivers,
    async init(given) {
      initialised = given;
    },
    getVolumeName(spec) {
      const { driver, volumeHandle } = csiSourceOf(spec);
      return csiVolumeName(driver, volumeHandle);
    },
    canSupport: (spec) => spec.persistentVolume?.spec?.csi != null || spec.volume?.csi != null,
    supportsMountOption: () => true,
    newMounter: (spec, pod) => nodeHalf.newMounter(spec, pod),
    newUnmounter: (volumeName, podUID) => nodeHalf.newUnmounter(volumeName, podUID),
    constructVolumeSpec: (volumeName, mountPath) => nodeHalf.constructVolumeSpec(volumeName, mountPath),
    newBlockVolumeMapper: (spec, pod) => nodeHalf.newBlockVolumeMapper(spec, pod),
    newBlockVolumeUnmapper: (volumeName, podUID) => nodeHalf.newBlockVolumeUnmapper(volumeName, podUID),
    constructBlockVolumeSpec: (podUID, volumeName, mapPath) =>
      nodeHalf.constructBlockVolumeSpec(podUID, volumeName, mapPath),
    newDeviceMounter: () => nodeHalf.newDeviceMounter(),
    newDeviceUnmounter: () => nodeHalf.newDeviceUnmounter(),
    nodeExpand: (expand, signal) => nodeHalf.nodeExpand(expand, signal),
    getVolumeStats: (spec, pod, where, signal) => nodeHalf.getVolumeStats(spec, pod, where, signal),
    canDeviceMount: async (spec) => !isEphemeral(spec),
    canAttach: async (spec) => !isEphemeral(spec) && !(await skipAttach(csiSourceOf(spec).driver, never)),
    newAttacher: (): Attacher => ({
      getDeviceMountPath: (spec) => nodeHalf.newDeviceMounter().getDeviceMountPath(spec),
      mountDevice: (spec, devicePath, path, signal, args) =>
        nodeHalf.newDeviceMounter().mountDevice(spec, devicePath, path, signal, args),
      volumesAreAttached: (specs, nodeName, signal) =>
        csiVolumesAreAttached({ host: host(), skipAttach }, specs, nodeName, signal),
      waitForAttach: (spec, devicePath, signal) => nodeHalf.waitForAttach(spec, devicePath, signal),
    }),
  };
}

/** An inline `csi` source lives and dies with its pod; a migrated inline volume is a PV and persistent. */
function isEphemeral(spec: VolumeSpec): boolean {
  return spec.volume?.csi != null;
}

/** A controller has no drivers to talk to. */
const noConnector: CsiConnector = {
  connect: () => {
    throw new CsiVolumeError("this process has no connection to CSI drivers: mounting is the node agent's");
  },
  connectRegistration: () => {
    throw new CsiVolumeError("this process registers no CSI drivers: registration is the node agent's");
  },
};
