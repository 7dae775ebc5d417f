/** Growing the file system of an in-tree volume on the node. Source: docs/behaviour/node-agent.md 7.6. */
import type { Host } from "@longshore/runtime";
import { mountOptionsOf } from "../framework/mount-options.ts";
import type { NodeExpandOptions } from "../framework/volume-plugin.ts";
import type { VolumeSpec } from "../framework/volume-spec.ts";
import { growFileSystemOf } from "./grow-file-system.ts";

/** @param sourceOf the file system that the volume's source names
 *  @throws FailedPreconditionError when it can be grown here only unmounted, and is in use */
export async function growInTree(
  host: Host,
  options: NodeExpandOptions,
  sourceOf: (spec: VolumeSpec) => { readonly fsType: string },
): Promise<boolean> {
  const { spec, devicePath, path } = options;
  // What is on a device that pods have as such is theirs; the device has grown with the disk.
  if (spec.persistentVolume?.spec?.volumeMode === "Block") return true;
  await growFileSystemOf(host, options, {
    unmount: () => host.unmount(path),
    async mount() {
      const { fsType } = sourceOf(spec);
      const flags = [...mountOptionsOf(spec.persistentVolume ?? {})];
      await host.mountDevice(devicePath, path, { fsType: fsType === "" ? "ext4" : fsType, flags });
    },
  });
  return true;
}
