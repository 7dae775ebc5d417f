/**
 * The state of a flipped cluster in one text: two histories that end in the same text go on alike. It has the gates, what
 * each node states, what is attached and mounted there and by which path, and the marks on the users' objects, under
 * names without uids. What a controller remembers and stores nowhere is not in it, nor is the finalizer of the external
 * attacher, which stays on a volume that was attached once and matters only when it is deleted.
 */
import { resources } from "@longshore/kube";
import { clusterPlugins, inTreeHandle } from "@longshore/local";
import { migratedPluginsOf } from "@longshore/storage";
import { pathOfMount, type VolumePath } from "../contract-watch.ts";
import { type GatePicture, gatesKey } from "./flip.ts";
import type { VolumeUser } from "./volume-users.ts";
import type { WatchedCluster } from "./watched-cluster.ts";

/** Annotations that say something of migration, on volumes and claims. */
const isMark = (key: string) =>
  /migrated-to|storage-provisioner|storage-resizer|provisioned-by|longshore/.test(key);

const attacherFinalizerPrefix = "external-attacher/";

/** Makes the text. */
export function skewState(watched: WatchedCluster, gates: GatePicture, users: readonly VolumeUser[]): string {
  const { cluster } = watched;
  const csiNodes = cluster.objects(resources.csiNodes);
  const pods = cluster.objects(resources.pods);
  const nodes = cluster.objects(resources.nodes).map((node) => {
    const name = node.metadata.name ?? "";
    const stated = [...migratedPluginsOf(csiNodes.find((c) => c.metadata.name === name))].sort();
    const attached = watched.attachmentsOn(name).map(({ plugin, path }) => `${plugin} ${path}`);
    const mounts = cluster.hostOf(name).mountsBelow("/n").map(pathOfMount);
    const running = users
      .filter((user) => user.node === name)
      .map((user) => `${user.plugin} ${pods.find((pod) => pod.metadata.name === user.name)?.status?.phase}`);
    const own = Object.keys(node.metadata.annotations ?? {}).filter((key) => key.includes("uncertain"));
    return [
      name,
      `states ${stated.join("+") || "none"}`,
      `listed ${node.status?.volumesAttached?.length ?? 0}`,
      `in use ${node.status?.volumesInUse?.length ?? 0}`,
      `attached ${attached.sort().join(", ")}`,
      `mounts ${count(mounts, "in-tree")} in-tree, ${count(mounts, "csi")} csi`,
      `pods ${running.sort().join(", ")}`,
      ...own,
    ].join("; ");
  });
  const marks = [
    ...cluster.objects(resources.persistentVolumes).map((pv) => {
      const plugin = clusterPlugins.find(({ source }) => pv.spec !== undefined && source in pv.spec)?.name;
      return `volume ${plugin} ${inTreeHandle(pv.spec) === undefined ? "csi" : "in-tree"} ${marksOf(pv.metadata)}`;
    }),
    ...cluster
      .objects(resources.persistentVolumeClaims)
      .map(
        (claim) => `claim ${claim.spec?.storageClassName} ${claim.status?.phase} ${marksOf(claim.metadata)}`,
      ),
  ];
  const attachments = cluster.objects(resources.volumeAttachments).map(({ spec, status }) => {
    return `VolumeAttachment ${spec.attacher} ${spec.nodeName} ${status?.attached}`;
  });
  const disks = `disks ${cluster.cloud.disks().length}`;
  return [gatesKey(gates), ...nodes, ...marks.sort(), ...attachments.sort(), disks].join("\n");
}

function marksOf(metadata: {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
}): string {
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => isMark(key));
  const texts = annotations.map(([key, value]) => `${key}=${value}`).sort();
  const finalizers = (metadata.finalizers ?? []).filter((name) => !name.startsWith(attacherFinalizerPrefix));
  return [...texts, ...finalizers.sort()].join(" ");
}

function count(paths: readonly VolumePath[], path: VolumePath): number {
  return paths.filter((each) => each === path).length;
}
