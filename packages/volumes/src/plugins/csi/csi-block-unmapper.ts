/**
 * Unpublishing and unstaging block volumes, from `vol_data.json` alone. Source: docs/behaviour/csi-plugin.md 10.
 *
 * Invariant: `vol_data.json` goes last. While it is there, the volume may be staged.
 */
import { resources } from "@longshore/kube";
import { HostError } from "@longshore/runtime";
import type { KubeletVolumeHost } from "../../framework/volume-host.ts";
import type { BlockVolumeUnmapper } from "../../framework/volume-plugin.ts";
import {
  blockDataDirectory,
  blockMapDirectory,
  blockPublishDirectory,
  blockPublishPath,
  blockStagingPath,
  blockVolumeDirectory,
  blockVolumePaths,
} from "./csi-block-paths.ts";
import { stagesVolumes, withDriver } from "./csi-client.ts";
import { type CsiNodeContext, CsiSpecError } from "./csi-node-context.ts";
import { readVolData, StillMountedError, volDataFileName } from "./vol-data.ts";

/** An unmapper of the volume; for the device alone the pod's UID does not matter. */
export function csiBlockUnmapper(
  context: CsiNodeContext,
  volumeName: string,
  podUID: string,
): BlockVolumeUnmapper {
  return {
    ...blockVolumePaths(context.kubelet.rootDir, volumeName, podUID),
    unmapPodDevice: (signal) => unpublish(context, volumeName, podUID, signal),
    tearDownDevice: (_globalMapPath, _devicePath, signal) => unstage(context, volumeName, signal),
  };
}

/** Calls the driver also where nothing is to be seen: a call to publish may still be under way. */
async function unpublish(
  context: CsiNodeContext,
  volumeName: string,
  podUID: string,
  signal: AbortSignal,
): Promise<void> {
  const { host, rootDir } = context.kubelet;
  const path = blockPublishPath(rootDir, volumeName, podUID);
  const { driverName, volumeHandle } = await knownVolume(context, volumeName, signal);
  await withDriver(context, { driver: driverName }, signal, ({ node, options }) =>
    node.nodeUnpublishVolume({ volumeId: volumeHandle, targetPath: path }, options),
  );
  if (await host.isMountPoint(path)) {
    throw new StillMountedError(`${path} is still mapped although the driver unpublished it`);
  }
  await host.removeFile(path);
}

async function unstage(context: CsiNodeContext, volumeName: string, signal: AbortSignal): Promise<void> {
  const { host, rootDir } = context.kubelet;
  // Without the directory an earlier call has come to its end.
  if ((await host.stat(blockVolumeDirectory(rootDir, volumeName))) === undefined) return;
  const [published] = (await host.readDirectory(blockPublishDirectory(rootDir, volumeName))) ?? [];
  if (published !== undefined) {
    throw new StillMountedError(
      `${blockPublishPath(rootDir, volumeName, published)} is still there: the driver must unpublish it first`,
    );
  }
  const stagingPath = blockStagingPath(rootDir, volumeName);
  if ((await host.stat(stagingPath)) !== undefined) {
    const { driverName, volumeHandle } = await knownVolume(context, volumeName, signal);
    await withDriver(context, { driver: driverName }, signal, async (calls) => {
      if (!(await stagesVolumes(calls))) return;
      await calls.node.nodeUnstageVolume(
        { volumeId: volumeHandle, stagingTargetPath: stagingPath },
        calls.options,
      );
    });
  }
  await removeBlockRemains(context.kubelet, volumeName);
}

/**
 * Removes all directories of a volume that is not staged. What is mounted below one of them stays, and fails it.
 * @throws HostError
 */
export async function removeBlockRemains(
  { host, rootDir }: Pick<KubeletVolumeHost, "host" | "rootDir">,
  volumeName: string,
): Promise<void> {
  await host.removeDirectory(blockPublishDirectory(rootDir, volumeName));
  await host.removeTree(blockStagingPath(rootDir, volumeName));
  await host.removeTree(blockMapDirectory(rootDir, volumeName));
  const data = blockDataDirectory(rootDir, volumeName);
  await host.removeFile(`${data}/${volDataFileName}`);
  await host.removeDirectory(data);
  try {
    await host.removeDirectory(blockVolumeDirectory(rootDir, volumeName));
  } catch (error) {
    // What others have put there does no harm: no volume is left that it could belong to.
    if (!(error instanceof HostError && error.code === "ENOTEMPTY")) throw error;
  }
}

/** Which volume it is: from the data file, else from the PersistentVolume. @throws CsiSpecError */
async function knownVolume(
  { kubelet, volumeHost }: CsiNodeContext,
  volumeName: string,
  signal: AbortSignal,
): Promise<{ readonly driverName: string; readonly volumeHandle: string }> {
  const directory = blockDataDirectory(kubelet.rootDir, volumeName);
  const data = await readVolData(kubelet.host, directory).catch(() => undefined);
  if (data !== undefined) return data;
  const pv = await volumeHost.kube.get(resources.persistentVolumes, { name: volumeName }, { signal });
  const source = pv?.spec?.csi;
  if (source == null) {
    throw new CsiSpecError(
      `nothing says which volume ${directory} is of: neither vol_data.json nor PersistentVolume ${volumeName}`,
    );
  }
  return { driverName: source.driver, volumeHandle: source.volumeHandle };
}
