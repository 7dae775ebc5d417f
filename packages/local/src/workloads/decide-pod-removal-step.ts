/**
 * Whether a pod is taken away because no agent will ever end it. Pure. Source: Kubernetes pod garbage collection;
 * KEP-2268 (non-graceful node shutdown).
 *
 * A node is out of service when an administrator says so with the taint, once the machine is certainly off: its pods
 * then go at once, and the attach/detach controller detaches their volumes by force. A node that is Ready contradicts the
 * taint: nothing is taken from it. A node whose object was deleted is gone once it has been missing for 40 s, by a live look: an
 * agent that still runs makes it again before.
 */
import { isDeleting, type Node, type Pod, type Stored, type Taint } from "@longshore/kube";
import { outOfServiceTaint } from "@longshore/volumes";
import { tolerates } from "./node-fit.ts";

/** What is known about a pod. */
export interface RemovalObservation {
  readonly pod: Stored<Pod>;
  /** Its node; undefined: it has none, or that is not there. */
  readonly node: Stored<Node> | undefined;
  /** For how long the node that it names has been missing, in milliseconds; 0: it is there, or it has just been seen to be missing. */
  readonly missingForMs: number;
}

/** A node is missing for so long before its pods go. Source: Kubernetes pod garbage collection, quarantine of nodes. */
export const missingNodeMs = 40_000;

/** One action of the pod removal. */
export type RemovalStep =
  | { readonly step: "removePod"; readonly reason: string }
  /** The node may be made again within this time. */
  | { readonly step: "waitForNode"; readonly ms: number }
  /** Keeps the pod: its agent ends it, or nothing has to end. */
  | { readonly step: "settle" };

/** Decides on the next step. */
export function decidePodRemovalStep({ pod, node, missingForMs }: RemovalObservation): RemovalStep {
  const nodeName = pod.spec?.nodeName ?? "";
  if (nodeName === "") {
    return isDeleting(pod)
      ? { step: "removePod", reason: "it is being deleted and never had a node" }
      : { step: "settle" };
  }
  if (node === undefined) {
    const leftMs = missingNodeMs - missingForMs;
    if (leftMs > 0) return { step: "waitForNode", ms: leftMs };
    return { step: "removePod", reason: `node ${nodeName} was deleted` };
  }
  const taint = node.spec?.taints?.find(({ key }) => key === outOfServiceTaint);
  if (taint === undefined || isReady(node)) return { step: "settle" };
  const isEvicted = taint.effect === "NoExecute" && !toleratesAlways(pod, taint);
  if (!isDeleting(pod) && !isEvicted) return { step: "settle" };
  return { step: "removePod", reason: `node ${nodeName} is out of service` };
}

function isReady(node: Node): boolean {
  return node.status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
}

/** Without a limit in time: one that tolerates a while only has to go as well, since nothing runs there. */
function toleratesAlways(pod: Pod, taint: Taint): boolean {
  const lasting = pod.spec?.tolerations?.filter(({ tolerationSeconds }) => tolerationSeconds === undefined);
  return tolerates({ ...pod, spec: { containers: [], ...pod.spec, tolerations: lasting ?? [] } }, taint);
}
