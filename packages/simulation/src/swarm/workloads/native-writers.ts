/** A writer on a volume that was CSI's from the beginning: it never crosses, and snapshots can be taken of it. */
import { resources } from "@longshore/kube";
import { clusterPlugin, type PluginName } from "@longshore/local";
import { snapshotResources } from "@longshore/storage";
import type { Workload, WorkloadEnv } from "./workload.ts";
import { deleteClaims, endWriters, oneWriter } from "./writer-pods.ts";

const name = "native";

/** The writer, which names its volume to the history. */
export const nativeWriter = `${name}-0`;
/** Its claim. */
export const nativeClaim = `data-${name}-0`;
/** The classes of volumes and snapshots. */
export const nativeClass = name;

/** The first plugin whose driver makes volumes with nothing but its class. */
function nativePlugin(plugins: readonly PluginName[]) {
  return plugins.map(clusterPlugin).find(({ hasDevices, secrets }) => hasDevices && secrets.length === 0);
}

/** On a volume of the driver; undefined: the world has no such driver. */
export function nativeWriters(env: WorkloadEnv): Workload | undefined {
  const plugin = nativePlugin(env.plan.plugins);
  if (plugin === undefined) return undefined;
  const { cluster, signal } = env;
  const { kube } = cluster;
  return {
    kind: "native",
    writers: [nativeWriter],
    async create() {
      const { driverName } = plugin;
      const metadata = { name: nativeClass };
      const parameters = { "csi.storage.k8s.io/fstype": "ext4" };
      const storageClass = { metadata, provisioner: driverName, parameters, allowVolumeExpansion: true };
      await kube.create(
        resources.storageClasses,
        { ...storageClass, volumeBindingMode: "WaitForFirstConsumer" },
        { signal },
      );
      const snapshotClass = { metadata, driver: driverName, deletionPolicy: "Delete" } as const;
      await kube.create(snapshotResources.volumeSnapshotClasses, snapshotClass, { signal });
      const set = oneWriter(name, undefined);
      const spec = {
        accessModes: ["ReadWriteOnce"],
        storageClassName: nativeClass,
        resources: { requests: { storage: "32Mi" } },
      };
      const volumeClaimTemplates = [{ metadata: { name: "data" }, spec }];
      const withClaim = { ...set, spec: { ...set.spec, volumeClaimTemplates } } as typeof set;
      await kube.create(resources.statefulSets, withClaim, { signal });
    },
    end: () => endWriters(env, name),
    remove: () => deleteClaims(env, (claim) => claim === nativeClaim),
  };
}
