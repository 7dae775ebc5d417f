/** The writers on directories of a plugin's volumes: a StatefulSet, as the demo has it. */
import { resources } from "@longshore/kube";
import { type PluginName, writerBudget, writerClaims, writerSet, writerSetName } from "@longshore/local";
import { swarmWriter } from "../swarm-writer.ts";
import type { Workload, WorkloadEnv } from "./workload.ts";
import { deleteClaims, endWriters } from "./writer-pods.ts";

/** The writers of the plugin. */
export function pluginWriters(env: WorkloadEnv, plugin: PluginName): Workload {
  const { cluster, plan, signal } = env;
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
    end: () => endWriters(env, name),
    remove: () => deleteClaims(env, (claim) => isClaimOf(name, claim)),
  };
}

/** The claims of a set: one that is shared, or one for each ordinal. */
function isClaimOf(set: string, claim: string): boolean {
  const rest = claim.startsWith(`data-${set}`) ? claim.slice(`data-${set}`.length) : undefined;
  return rest === "" || (rest !== undefined && /^-\d+$/.test(rest));
}
