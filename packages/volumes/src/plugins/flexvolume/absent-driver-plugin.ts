/**
 * The plugin of a driver that is not there, or does not work, while an earlier agent's volumes of it are mounted. It holds them:
 * they count as in use, so that no controller detaches them, and are unmounted once the driver works again.
 * Source: docs/behaviour/flexvolume.md 8.
 */
import { kubeletPaths } from "../../framework/volume-host.ts";
import {
  type AttachableVolumePlugin,
  isAttachable,
  type VolumePlugin,
} from "../../framework/volume-plugin.ts";
import { specName } from "../../framework/volume-spec.ts";
import { FlexVolumeError } from "./driver-options.ts";
import { deviceMountPath } from "./flexvolume-names.ts";
import { flexVolumeSpecOf } from "./flexvolume-node-half.ts";

/** The plugin. @param find looks the working plugin up by its name; throws while there is none */
export function absentDriverPlugin(
  rootDir: string,
  pluginName: string,
  find: (pluginName: string) => VolumePlugin,
): AttachableVolumePlugin {
  const present = (): AttachableVolumePlugin => {
    const plugin = find(pluginName);
    if (isAttachable(plugin)) return plugin;
    throw new FlexVolumeError(
      `Flexvolume driver ${pluginName} has volumes attached and says now that it does not attach: correct it`,
    );
  };
  return {
    pluginName,
    init: async () => {},
    getVolumeName: specName,
    // New volumes are for the driver itself.
    canSupport: () => false,
    supportsMountOption: () => false,
    canAttach: async () => true,
    canDeviceMount: async () => true,
    constructVolumeSpec: async (volumeName) => flexVolumeSpecOf(pluginName, volumeName),
    newMounter: async (spec, pod) => present().newMounter(spec, pod),
    newUnmounter: async (volumeName, podUID) => ({
      getPath: () => kubeletPaths.podVolumeDir(rootDir, podUID, pluginName, volumeName),
      tearDown: async (signal) => (await present().newUnmounter(volumeName, podUID)).tearDown(signal),
    }),
    newDeviceMounter: () => ({
      getDeviceMountPath: (spec) => deviceMountPath(rootDir, pluginName, specName(spec)),
      mountDevice: async (...request) =>
        present()
          .newDeviceMounter()
          .mountDevice(...request),
    }),
    newDeviceUnmounter: () => ({
      unmountDevice: async (path, signal) => present().newDeviceUnmounter().unmountDevice(path, signal),
    }),
    newAttacher: () => present().newAttacher(),
  };
}
