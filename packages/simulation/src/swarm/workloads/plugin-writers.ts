/** The writers on directories of a plugin's volumes: a StatefulSet, as the demo has it. */
import { resources } from "@longshore/kube";
import { type PluginName, writerBudget, writerClaims, writerSet, writerSetName } from "@longshore/local";
import { swarmWriter } from "../swarm-writer.ts";
import { namespace, type Workload, type WorkloadEnv } from "./workload.ts";

/** The writers of the plugin. */
export function pluginWriters({ cluster, plan, signal }: WorkloadEnv, plugin: PluginName): Workload {
  const { kube } = cluster;
  const { replicas } = plan;
  const name = writerSetName(plugin);
  const command = [swarmWriter, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)"];
  return {
    writers: Array.from({ length: replicas }, (_, ordinal) => `${name}-${ordinal}`),
    async create() {
      for (const claim of writerClaims(plugin))
        await kube.create(resources.persistentVolumeClaims, claim, { signal });
      await kube.create(resources.podDisruptionBudgets, writerBudget(plugin), { signal });
      await kube.create(resources.statefulSets, writerSet({ replicas, command, plugin }), { signal });
    },
    async end() {
      const body = { spec: { replicas: 0 } };
      await kube.patch(resources.statefulSets, { namespace, name }, { type: "merge", body }, { signal });
    },
    async remove() {
      const ofSet = cluster
        .objects(resources.persistentVolumeClaims)
        .filter(({ metadata }) => isClaimOf(name, metadata.name));
      for (const { metadata } of ofSet) {
        await kube.delete(resources.persistentVolumeClaims, { namespace, name: metadata.name }, { signal });
      }
    },
  };
}

/** The claims of a set: one that is shared, or one for each ordinal. */
function isClaimOf(set: string, claim: string): boolean {
  const rest = claim.startsWith(`data-${set}`) ? claim.slice(`data-${set}`.length) : undefined;
  return rest === "" || (rest !== undefined && /^-\d+$/.test(rest));
}
