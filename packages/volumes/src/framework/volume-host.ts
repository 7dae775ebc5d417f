/** What a volume plugin is given of its surroundings. Source: docs/behaviour/volume-plugins.md 3. */
import type {
  CSIDriver,
  CSINode,
  EventRecorder,
  KubeClient,
  Stored,
  VolumeAttachment,
} from "@longshore/kube";
import type { Host, RuntimeEnv } from "@longshore/runtime";
import type { PodSources } from "./pod-sources.ts";
import type { PodTokens } from "./pod-tokens.ts";

/** Common to all hosts. */
export interface VolumeHost extends RuntimeEnv {
  readonly kube: KubeClient;
  /** Reads CSIDriver objects; undefined when there is none. Rejects while the cache is not filled. */
  csiDriver(name: string, signal: AbortSignal): Promise<Stored<CSIDriver> | undefined>;
  /** Set on a node's host. */
  readonly kubelet?: KubeletVolumeHost;
  /** Set on the attach/detach controller's host. */
  readonly attachDetach?: AttachDetachVolumeHost;
}

/** The node's side. */
export interface KubeletVolumeHost {
  readonly nodeName: string;
  /** The kubelet root directory, e.g. `/var/lib/kubelet`. */
  readonly rootDir: string;
  /** Where the providers' names of devices are; default `/dev`. */
  readonly deviceDir?: string;
  readonly host: Host;
  /** What volumes are made from besides disks; set while the node agent runs. */
  readonly sources?: PodSources;
  /** Left out: drivers that ask for tokens are not served. */
  readonly tokens?: PodTokens;
  /** Where plugins say what a user is to know of a pod's volume; left out: nowhere. */
  readonly events?: Pick<EventRecorder, "event">;
  /** Blocks NodeReady with this reason while not undefined. */
  setKubeletError(reason: string | undefined): void;
}

/** The controller's side: its caches. */
export interface AttachDetachVolumeHost {
  csiNode(name: string): Stored<CSINode> | undefined;
  volumeAttachment(name: string): Stored<VolumeAttachment> | undefined;
}

/** Path layout below the kubelet root. Source: docs/behaviour/volume-plugins.md 3, table "Path layout". */
export const kubeletPaths = {
  pluginDir: (root: string, pluginName: string) => `${root}/plugins/${pluginName}`,
  /** Below it lie the global mounts of an in-tree plugin. */
  pluginMountsDir: (root: string, pluginName: string) => `${root}/plugins/${pluginName}/mounts`,
  podDir: (root: string, podUID: string) => `${root}/pods/${podUID}`,
  podVolumesDir: (root: string, podUID: string) => `${root}/pods/${podUID}/volumes`,
  podVolumeDir: (root: string, podUID: string, pluginName: string, volumeName: string) =>
    `${root}/pods/${podUID}/volumes/${escapeQualifiedName(pluginName)}/${volumeName}`,
  /** The directory of a plugin's block volumes. */
  pluginDevicesDir: (root: string, pluginName: string) => `${root}/plugins/${pluginName}/volumeDevices`,
  podDevicesDir: (root: string, podUID: string) => `${root}/pods/${podUID}/volumeDevices`,
  /** The directory of a pod's devices of one plugin; in it each volume has a link of its name. */
  podDeviceDir: (root: string, podUID: string, pluginName: string) =>
    `${root}/pods/${podUID}/volumeDevices/${escapeQualifiedName(pluginName)}`,
  podSubPathsDir: (root: string, podUID: string, volumeName: string) =>
    `${root}/pods/${podUID}/volume-subpaths/${volumeName}`,
  registrationDir: (root: string) => `${root}/plugins_registry`,
  csiSocket: (root: string, directory: string) => `${root}/plugins/${directory}/csi.sock`,
} as const;

/** `kubernetes.io/csi` → `kubernetes.io~csi`, the form that fits into one path element. */
export function escapeQualifiedName(name: string): string {
  return name.replaceAll("/", "~");
}

/** The reverse of {@link escapeQualifiedName}. */
export function unescapeQualifiedName(name: string): string {
  return name.replaceAll("~", "/");
}
