/** What the node watcher reports. Pure. */
import type { Pod } from "@longshore/kube";

/** The event on a claim whose pods are on a node that failed or recovered. */
export function nodeEvent(
  report: "failed" | "recovered",
  nodeName: string,
  claim: { readonly name?: string; readonly namespace?: string },
  pods: readonly Pod[],
): { readonly type: "Normal" | "Warning"; readonly reason: string; readonly message: string } {
  if (report === "recovered") {
    return { type: "Normal", reason: "NodeRecovered", message: `Node: ${nodeName} recovered` };
  }
  const names = pods.map((pod) => `${pod.metadata?.name} `).join("");
  return {
    type: "Warning",
    reason: "NodeFailed",
    message: `Pods: [ ${names}] consuming PVC: ${claim.name} in namespace: ${claim.namespace} are now on a failed node: ${nodeName}`,
  };
}
