/**
 * Volumes that are empty when their pod begins and go with it. Source: docs/behaviour/pod-volumes.md 2.
 *
 * Invariant: what a pod has written stays until the pod is gone, through restarts of its containers and of the node agent.
 */
import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import { makeVolumeDirectory, podDirectoryPlugin } from "../pod-files/pod-directory-plugin.ts";

/** Containers of any user write to it. Source: upstream pkg/volume/emptydir, perm. */
const directoryMode = 0o777;

/** The plugin `kubernetes.io/empty-dir`. */
export function emptyDirPlugin(): VolumePlugin {
  return podDirectoryPlugin({
    pluginName: "kubernetes.io/empty-dir",
    source: "emptyDir",
    readOnly: false,
    async setUp(env, { path }, { fsGroup }) {
      await makeVolumeDirectory(env, path, directoryMode);
      if (fsGroup !== undefined) await env.kubelet.host.chownTree(path, fsGroup);
    },
  });
}
