/** The live reads on which it is decided who attaches on a node. Source: docs/behaviour/controllers.md A5. */
import { type CSINode, resources } from "@longshore/kube";
import { errorChain, withDeadline } from "@longshore/runtime";
import type { AttachDetachContext } from "../attach-detach-context.ts";

/** Deadline of the reads for one decision, in milliseconds. */
const decisionTimeoutMs = 10_000;

/** What the API server has of the node now. */
export type LiveCsiNode =
  | {
      readonly kind: "read";
      /** Undefined only when the API server answered 404. */
      readonly csiNode: CSINode | undefined;
      /** Drivers that VolumeAttachments join to the node; asked only where the CSINode is missing. */
      readonly activeDrivers: readonly string[];
    }
  | { readonly kind: "failed"; readonly reason: string };

/** Reads the node's CSINode and, where it is missing, which drivers are at work there. A failure is an answer. */
export async function readCsiNode(
  context: AttachDetachContext,
  nodeName: string,
  signal: AbortSignal,
): Promise<LiveCsiNode> {
  const { env, settings } = context;
  try {
    return await withDeadline(env.clock, decisionTimeoutMs, signal, async (within) => {
      const csiNode = await env.kube.get(resources.csiNodes, { name: nodeName }, { signal: within });
      const isAsked = csiNode === undefined && !settings.compat;
      const activeDrivers = isAsked ? await readActiveDrivers(context, nodeName, within) : [];
      return { kind: "read", csiNode, activeDrivers };
    });
  } catch (error) {
    if (signal.aborted) throw error;
    return { kind: "failed", reason: errorChain(error) };
  }
}

/** Drivers that VolumeAttachments join to the node, by a live list. */
export async function readActiveDrivers(
  context: Pick<AttachDetachContext, "env">,
  nodeName: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { items } = await context.env.kube.list(resources.volumeAttachments, { signal });
  return items.flatMap(({ spec }) => (spec.nodeName === nodeName ? [spec.attacher] : []));
}
