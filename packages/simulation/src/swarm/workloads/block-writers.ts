/** A writer on a device without a file system: a claim of mode Block. */
import { resources } from "@longshore/kube";
import { classNameOf, clusterPlugin, setWithDevices } from "@longshore/local";
import { swarmDeviceWriter } from "../swarm-writer.ts";
import type { Workload, WorkloadEnv } from "./workload.ts";
import { deleteClaims, endWriters, oneWriter } from "./writer-pods.ts";

const name = "block";

/** On the first plugin of the world whose in-tree code has devices, too; undefined: the world has none. */
export function blockWriters(env: WorkloadEnv): Workload | undefined {
  const plugin = env.plan.plugins.map(clusterPlugin).find(({ hasDevices }) => hasDevices);
  if (plugin === undefined) return undefined;
  const { cluster, signal } = env;
  return {
    kind: "block",
    writers: [`${name}-0`],
    async create() {
      const set = setWithDevices(withClaim(classNameOf(plugin)));
      await cluster.kube.create(resources.statefulSets, set, { signal });
    },
    end: () => endWriters(env, name),
    remove: () => deleteClaims(env, (claim) => claim === `data-${name}-0`),
  };
}

function withClaim(storageClassName: string) {
  const set = oneWriter(name, undefined, undefined, swarmDeviceWriter);
  const spec = {
    accessModes: ["ReadWriteOnce"],
    storageClassName,
    resources: { requests: { storage: "32Mi" } },
  };
  return {
    ...set,
    spec: { ...set.spec, volumeClaimTemplates: [{ metadata: { name: "data" }, spec }] },
  } as typeof set;
}
