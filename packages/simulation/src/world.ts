/** A simulated cluster as the contract looks at it: the disks, the mounts and the stored objects themselves. */
import { resources } from "@longshore/kube";
import type { InProcessCluster } from "@longshore/local";
import type { CloudCaller } from "@longshore/volumes";
import type { AttachmentCall, WorldView } from "./contract-watch.ts";

type ClusterConfig = InProcessCluster["config"];

/** The world as it is at this instant. */
export function worldOf(cluster: InProcessCluster): WorldView {
  const disks = cluster.cloud.disks();
  return {
    attachments: disks.flatMap((disk) =>
      disk.attachments.map(({ instanceId, devicePath }) => {
        const nodeName = nodeOf(cluster.config, instanceId);
        // Providers name a device by a link to it; mounts are of the device itself. It has none yet while it is being attached.
        const device = devicePath === "" ? undefined : cluster.hostOf(nodeName).deviceAt(devicePath);
        return { diskId: disk.id, nodeName, devicePath: device ?? devicePath };
      }),
    ),
    mounts: new Map(cluster.config.nodes.map((n) => [n.name, cluster.hostOf(n.name).mountsBelow("/n")])),
    csiNodes: cluster.objects(resources.csiNodes),
    volumes: cluster.objects(resources.persistentVolumes),
    disks: new Set(disks.map((disk) => disk.id)),
  };
}

/** Says what a call of this caller to the disk cloud is about. */
export function attachmentCalls(config: ClusterConfig, { path, provider = "aws-ebs" }: CloudCaller) {
  return (op: AttachmentCall["op"], diskId: string, instanceId: string): AttachmentCall => ({
    op,
    path,
    plugin: `kubernetes.io/${provider}`,
    diskId,
    nodeName: nodeOf(config, instanceId),
  });
}

function nodeOf(config: ClusterConfig, instanceId: string): string {
  return config.nodes.find((node) => node.instanceId === instanceId)?.name ?? instanceId;
}
