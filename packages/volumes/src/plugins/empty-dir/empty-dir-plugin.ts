/**
 * Volumes that are empty when their pod begins and go with it. Source: docs/behaviour/pod-volumes.md 2.
 *
 * Invariant: what a pod has written stays until the pod is gone, through restarts of its containers and of the node agent.
 */
import { parseQuantity, type Volume } from "@longshore/kube";
import { setVolumeOwnership } from "../../framework/set-volume-ownership.ts";
import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import {
  makeVolumeDirectory,
  type PodDirectoryEnv,
  podDirectoryPlugin,
  putInMemory,
} from "../pod-files/pod-directory-plugin.ts";

/** The medium of an emptyDir is none that a node has. */
export class EmptyDirError extends Error {
  override readonly name = "EmptyDirError";
}

/** Containers of any user write to it. Source: upstream pkg/volume/emptydir, perm. */
const directoryMode = 0o777;

/** The plugin `kubernetes.io/empty-dir`. */
export function emptyDirPlugin(): VolumePlugin {
  return podDirectoryPlugin({
    pluginName: "kubernetes.io/empty-dir",
    source: "emptyDir",
    readOnly: false,
    async setUp(env, { path, volume }, { fsGroup }) {
      const { medium = "" } = volume.emptyDir ?? {};
      if (medium !== "" && medium !== "Memory") {
        throw new EmptyDirError(
          `emptyDir "${volume.name}": medium "${medium}" is not supported: use "" or "Memory"`,
        );
      }
      await makeVolumeDirectory(env, path, directoryMode);
      if (medium === "Memory") await putVolumeInMemory(env, path, volume);
      if (fsGroup !== undefined) await setVolumeOwnership(env.volumeHost, path, fsGroup);
    },
  });
}

/** A `sizeLimit` is what the file system holds; without one the machine decides. */
function putVolumeInMemory(env: PodDirectoryEnv, path: string, { emptyDir }: Volume): Promise<void> {
  const { sizeLimit = "0" } = emptyDir ?? {};
  const limit = parseQuantity(sizeLimit);
  const size = limit.isZero() ? {} : { sizeBytes: Number(limit.value()) };
  return putInMemory(env, path, { mode: directoryMode, ...size });
}
