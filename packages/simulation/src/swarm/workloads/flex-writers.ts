/** A writer on a PersistentVolume of a Flexvolume driver: it never crosses, and its disk is there beforehand. */
import { type PersistentVolume, resources } from "@longshore/kube";
import { claimVolume } from "@longshore/local";
import { flexDriver, flexProvider, installFlexDriver } from "../flex-driver.ts";
import { namespace, type Workload, type WorkloadEnv } from "./workload.ts";
import { deleteClaims, endWriters, oneWriter } from "./writer-pods.ts";

const name = "flexvolume";
const bytes = 32n * 2n ** 20n;
const storage = "32Mi";

/** With the driver on every machine, the one that mounts by itself. */
export function flexWriters(env: WorkloadEnv): Workload {
  const { cluster, plan, signal } = env;
  const { kube, config } = cluster;
  const provider = flexProvider(plan.plugins);
  const cloud = cluster.cloud.forCaller({ path: "in-tree", component: "operators", provider });
  const zone = config.nodes[0]?.zone ?? "";
  let disk = "";
  return {
    kind: "flexvolume",
    writers: [`${name}-0`],
    async create() {
      const hosts = config.nodes.map((node) => cluster.hostOf(node.name));
      for (const host of [...hosts, cluster.controlPlaneHost]) await installFlexDriver(host, "mounts");
      const request = { name, zone, sizeBytes: bytes, type: "", tags: {} };
      disk = (await cloud.createDisk(request, signal)).id;
      await kube.create(resources.persistentVolumes, volumeOf(disk, zone), { signal });
      await kube.create(resources.persistentVolumeClaims, claimOf(disk), { signal });
      const data = { name: "data", ...claimVolume(name) };
      await kube.create(resources.statefulSets, oneWriter(name, [data]), { signal });
    },
    end: () => endWriters(env, name),
    async remove() {
      await deleteClaims(env, (claim) => claim === name);
      await kube.delete(resources.persistentVolumes, { name: disk }, { signal });
      await cloud.deleteDisk(disk, signal);
    },
  };
}

function volumeOf(disk: string, zone: string): PersistentVolume {
  const inZone = { key: "topology.kubernetes.io/zone", operator: "In", values: [zone] };
  return {
    metadata: { name: disk },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage },
      persistentVolumeReclaimPolicy: "Retain",
      storageClassName: name,
      claimRef: { namespace, name },
      flexVolume: { driver: flexDriver, fsType: "ext4" },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [inZone] }] } },
    },
  };
}

const claimOf = (volumeName: string) => ({
  metadata: { name, namespace },
  spec: {
    accessModes: ["ReadWriteOnce"],
    storageClassName: name,
    volumeName,
    resources: { requests: { storage } },
  },
});
