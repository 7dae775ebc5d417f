/** A writer whose volume comes and goes with its pod: a generic ephemeral volume. */
import { resources } from "@longshore/kube";
import { classNameOf, clusterPlugin } from "@longshore/local";
import type { Workload, WorkloadEnv } from "./workload.ts";
import { endWriters, oneWriter } from "./writer-pods.ts";

const name = "ephemeral";

/** On the first plugin of the world. Each pod has a volume of its own, which holds nothing of those before it. */
export function ephemeralWriters(env: WorkloadEnv): Workload | undefined {
  const first = env.plan.plugins[0];
  if (first === undefined) return undefined;
  const plugin = clusterPlugin(first);
  const spec = {
    accessModes: [plugin.isShared ? "ReadWriteMany" : "ReadWriteOnce"],
    storageClassName: classNameOf(plugin),
    resources: { requests: { storage: "32Mi" } },
  };
  return {
    kind: "ephemeral",
    writers: [`${name}-0`],
    async create() {
      const volume = { name: "data", ephemeral: { volumeClaimTemplate: { spec } } };
      const set = oneWriter(name, [volume], "$(POD_NAME)/$(POD_UID)");
      await env.cluster.kube.create(resources.statefulSets, set, { signal: env.signal });
    },
    end: () => endWriters(env, name),
    // Its claims go with their pods.
    remove: async () => {},
  };
}
