/** A simulated cluster as the contract looks at it: the disks, the mounts and the stored objects themselves. */
import { resources } from "@longshore/kube";
import type { InProcessCluster } from "@longshore/local";
import type { CloudCaller } from "@longshore/volumes";
import type { AttachmentCall, WorldView } from "./contract-watch.ts";

type ClusterConfig = InProcessCluster["config"];

/** What calls the provider for a Flexvolume driver. */
export const flexComponent = "flexvolume";

/** The worlds as they were seen last. */
const lastSeen = new WeakMap<InProcessCluster, Seen>();

/** What a world was made of. */
interface Seen {
  readonly disks: ReturnType<InProcessCluster["cloud"]["disks"]>;
  readonly world: WorldView;
}

/** The world as it is at this instant; the same object as long as nothing of it has changed. */
export function worldOf(cluster: InProcessCluster): WorldView {
  const last = lastSeen.get(cluster);
  const disks = cluster.cloud.disks();
  const world: WorldView = {
    attachments: kept(attachmentsOf(cluster, disks), last?.world.attachments),
    mounts: mountsOf(cluster, last?.world.mounts),
    csiNodes: cluster.objects(resources.csiNodes),
    volumes: cluster.objects(resources.persistentVolumes),
    disks: last?.disks === disks ? last.world.disks : new Set(disks.map((disk) => disk.id)),
  };
  if (last !== undefined && isSame(last.world, world)) return last.world;
  lastSeen.set(cluster, { disks, world });
  return world;
}

function isSame(a: WorldView, b: WorldView): boolean {
  return (
    a.attachments === b.attachments &&
    a.mounts === b.mounts &&
    a.csiNodes === b.csiNodes &&
    a.volumes === b.volumes &&
    a.disks === b.disks
  );
}

function attachmentsOf(cluster: InProcessCluster, disks: Seen["disks"]): WorldView["attachments"] {
  return disks.flatMap((disk) =>
    disk.attachments.map(({ instanceId, devicePath }) => {
      const nodeName = nodeOf(cluster.config, instanceId);
      // Providers name a device by a link to it; mounts are of the device itself. It has none yet while it is being attached.
      const device = devicePath === "" ? undefined : cluster.hostOf(nodeName).deviceAt(devicePath);
      return { diskId: disk.id, nodeName, devicePath: device ?? devicePath };
    }),
  );
}

function kept(
  now: WorldView["attachments"],
  before: WorldView["attachments"] | undefined,
): WorldView["attachments"] {
  if (before?.length !== now.length) return now;
  const isKept = now.every((each, i) => {
    const was = before[i];
    return (
      was?.diskId === each.diskId && was.nodeName === each.nodeName && was.devicePath === each.devicePath
    );
  });
  return isKept ? before : now;
}

/** A node's list is another one when a mount has changed. */
function mountsOf(cluster: InProcessCluster, before: WorldView["mounts"] | undefined): WorldView["mounts"] {
  const { nodes } = cluster.config;
  const listOf = (name: string) => cluster.hostOf(name).mountsBelow("/n");
  if (before !== undefined && nodes.every(({ name }) => before.get(name) === listOf(name))) return before;
  return new Map(nodes.map(({ name }) => [name, listOf(name)]));
}

/** Says what a call of this caller to the disk cloud is about. */
export function attachmentCalls(
  config: ClusterConfig,
  { path, component, provider = "aws-ebs" }: CloudCaller,
) {
  // A Flexvolume driver's disks are no in-tree plugin's, although its provider has one.
  const plugin = component === flexComponent ? flexComponent : `kubernetes.io/${provider}`;
  return (op: AttachmentCall["op"], diskId: string, instanceId: string): AttachmentCall => ({
    op,
    path,
    plugin,
    diskId,
    nodeName: nodeOf(config, instanceId),
  });
}

function nodeOf(config: ClusterConfig, instanceId: string): string {
  return config.nodes.find((node) => node.instanceId === instanceId)?.name ?? instanceId;
}
