/** One look at what is left of a plugin on this node. Source: docs/decisions/0019-evidence-that-nothing-is-attached.md. */
import { type Node, resources, type Stored } from "@longshore/kube";
import { NodeMissingError } from "../csi-node/csi-node-writer.ts";
import type { ChangingOver } from "./changing-over.ts";
import type { LookedAt } from "./decide-node-migration-step.ts";
import type { MigratingPlugin } from "./migrating-plugins.ts";
import { observeVolumesLeft, type VolumesLeftEnv } from "./observe-volumes-left.ts";

/**
 * Looks at what is left of the plugin.
 * @param announcement by the Node as the request that announces the change leaves it; left out: as it is
 * @throws NodeMissingError; KubeApiError of a request
 */
export async function lookAtPlugin(
  env: VolumesLeftEnv,
  plugin: MigratingPlugin,
  announcement: ChangingOver | undefined,
  signal: AbortSignal,
): Promise<LookedAt> {
  const node = announcement
    ? await announcement.announce(plugin.inTreeName, signal)
    : await liveNode(env, signal);
  const names = await observeVolumesLeft(env, plugin, node, plugin.heardOf, signal);
  return { names, isAnnounced: announcement !== undefined };
}

async function liveNode({ kube, nodeName }: VolumesLeftEnv, signal: AbortSignal): Promise<Stored<Node>> {
  const node = await kube.get(resources.nodes, { name: nodeName }, { signal });
  if (node === undefined) throw new NodeMissingError(`Node ${nodeName} does not exist: register it first`);
  return node;
}
