/**
 * Volumes that are a path of the node, of pods and of PersistentVolumes. Source: docs/behaviour/pod-volumes.md 7.
 *
 * Invariant: nothing at the path is ever removed. An empty directory in the pod is the record that the pod has the volume.
 */
import { invariant } from "@longshore/runtime";
import { type KubeletVolumeHost, kubeletPaths, type VolumeHost } from "../../framework/volume-host.ts";
import type { VolumePlugin } from "../../framework/volume-plugin.ts";
import { specName, specOfVolume, type VolumeSpec } from "../../framework/volume-spec.ts";
import { prepareHostPath } from "./check-host-path.ts";

const pluginName = "kubernetes.io/host-path";

/** The plugin `kubernetes.io/host-path`. */
export function hostPathPlugin(): VolumePlugin {
  let initialised: VolumeHost | undefined;
  const kubelet = (): KubeletVolumeHost => {
    invariant(initialised?.kubelet !== undefined, `${pluginName} mounts only on a node's host`);
    return initialised.kubelet;
  };
  const recordOf = (podUID: string, volumeName: string) =>
    kubeletPaths.podVolumeDir(kubelet().rootDir, podUID, pluginName, volumeName);
  return {
    pluginName,
    async init(host) {
      initialised = host;
    },
    getVolumeName: (spec) => sourceOf(spec).path,
    canSupport: ({ volume, persistentVolume }) =>
      volume?.hostPath != null || persistentVolume?.spec?.hostPath != null,
    supportsMountOption: () => false,
    async newMounter(spec, pod) {
      const { path, type = "" } = sourceOf(spec);
      const { host } = kubelet();
      const record = recordOf(pod.metadata?.uid ?? "", specName(spec));
      return {
        getPath: () => path,
        readOnly: spec.readOnly,
        async setUp() {
          await prepareHostPath(host, path, type);
          await host.makeDirectory(record);
        },
      };
    },
    async newUnmounter(volumeName, podUID) {
      const record = recordOf(podUID, volumeName);
      return { getPath: () => record, tearDown: () => kubelet().host.removeDirectory(record) };
    },
    constructVolumeSpec: async (volumeName) => specOfVolume({ name: volumeName, hostPath: { path: "" } }),
  };
}

function sourceOf({ volume, persistentVolume }: VolumeSpec): {
  readonly path: string;
  readonly type?: string;
} {
  const source = volume?.hostPath ?? persistentVolume?.spec?.hostPath;
  invariant(source != null, "a hostPath volume has a path");
  return source;
}
