/**
 * The in-tree volume plugin `kubernetes.io/azure-file`: shares of files. Nothing is attached; each pod's directory is a mount
 * of the share by itself, and any number of nodes and pods have one.
 */
import type { Pod } from "@longshore/kube";
import { invariant } from "@longshore/runtime";
import type { DiskCloud } from "../../framework/ports.ts";
import { type KubeletVolumeHost, kubeletPaths, type VolumeHost } from "../../framework/volume-host.ts";
import type {
  DeletableVolumePlugin,
  ExpandableVolumePlugin,
  Mounter,
  ProvisionableVolumePlugin,
} from "../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import { bindForPod, giveToGroup, unmountAndRemove } from "../device-mounts.ts";
import { instanceNamed } from "../disk/attach-disk.ts";
import { refusal } from "../disk/attach-on-node.ts";
import { roundedSize } from "../disk/class-parameters.ts";
import type { InTreePluginOptions } from "../disk/disk-plugin.ts";
import { deleteNamed, diskProvisioner } from "../disk/provision-disk.ts";
import { hasSource, inTreeSourceOf } from "../disk/volume-source.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";
import { azureFileProvisioning } from "./azure-file-provisioning.ts";
import { azureFilePluginName, shareNameOf, shareOf } from "./azure-file-source.ts";

/** Everything that the Azure File plugin can do. */
export type AzureFilePlugin = ProvisionableVolumePlugin & DeletableVolumePlugin & ExpandableVolumePlugin;

/** The plugin, to be given to `createVolumePluginManager`. */
export function azureFilePlugin(options: InTreePluginOptions = {}): AzureFilePlugin {
  let initialised: VolumeHost | undefined;
  const host = (): VolumeHost => {
    invariant(initialised !== undefined, "a volume plugin is initialised before it is used");
    return initialised;
  };
  const cloud = (): DiskCloud => {
    if (options.cloud !== undefined) return options.cloud;
    throw new InTreeVolumeError(
      "Failed to get Azure Cloud Provider. GetCloudProvider returned <nil> instead",
    );
  };
  return {
    pluginName: azureFilePluginName,
    async init(given) {
      initialised = given;
    },
    getVolumeName: shareNameOf,
    canSupport: (spec) => hasSource(spec, "azureFile"),
    supportsMountOption: () => true,
    supportsMetrics: () => true,
    newMounter: async (spec, pod) => podMounter(host(), cloud, spec, pod),
    async newUnmounter(volumeName, podUID) {
      const kubelet = kubeletOf(host());
      const path = podPath(kubelet, podUID, volumeName);
      return { getPath: () => path, tearDown: () => unmountAndRemove(kubelet.host, path) };
    },
    constructVolumeSpec: async (volumeName) => specForUnmounting(volumeName),
    newProvisioner(volumeOptions) {
      const provider = cloud();
      return diskProvisioner(azureFileProvisioning, () => provider, host, volumeOptions);
    },
    newDeleter(spec) {
      const provider = cloud();
      return {
        async delete(signal) {
          const { shareId, volumeName } = await shareOf(host(), spec, undefined, signal);
          await deleteNamed(provider, shareId, volumeName, signal);
        },
      };
    },
    async expandVolumeDevice(spec, newSizeBytes, _oldSizeBytes, signal) {
      const provider = cloud();
      const { shareId } = await shareOf(host(), spec, undefined, signal);
      return await provider.resizeDisk(shareId, roundedSize(newSizeBytes).bytes, signal);
    },
    requiresFSResize: () => false,
  };
}

function kubeletOf({ kubelet }: VolumeHost): KubeletVolumeHost {
  invariant(kubelet !== undefined, "the Azure File plugin mounts only on a node's host");
  return kubelet;
}

function podPath({ rootDir }: KubeletVolumeHost, podUID: string, volumeName: string): string {
  return kubeletPaths.podVolumeDir(rootDir, podUID, azureFilePluginName, volumeName);
}

function podMounter(volumeHost: VolumeHost, cloud: () => DiskCloud, spec: VolumeSpec, pod: Pod): Mounter {
  const kubelet = kubeletOf(volumeHost);
  const { readOnly } = inTreeSourceOf(spec, "azureFile");
  const path = podPath(kubelet, pod.metadata?.uid ?? "", specName(spec));
  return {
    getPath: () => path,
    readOnly,
    async setUp(args, signal) {
      const { host } = kubelet;
      const volumeName = shareNameOf(spec);
      if (!(await host.isMountPoint(path))) {
        const directory = await remoteDirectory(volumeHost, cloud(), spec, pod, signal);
        await bindForPod(host, directory, path, { volumeName, readOnly });
      }
      if (!readOnly) await giveToGroup(volumeHost, path, volumeName, args);
    },
  };
}

/** The directory that stands for the remote share. The secret is read at each mount, so that a new key is taken. */
async function remoteDirectory(
  volumeHost: VolumeHost,
  cloud: DiskCloud,
  spec: VolumeSpec,
  pod: Pod,
  signal: AbortSignal,
): Promise<string> {
  const { nodeName } = kubeletOf(volumeHost);
  const { readOnly } = inTreeSourceOf(spec, "azureFile");
  const { shareId, volumeName, credentials } = await shareOf(volumeHost, spec, pod, signal);
  const { instanceId } = await instanceNamed(cloud, nodeName, signal);
  try {
    return (await cloud.attachDisk(shareId, instanceId, signal, { readOnly, credentials })).devicePath;
  } catch (error) {
    throw refusal(error, volumeName, nodeName) ?? error;
  }
}

/** Source: upstream ConstructVolumeSpec: a pod's directory says neither share nor secret, and an unmount needs neither. */
function specForUnmounting(volumeName: string): VolumeSpec {
  const azureFile = { shareName: volumeName, secretName: volumeName };
  return {
    persistentVolume: { metadata: { name: volumeName }, spec: { azureFile } },
    readOnly: false,
    inlineVolumeSpecForCsiMigration: false,
  };
}
