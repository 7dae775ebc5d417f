/** Writers whose pods name a CSI driver themselves: it makes their volumes on the node, and removes them with their pods. */
import { resources } from "@longshore/kube";
import { clusterPlugin } from "@longshore/local";
import type { Workload, WorkloadEnv } from "./workload.ts";
import { endWriters, oneWriter } from "./writer-pods.ts";

const name = "csi-inline";
const replicas = 2;

/** Of the driver of the world's first plugin, whether or not that is migrated. Two pods, whose volumes have one name. */
export function csiInlineWriters(env: WorkloadEnv): Workload | undefined {
  const first = env.plan.plugins[0];
  if (first === undefined) return undefined;
  const csi = { driver: clusterPlugin(first).driverName, volumeAttributes: { size: "16Mi" } };
  return {
    kind: "csiInline",
    writers: Array.from({ length: replicas }, (_, ordinal) => `${name}-${ordinal}`),
    async create() {
      const { spec, ...set } = oneWriter(name, [{ name: "data", csi }], "$(POD_NAME)/$(POD_UID)");
      const both = { ...set, spec: { ...spec, replicas } } as typeof set;
      await env.cluster.kube.create(resources.statefulSets, both, { signal: env.signal });
    },
    end: () => endWriters(env, name),
    // Its volumes go with their pods.
    remove: async () => {},
  };
}
