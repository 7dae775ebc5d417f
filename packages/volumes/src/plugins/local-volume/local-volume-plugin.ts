/**
 * PersistentVolumes that are a directory or a block device of one node. Source: docs/behaviour/pod-volumes.md 8.
 *
 * Invariants
 *  - The directory has to be there: none is made, so that no pod writes to the disk below a mount that is missing.
 *  - A device is mounted once for all pods of the node; one that holds a file system is never formatted.
 *  - Nothing in it is ever removed: a pod's own directory is removed only when it is empty and not a mount point.
 *  - The group of the files changes with the first pod only; it is in use from then on.
 */
import { involvedObject, type Pod, resources } from "@longshore/kube";
import { type Host, invariant } from "@longshore/runtime";
import { mountOptionsOf } from "../../framework/mount-options.ts";
import { UncertainProgressError } from "../../framework/node-error-kind.ts";
import { setVolumeOwnership } from "../../framework/set-volume-ownership.ts";
import { statAtEnd } from "../../framework/stat-at-end.ts";
import { escapeQualifiedName, kubeletPaths, type VolumeHost } from "../../framework/volume-host.ts";
import type {
  BlockVolume,
  BlockVolumePlugin,
  DeviceMounter,
  GlobalMount,
  GlobalMountsVolumePlugin,
  MounterArgs,
} from "../../framework/volume-plugin.ts";
import { specName, specOfPersistentVolume, type VolumeSpec } from "../../framework/volume-spec.ts";
import {
  bindForPod,
  defaultFsType,
  mountFormatted,
  resolvedLink,
  unmountAndRemove,
} from "../device-mounts.ts";

/** The path of a local volume is not usable; names PersistentVolume, path and node. */
export class LocalVolumeError extends Error {
  override readonly name = "LocalVolumeError";
}

const pluginName = "kubernetes.io/local-volume";

interface Node {
  readonly host: Host;
  readonly volumeHost: VolumeHost;
  readonly rootDir: string;
  readonly nodeName: string;
}

/** The plugin `kubernetes.io/local-volume`. */
export function localVolumePlugin(): BlockVolumePlugin & GlobalMountsVolumePlugin {
  let initialised: VolumeHost | undefined;
  const node = (): Node => {
    invariant(initialised?.kubelet !== undefined, `${pluginName} mounts only on a node's host`);
    const { host, rootDir, nodeName } = initialised.kubelet;
    return { host, rootDir, nodeName, volumeHost: initialised };
  };
  const directoryOf = (podUID: string, volumeName: string) =>
    kubeletPaths.podVolumeDir(node().rootDir, podUID, pluginName, volumeName);
  const constructSpec = (name: string, volumeMode: string) =>
    specOfPersistentVolume({ metadata: { name }, spec: { local: { path: "" }, volumeMode } }, false);
  return {
    pluginName,
    async init(host) {
      initialised = host;
    },
    getVolumeName: specName,
    canSupport: ({ persistentVolume }) => persistentVolume?.spec?.local != null,
    supportsMountOption: () => true,
    supportsMetrics: () => true,
    // What is at the path is looked at with each mount.
    canDeviceMount: async () => true,
    newDeviceMounter: () => deviceMounter(node()),
    newDeviceUnmounter: () => ({ unmountDevice: (path) => unmountAndRemove(node().host, path) }),
    async listGlobalMounts(): Promise<readonly GlobalMount[]> {
      const { host, rootDir } = node();
      const names = (await host.readDirectory(kubeletPaths.pluginMountsDir(rootDir, pluginName))) ?? [];
      return names.map((name) => ({
        spec: constructSpec(name, "Filesystem"),
        deviceMountPath: globalMountPath(rootDir, name),
      }));
    },
    async newMounter(spec, pod) {
      const target = directoryOf(pod.metadata?.uid ?? "", specName(spec));
      return {
        getPath: () => target,
        readOnly: spec.readOnly,
        supportsSELinux: true,
        setUp: (args) => setUpForPod(node(), { spec, pod, target }, args),
      };
    },
    async newUnmounter(volumeName, podUID) {
      const target = directoryOf(podUID, volumeName);
      return { getPath: () => target, tearDown: () => removeBind(node().host, target) };
    },
    constructVolumeSpec: async (volumeName) => constructSpec(volumeName, "Filesystem"),
    async newBlockVolumeMapper(spec, pod) {
      return {
        ...blockPaths(node().rootDir, pod.metadata?.uid ?? "", specName(spec)),
        readOnly: spec.readOnly,
        isPlainDevice: true,
        mapPodDevice: () => deviceOf(node(), spec),
      };
    },
    newBlockVolumeUnmapper: async (volumeName, podUID) => blockPaths(node().rootDir, podUID, volumeName),
    constructBlockVolumeSpec: async (_podUID, volumeName) => constructSpec(volumeName, "Block"),
  };
}

const pathOf = (spec: VolumeSpec): string => spec.persistentVolume?.spec?.local?.path ?? "";

const globalMountPath = (rootDir: string, volumeName: string): string =>
  `${kubeletPaths.pluginMountsDir(rootDir, pluginName)}/${volumeName}`;

function deviceMounter(node: Node): DeviceMounter {
  const { host, rootDir } = node;
  return {
    getDeviceMountPath: (spec) => globalMountPath(rootDir, specName(spec)),
    async mountDevice(spec, _devicePath, target) {
      const volumeName = specName(spec);
      const flags = mountOptionsOf(spec.persistentVolume ?? {});
      if ((await requireKind(node, spec, "directory", "blockDevice")) === "directory") {
        if (flags.length === 0) return;
        throw new LocalVolumeError(
          `PersistentVolume ${volumeName}: mount options ${flags.join(",")} are for a device, and ${pathOf(spec)} is a directory: remove spec.mountOptions`,
        );
      }
      const device = await resolvedLink(host, pathOf(spec));
      const mounted = (await host.listMounts(target)).findLast((mount) => mount.target === target);
      if (mounted !== undefined && mounted.source !== device) {
        throw new LocalVolumeError(
          `PersistentVolume ${volumeName}: ${mounted.source} is still mounted at ${target}, not ${device}: end all pods of this node that use it`,
        );
      }
      const asked = spec.persistentVolume?.spec?.local?.fsType ?? "";
      const fsType = asked === "" ? ((await host.fileSystemOf(device)) ?? defaultFsType) : asked;
      await mountFormatted(host, target, { volumeName, device, fsType, readOnly: spec.readOnly, flags });
    },
  };
}

interface PodMount {
  readonly spec: VolumeSpec;
  readonly pod: Pod;
  readonly target: string;
}

async function setUpForPod(
  node: Node,
  { spec, pod, target }: PodMount,
  { fsGroup, fsGroupChangePolicy }: MounterArgs,
): Promise<void> {
  const { host, rootDir, volumeHost } = node;
  const path = pathOf(spec);
  const volumeName = specName(spec);
  const kind = await requireKind(node, spec, "directory", "blockDevice");
  const inPod = target.slice(target.indexOf("/volumes/"));
  const others = (await host.listMounts(`${rootDir}/pods`)).filter(
    (mount) => mount.target !== target && (mount.source === path || mount.target.endsWith(inPod)),
  );
  if (kind === "blockDevice") {
    const { readOnly } = spec;
    await bindForPod(host, globalMountPath(rootDir, volumeName), target, { volumeName, readOnly });
  } else if (!(await host.isMountPoint(target))) {
    await host.makeDirectory(target);
    await bindOrRemove(host, path, target, spec.readOnly);
  }
  if (fsGroup === undefined || spec.readOnly) return;
  if (others.length > 0) {
    const gid = (await host.stat(target))?.gid;
    if (gid === fsGroup) return;
    const message = `The requested fsGroup is ${fsGroup}, but the volume ${volumeName} has GID ${gid}. The volume may not be shareable.`;
    const subject = involvedObject(resources.pods, pod);
    volumeHost.kubelet?.events?.event(subject, "Warning", "AlreadyMountedVolume", message);
    return;
  }
  const onlyOnRootMismatch = fsGroupChangePolicy === "OnRootMismatch";
  await setVolumeOwnership(volumeHost, target, fsGroup, { onlyOnRootMismatch }).catch((cause: unknown) => {
    throw new UncertainProgressError(`the files of ${path} could not be given to the pod's fsGroup`, {
      cause,
    });
  });
}

async function bindOrRemove(host: Host, path: string, target: string, readOnly: boolean): Promise<void> {
  try {
    await host.bindMount(path, target, { readOnly });
  } catch (error) {
    if (!(await host.isMountPoint(target))) await host.removeDirectory(target);
    throw error;
  }
}

async function removeBind(host: Host, target: string): Promise<void> {
  if (await host.isMountPoint(target)) await host.unmount(target);
  await host.removeDirectory(target);
}

/** The device that the pod is given. @throws LocalVolumeError when there is none */
async function deviceOf(node: Node, spec: VolumeSpec): Promise<string> {
  await requireKind(node, spec, "blockDevice");
  return pathOf(spec);
}

type Kind = "directory" | "blockDevice";

/** @returns what is at the path, one of `kinds` */
async function requireKind({ host, nodeName }: Node, spec: VolumeSpec, ...kinds: Kind[]): Promise<Kind> {
  const path = pathOf(spec);
  const what = `PersistentVolume ${specName(spec)}: spec.local.path "${path}"`;
  if (!path.startsWith("/") || path.split("/").includes("..")) {
    throw new LocalVolumeError(`${what} must be absolute, without ".."`);
  }
  const stat = await statAtEnd(host, path);
  const kind = kinds.find((one) => one === stat?.kind);
  if (kind !== undefined) return kind;
  throw new LocalVolumeError(
    stat === undefined
      ? `${what} does not exist on node ${nodeName}: create it, or mount its disk`
      : `${what} is no ${kinds.map((one) => (one === "directory" ? "directory" : "block device")).join(" and no ")} on node ${nodeName}`,
  );
}

function blockPaths(rootDir: string, podUID: string, name: string): BlockVolume {
  const directory = `${rootDir}/pods/${podUID}/volumeDevices/${escapeQualifiedName(pluginName)}`;
  return {
    getGlobalMapPath: (spec) =>
      `${kubeletPaths.pluginDir(rootDir, pluginName)}/volumeDevices/${specName(spec)}`,
    getPodDeviceMapPath: () => ({ directory, name }),
  };
}
