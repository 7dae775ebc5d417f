/**
 * A plugin whose volumes are directories of their pods: they are neither attached nor shared, and go with the pod.
 * Source: docs/behaviour/pod-volumes.md 1.
 *
 * Invariants
 *  - Everything of a volume is below its directory in the pod, so that it can be removed knowing the name alone.
 *  - A volume that could not be filled, but of which something is there, is torn down before it is forgotten.
 */
import type { Pod, Stored, Volume } from "@longshore/kube";
import { type Host, invariant } from "@longshore/runtime";
import { UncertainProgressError } from "../../framework/node-error-kind.ts";
import type { PodSources, SourceReader } from "../../framework/pod-sources.ts";
import { uniqueVolumeName } from "../../framework/unique-volume-name.ts";
import { type KubeletVolumeHost, kubeletPaths, type VolumeHost } from "../../framework/volume-host.ts";
import type { MounterArgs, VolumePlugin, VolumePluginWithStats } from "../../framework/volume-plugin.ts";
import { specName, specOfVolume, type VolumeSpec } from "../../framework/volume-spec.ts";
import { DirectoryStats } from "./directory-stats.ts";

/** What a volume is filled with. */
export interface PodDirectoryEnv {
  readonly volumeHost: VolumeHost;
  readonly kubelet: KubeletVolumeHost;
}

/** One volume of one pod. */
export interface PodDirectory {
  /** The volume's directory: an absolute path. It may not be there yet. */
  readonly path: string;
  readonly pod: Stored<Pod>;
  readonly volume: Volume;
  /** As which volume it reads what it is made from. */
  readonly reader: SourceReader;
}

/** What is special about the plugin. */
export interface PodDirectoryPlugin {
  readonly pluginName: string;
  /** The field of a pod's volume that says it is the plugin's. */
  readonly source: keyof Volume;
  /** Containers cannot write to it. */
  readonly readOnly: boolean;
  /** Makes the directory and fills it; idempotent. */
  setUp(env: PodDirectoryEnv, volume: PodDirectory, args: MounterArgs, signal: AbortSignal): Promise<void>;
  /**
   * Names what the directory holds: as long as it is the same, the files are not counted again. Left out where pods write to
   * the volume.
   */
  readonly contentOf?: (host: Host, path: string) => Promise<string | undefined>;
  /** Whether the content depends on the pod's labels and annotations: it is set up again when they change. */
  readonly followsPod?: (volume: Volume) => boolean;
}

/** The plugin, to be given to `createVolumePluginManager`. */
export function podDirectoryPlugin(own: PodDirectoryPlugin): VolumePlugin {
  let initialised: VolumeHost | undefined;
  const stats = new DirectoryStats();
  const env = (): PodDirectoryEnv => {
    invariant(initialised?.kubelet !== undefined, `${own.pluginName} mounts only on a node's host`);
    return { volumeHost: initialised, kubelet: initialised.kubelet };
  };
  const pathOf = (podUID: string, volumeName: string) =>
    kubeletPaths.podVolumeDir(env().kubelet.rootDir, podUID, own.pluginName, volumeName);
  const plugin: VolumePluginWithStats = {
    pluginName: own.pluginName,
    async init(host) {
      initialised = host;
    },
    getVolumeName: specName,
    canSupport: (spec) => spec.volume?.[own.source] != null,
    supportsMountOption: () => false,
    ...(own.followsPod !== undefined && { requiresRemount: (spec: VolumeSpec) => followsPod(own, spec) }),
    async newMounter(spec, pod) {
      const { volume } = spec;
      invariant(volume !== undefined && isStored(pod), "a pod's own volume has a pod that is stored");
      const path = pathOf(pod.metadata.uid, volume.name);
      const reader = { pod, uniqueName: uniqueVolumeName(plugin, spec, pod.metadata.uid) };
      return {
        getPath: () => path,
        readOnly: own.readOnly,
        supportsSELinux: true,
        setUp: (args, signal) =>
          uncertainIfThere(env().kubelet, path, () =>
            own.setUp(env(), { path, pod, volume, reader }, args, signal),
          ),
      };
    },
    async newUnmounter(volumeName, podUID) {
      const path = pathOf(podUID, volumeName);
      return {
        getPath: () => path,
        async tearDown() {
          const { host } = env().kubelet;
          while (await host.isMountPoint(path)) await host.unmount(path);
          await host.removeTree(path);
          stats.forget(path);
        },
      };
    },
    countsFiles: true,
    async getVolumeStats(_spec, _pod, { path }, signal) {
      const { host } = env().kubelet;
      return stats.of(host, path, await own.contentOf?.(host, path), signal);
    },
    constructVolumeSpec: async (volumeName) => specOfVolume({ name: volumeName, [own.source]: {} }),
  };
  return plugin;
}

function followsPod({ followsPod }: PodDirectoryPlugin, { volume }: VolumeSpec): boolean {
  return volume !== undefined && followsPod?.(volume) === true;
}

/** Makes a volume's directory with this mode; its parents are the node's alone. */
export async function makeVolumeDirectory(
  { kubelet: { host } }: PodDirectoryEnv,
  path: string,
  mode: number,
): Promise<void> {
  await host.makeDirectory(path.slice(0, path.lastIndexOf("/")));
  await host.makeDirectory(path, mode);
}

/** Has the directory in memory, where the host can; once. */
export async function putInMemory(
  { kubelet: { host } }: PodDirectoryEnv,
  path: string,
  options: { readonly mode: number; readonly sizeBytes?: number },
): Promise<void> {
  if (!(await host.isMountPoint(path))) await host.mountMemory(path, options);
}

/** What volumes read from. */
export function sourcesOf({ kubelet }: PodDirectoryEnv): PodSources {
  invariant(kubelet.sources !== undefined, "the host of a node reads sources for volumes");
  return kubelet.sources;
}

/** A failure while something is there leaves it to be torn down. */
async function uncertainIfThere(
  { host }: KubeletVolumeHost,
  path: string,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (cause) {
    if ((await host.stat(path)) === undefined) throw cause;
    throw new UncertainProgressError(`${path} is not as the pod wants it`, { cause });
  }
}

function isStored(pod: Pod): pod is Stored<Pod> {
  return pod.metadata?.uid !== undefined && pod.metadata.name !== undefined;
}
