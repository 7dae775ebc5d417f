/** Where CSI volumes that pods get as devices lie. Source: docs/behaviour/csi-plugin.md 10. */
import { escapeQualifiedName, kubeletPaths } from "../../framework/volume-host.ts";
import type { BlockVolume } from "../../framework/volume-plugin.ts";
import { specName } from "../../framework/volume-spec.ts";
import { csiPluginName } from "./csi-names.ts";
import { CsiSpecError } from "./csi-node-context.ts";

/** Names in the directory of devices that are not those of volumes. */
const reserved: ReadonlySet<string> = new Set(["staging", "publish"]);

/** The directory of all devices of the plugin. */
export const blockDevicesDirectory = (root: string) => kubeletPaths.pluginDevicesDir(root, csiPluginName);

/** Whether an entry of the directory of devices belongs to a volume. */
export const isBlockVolumeName = (name: string) => !reserved.has(name);

/** Everything of one volume but what is staged and published. @throws CsiSpecError for a name that others take */
export function blockVolumeDirectory(root: string, volumeName: string): string {
  if (volumeName === "" || !isBlockVolumeName(volumeName)) {
    throw new CsiSpecError(
      `a PersistentVolume of volumeMode Block cannot be named "${volumeName}": its directory is taken; make it under another name`,
    );
  }
  return `${blockDevicesDirectory(root)}/${escapeQualifiedName(volumeName)}`;
}

/** The directory of the volume's `vol_data.json`. */
export const blockDataDirectory = (root: string, volumeName: string) =>
  `${blockVolumeDirectory(root, volumeName)}/data`;

/** The directory of the volume's mappings. */
export const blockMapDirectory = (root: string, volumeName: string) =>
  `${blockVolumeDirectory(root, volumeName)}/dev`;

/** Where the driver stages the volume. */
export const blockStagingPath = (root: string, volumeName: string) =>
  `${blockDevicesDirectory(root)}/staging/${volumeName}`;

/** The directory in which the driver publishes the volume for pods. */
export const blockPublishDirectory = (root: string, volumeName: string) =>
  `${blockDevicesDirectory(root)}/publish/${volumeName}`;

/** Where the driver publishes the volume for the pod. */
export const blockPublishPath = (root: string, volumeName: string, podUID: string) =>
  `${blockPublishDirectory(root, volumeName)}/${podUID}`;

/** The same for the pod that has this link in its directory of devices. */
export function blockPublishPathOfLink(root: string, volumeName: string, link: string): string {
  const [podUID = ""] = link.slice(`${root}/pods/`.length).split("/");
  return blockPublishPath(root, volumeName, podUID);
}

/** The paths that the volume manager works with. */
export function blockVolumePaths(root: string, volumeName: string, podUID: string): BlockVolume {
  return {
    getGlobalMapPath: (spec) => blockMapDirectory(root, specName(spec)),
    getPodDeviceMapPath: () => ({
      directory: kubeletPaths.podDeviceDir(root, podUID, csiPluginName),
      name: escapeQualifiedName(volumeName),
    }),
  };
}
