/** Volumes that pods get as devices: where their mappings are, and which volume a mapping that was found belongs to. */
import type { Pod } from "@longshore/kube";
import { kubeletPaths } from "../../framework/volume-host.ts";
import type { BlockVolume } from "../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";
import { blockSpecNamed, diskSourceOf } from "./disk-description.ts";
import { type DiskNode, kubeletOf } from "./disk-node-half.ts";
import { globalMapPath, volumeNameOfGlobalMap } from "./global-directories.ts";

/** The paths of a block volume in one pod, by the name of the volume's spec. */
export function blockVolume(node: DiskNode, name: string, podUID: string): BlockVolume {
  const { disks } = node;
  const { rootDir } = kubeletOf(node);
  return {
    getGlobalMapPath: (spec) => globalMapPath(rootDir, disks, diskSourceOf(disks, spec).volumeName),
    getPodDeviceMapPath: () => ({
      directory: kubeletPaths.podDeviceDir(rootDir, podUID, disks.pluginName),
      name,
    }),
  };
}

/** The paths of a block volume in one pod. */
export function blockVolumeOf(node: DiskNode, spec: VolumeSpec, pod: Pod): BlockVolume {
  return blockVolume(node, specName(spec), pod.metadata?.uid ?? "");
}

/**
 * A spec that is good for unmapping: the volume is the one whose directory of mappings the link leads into, whether
 * anything is bound there or not.
 *
 * @param mapPath the volume's link in the pod's directory of devices
 */
export async function constructBlockVolumeSpec(
  node: DiskNode,
  podUID: string,
  name: string,
  mapPath: string,
): Promise<VolumeSpec> {
  const { disks } = node;
  const { host, rootDir } = kubeletOf(node);
  const file = await host.readLink(mapPath);
  const ending = `/${podUID}`;
  const volumeName = file?.endsWith(ending)
    ? volumeNameOfGlobalMap(rootDir, disks, file.slice(0, -ending.length))
    : undefined;
  if (volumeName === undefined) {
    throw new InTreeVolumeError(
      `${mapPath}: it leads to ${file ?? "nothing"}, which is no mapping of the ${disks.label} plugin for pod ${podUID}`,
    );
  }
  return blockSpecNamed(disks, name, volumeName);
}
