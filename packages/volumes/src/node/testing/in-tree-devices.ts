/** An in-tree plugin with block volumes, as those that have no more than the attached device. */
import type { Host } from "@longshore/runtime";
import { kubeletPaths } from "../../framework/volume-host.ts";
import type { BlockVolume, BlockVolumePlugin } from "../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import { awsEbsPlugin } from "../../plugins/aws-ebs/aws-ebs-plugin.ts";

/** The EBS plugin, with devices on the host. */
export function inTreeDevices(host: Host, rootDir: string): BlockVolumePlugin {
  const plugin = awsEbsPlugin();
  const { pluginName } = plugin;
  const devices = kubeletPaths.pluginDevicesDir(rootDir, pluginName);
  const sourceOf = (spec: VolumeSpec) => spec.persistentVolume?.spec?.awsElasticBlockStore;
  const paths = (name: string, podUID: string): BlockVolume => ({
    getGlobalMapPath: (spec) => `${devices}/${sourceOf(spec)?.volumeID.split("/").at(-1)}`,
    getPodDeviceMapPath: () => ({ directory: kubeletPaths.podDeviceDir(rootDir, podUID, pluginName), name }),
  });
  return {
    ...plugin,
    newBlockVolumeMapper: async (spec, pod) => ({
      ...paths(specName(spec), pod.metadata?.uid ?? ""),
      readOnly: spec.readOnly || sourceOf(spec)?.readOnly === true,
    }),
    newBlockVolumeUnmapper: async (volumeName, podUID) => paths(volumeName, podUID),
    async constructBlockVolumeSpec(_podUID, volumeName, mapPath) {
      const id = (await host.readLink(mapPath))?.split("/").at(-2);
      const awsElasticBlockStore = { volumeID: `aws://us-east-1a/${id}` };
      return {
        persistentVolume: {
          metadata: { name: volumeName },
          spec: { awsElasticBlockStore, volumeMode: "Block" },
        },
        readOnly: false,
        inlineVolumeSpecForCsiMigration: false,
      };
    },
  };
}
