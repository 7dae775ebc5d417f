/** A writer whose pod names an in-tree disk itself, without claim and PersistentVolume: the disk is there beforehand. */
import { type PersistentVolume, resources, type Stored, type Volume } from "@longshore/kube";
import { claimVolume, classNameOf, clusterPlugin, inlineVolume, inTreeHandle } from "@longshore/local";
import { diskOf } from "../../contract-watch.ts";
import { worldOf } from "../../world.ts";
import { namespace, type Workload, type WorkloadEnv } from "./workload.ts";
import { endWriters, oneWriter } from "./writer-pods.ts";

const name = "inline";
const beforehand = "inline-disk";

/** On the last plugin of the world. */
export function inlineWriters(env: WorkloadEnv): Workload | undefined {
  const last = env.plan.plugins.at(-1);
  if (last === undefined) return undefined;
  const plugin = clusterPlugin(last);
  const { cluster, signal } = env;
  const { kube } = cluster;
  let disk = "";
  return {
    kind: "inline",
    writers: [`${name}-0`],
    async create() {
      const made = await makeDisk(env, classNameOf(plugin), plugin.isShared);
      const volume = inlineVolume(plugin, made.spec);
      if (volume === undefined) throw new Error(`${made.metadata.name} is not an in-tree volume`);
      disk = diskOf(inTreeHandle(made.spec) ?? "", worldOf(cluster)) ?? "";
      await kube.create(resources.statefulSets, oneWriter(name, [asData(volume)]), { signal });
    },
    end: () => endWriters(env, name),
    async remove() {
      await removeConverted(env, disk);
      const caller = { path: "in-tree", component: "operators", provider: plugin.name } as const;
      await cluster.cloud.forCaller(caller).deleteDisk(disk, signal);
    },
  };
}

/** Makes a disk with a claim, a pod that uses it once, and nothing of all that left. */
async function makeDisk(
  { cluster, signal, until }: WorkloadEnv,
  storageClassName: string,
  isShared: boolean,
): Promise<Stored<PersistentVolume>> {
  const { kube } = cluster;
  const metadata = { name: beforehand, namespace };
  const spec = {
    accessModes: [isShared ? "ReadWriteMany" : "ReadWriteOnce"],
    storageClassName,
    resources: { requests: { storage: "32Mi" } },
  };
  await kube.create(resources.persistentVolumeClaims, { metadata, spec }, { signal });
  const first = oneWriter(beforehand, [asData(claimVolume(beforehand))]);
  const template = first.spec?.template.spec ?? { containers: [] };
  // It says nothing to the history: it may end at once.
  const containers = template.containers.map((each) => ({ ...each, command: ["none"] }));
  const pod = { metadata, spec: { ...template, containers, restartPolicy: "Never" } };
  await kube.create(resources.pods, pod, { signal });
  const volumeOf = () =>
    cluster.objects(resources.persistentVolumes).find((v) => v.spec?.claimRef?.name === beforehand);
  await until("the disk beforehand is there", () => volumeOf()?.status?.phase === "Bound");
  const volume = volumeOf() as Stored<PersistentVolume>;
  const ref = { name: volume.metadata.name };
  const keep = { spec: { persistentVolumeReclaimPolicy: "Retain" } };
  await kube.patch(resources.persistentVolumes, ref, { type: "merge", body: keep }, { signal });
  await kube.delete(resources.pods, metadata, { signal });
  await until("the pod beforehand ends", () => cluster.objects(resources.pods).length === 0);
  await kube.delete(resources.persistentVolumeClaims, metadata, { signal });
  await until("the disk beforehand is released", () => volumeOf()?.status?.phase === "Released");
  await kube.delete(resources.persistentVolumes, ref, { signal });
  await until("its volume is gone", () => volumeOf() === undefined);
  return volume;
}

/** What a conversion has made of the disk: a volume with policy Retain and its claim, which its administrator removes. */
async function removeConverted({ cluster, signal, until }: WorkloadEnv, disk: string): Promise<void> {
  const { kube } = cluster;
  const isOf = (handle: string) => diskOf(handle, worldOf(cluster)) === disk;
  const volumeOf = () =>
    cluster
      .objects(resources.persistentVolumes)
      .find(({ spec }) => isOf(spec?.csi?.volumeHandle ?? inTreeHandle(spec) ?? ""));
  const volume = volumeOf();
  if (volume === undefined) return;
  const { name = "" } = volume.spec?.claimRef ?? {};
  await kube.delete(resources.persistentVolumeClaims, { namespace, name }, { signal });
  await until("the converted volume is released", () => volumeOf()?.status?.phase === "Released");
  await kube.delete(resources.persistentVolumes, { name: volume.metadata.name }, { signal });
  await until("the converted volume is gone", () => volumeOf() === undefined);
}

const asData = (volume: Omit<Volume, "name">): Volume => ({ name: "data", ...volume });
