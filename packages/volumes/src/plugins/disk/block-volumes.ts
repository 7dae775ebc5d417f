/** Volumes that pods get as devices: where their mappings are, and which volume a mapping that was found belongs to. */
import type { Pod } from "@longshore/kube";
import type { Host } from "@longshore/runtime";
import { escapeQualifiedName, kubeletPaths } from "../../framework/volume-host.ts";
import type { BlockVolume } from "../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import { resolvedLink } from "./device-mounts.ts";
import { diskSourceOf, specNamed } from "./disk-description.ts";
import { type DiskNode, kubeletOf } from "./disk-node-half.ts";
import { globalMapPath, globalMapsDirectory, volumeNameOfGlobalMap } from "./global-directories.ts";
import { InTreeVolumeError } from "./volume-source.ts";

/** No volume's name has more parts; a walk that is deeper follows something else. */
const maximumDepth = 12;

/** The paths of a block volume in one pod, by the name of the volume's spec. */
export function blockVolume(node: DiskNode, name: string, podUID: string): BlockVolume {
  const { disks } = node;
  const { rootDir } = kubeletOf(node);
  const pluginDirectory = escapeQualifiedName(disks.pluginName);
  return {
    getGlobalMapPath: (spec) => globalMapPath(rootDir, disks, diskSourceOf(disks, spec).volumeName),
    getPodDeviceMapPath: () => ({
      directory: `${kubeletPaths.podDir(rootDir, podUID)}/volumeDevices/${pluginDirectory}`,
      name,
    }),
  };
}

/** The paths of a block volume in one pod. */
export function blockVolumeOf(node: DiskNode, spec: VolumeSpec, pod: Pod): BlockVolume {
  return blockVolume(node, specName(spec), pod.metadata?.uid ?? "");
}

/**
 * A spec that is good for unmapping: the volume is the one with a mapping for the pod that leads to the same device.
 *
 * @param mapPath the volume's entry in the pod's directory of devices, or that directory
 */
export async function constructBlockVolumeSpec(
  node: DiskNode,
  podUID: string,
  name: string,
  mapPath: string,
): Promise<VolumeSpec> {
  const { disks } = node;
  const { host, rootDir } = kubeletOf(node);
  const isDirectory = (await host.stat(mapPath))?.kind === "directory";
  const device = await deviceAt(host, isDirectory ? `${mapPath}/${name}` : mapPath);
  if (device !== undefined) {
    for (const directory of await mapsOfPod(host, globalMapsDirectory(rootDir, disks), podUID)) {
      const mapped = await deviceAt(host, `${directory}/${podUID}`);
      const volumeName = volumeNameOfGlobalMap(rootDir, disks, directory);
      if (mapped === device && volumeName !== undefined) return specNamed(disks, name, volumeName);
    }
  }
  throw new InTreeVolumeError(
    `${mapPath}: no mapping of the ${disks.label} plugin for pod ${podUID} has its device`,
  );
}

/** The directories with a mapping for the pod. */
async function mapsOfPod(host: Host, directory: string, podUID: string, depth = 0): Promise<string[]> {
  const found: string[] = [];
  if (depth > maximumDepth) return found;
  for (const name of (await host.readDirectory(directory)) ?? []) {
    const path = `${directory}/${name}`;
    if ((await host.stat(path))?.kind === "directory") {
      found.push(...(await mapsOfPod(host, path, podUID, depth + 1)));
    } else if (name === podUID) found.push(directory);
  }
  return found;
}

/** What distinguishes devices: the device's identity, or where a link to a device leads that has gone. */
async function deviceAt(host: Host, path: string): Promise<string | undefined> {
  if ((await host.stat(path)) === undefined) return undefined;
  const place = await resolvedLink(host, path);
  return (await host.stat(place))?.inode ?? place;
}
