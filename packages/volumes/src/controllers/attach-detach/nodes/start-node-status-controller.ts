/**
 * Writes what is attached to the Nodes: key is a node. The list and the record of uncertain volumes are written in one
 * request. Source: docs/behaviour/controllers.md A8; docs/decisions/0019-evidence-that-nothing-is-attached.md.
 *
 * Invariants
 *  - A node has one writer here, one write at a time, and each write carries the whole report as it is then: passes over
 *    several disks of a node cannot write over one another.
 *  - A node whose write failed stays dirty, and does not keep the others from being written.
 */
import {
  type Actions,
  type Controller,
  forResource,
  isNotFound,
  type QueueEnv,
  resources,
  settled,
  startController,
} from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { uncertainVolumesAnnotation } from "@longshore/storage";
import type { NodeReport } from "../actual-state.ts";
import type { AttachDetachContext } from "../attach-detach-context.ts";
import { decideNodeStatus, type NodeStatusStep, type ObservedNodeStatus } from "./decide-node-status.ts";

/** Writes at most this many nodes at the same time. */
const workers = 16;
/** Pause before a failed write is tried again, in milliseconds. */
const retryMs = 1_000;

/** Starts it; the caches have synced and the actual state is recovered. */
export function startNodeStatusController(env: QueueEnv, context: AttachDetachContext): Controller {
  return startController<ObservedNodeStatus, NodeStatusStep>(env, {
    name: "attach_detach_nodes",
    workers,
    sources: [forResource(context.caches.nodes)],
    observe: (nodeName) => ({
      nodeName,
      node: context.caches.nodes.get(nodeName),
      report: context.actual.report(nodeName),
      isDirty: context.actual.isDirty(nodeName),
    }),
    decide: decideNodeStatus,
    actions: nodeStatusActions(context),
  });
}

function nodeStatusActions(context: AttachDetachContext): Actions<ObservedNodeStatus, NodeStatusStep> {
  const onWritten = (nodeName: string, version: number) => {
    context.actual.written(nodeName, version);
    // What is not listed may wait for this write: a detach, or an in-tree attach.
    for (const { reported, identity } of context.actual.on(nodeName))
      if (!reported) context.wakeDisk(identity);
  };
  return {
    async write({ nodeName, report }, _observed, { signal }) {
      try {
        await writeReport(context, nodeName, report, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        // A Node that is gone lists nothing: what waits for this write may go on.
        if (!isNotFound(error)) {
          context.env.logger.warn("node status not written", { node: nodeName, error: errorChain(error) });
          return { requeueAfterMs: retryMs };
        }
      }
      onWritten(nodeName, report.version);
      return settled;
    },
    countAsWritten({ nodeName, version }) {
      onWritten(nodeName, version);
      return settled;
    },
    settle: () => settled,
  };
}

async function writeReport(
  context: AttachDetachContext,
  nodeName: string,
  { listed, record }: NodeReport,
  signal: AbortSignal,
): Promise<void> {
  // In a merge patch only null removes a member; one that is left out stays.
  const annotations = { [uncertainVolumesAnnotation]: record ?? null };
  const status = { volumesAttached: listed.length === 0 ? null : listed };
  const body = { metadata: { annotations }, status };
  await context.env.kube.patch(
    resources.nodes,
    { name: nodeName },
    { type: "merge", body },
    { signal, subresource: "status" },
  );
}
