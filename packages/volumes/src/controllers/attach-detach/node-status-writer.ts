/**
 * Writes `status.volumesAttached` of the nodes whose report changed, and with it, in the same request, their
 * record of uncertain volumes. Source: docs/behaviour/controllers.md A8.
 *
 * Invariant: a node whose write failed stays dirty, and does not keep the others from being written.
 */
import { isNotFound, type KubeClient, type Node, resources, type Stored } from "@longshore/kube";
import { errorChain, type RuntimeEnv } from "@longshore/runtime";
import { uncertainVolumesAnnotation } from "@longshore/storage";
import type { ActualState } from "./actual-state.ts";

/** Writes at most this many nodes at the same time. */
const parallelWrites = 16;

/** What became of a round of writes. */
export interface NodeStatusRound {
  /** Nodes that are still dirty because their write failed. */
  readonly failed: ReadonlySet<string>;
}

/** Writes every dirty node; those that are not in the cache are dropped. */
export async function writeNodeStatuses(
  env: Pick<RuntimeEnv, "logger"> & { readonly kube: KubeClient },
  actual: ActualState,
  nodeOf: (name: string) => Stored<Node> | undefined,
  signal: AbortSignal,
): Promise<NodeStatusRound> {
  const failed = new Set<string>();
  const queue = [...actual.dirtyNodes()];
  const worker = async (): Promise<void> => {
    for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
      actual.clearDirty(name);
      if (nodeOf(name) === undefined) continue;
      try {
        await writeOne(env.kube, name, actual, signal);
      } catch (error) {
        if (isNotFound(error)) continue;
        actual.markDirty(name);
        failed.add(name);
        if (!signal.aborted) {
          env.logger.warn("node status not written", { node: name, error: errorChain(error) });
        }
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(parallelWrites, queue.length) }, worker));
  return { failed };
}

async function writeOne(
  kube: KubeClient,
  name: string,
  actual: ActualState,
  signal: AbortSignal,
): Promise<void> {
  const report = actual.report(name);
  const annotations = { [uncertainVolumesAnnotation]: actual.record(name) ?? null };
  const status = { volumesAttached: report.length === 0 ? null : report };
  const body = { metadata: { annotations }, status };
  await kube.patch(resources.nodes, { name }, { type: "merge", body }, { signal, subresource: "status" });
}

/** Whether a node's status and record already say what they should. */
export function statusMatchesReport(node: Node, actual: ActualState): boolean {
  const name = node.metadata?.name ?? "";
  const report = actual.report(name);
  if (node.metadata?.annotations?.[uncertainVolumesAnnotation] !== actual.record(name)) return false;
  const listed = node.status?.volumesAttached ?? [];
  if (listed.length !== report.length) return false;
  const paths = new Map(listed.map(({ name, devicePath }) => [name, devicePath]));
  return report.every(({ name, devicePath }) => paths.get(name) === devicePath);
}
