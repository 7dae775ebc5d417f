/** Whether a part of a deployment has come up, or gone: pure functions, which say what is missing. */
import type { CSINode, DaemonSet, Deployment, Pod, StatefulSet } from "@longshore/kube";

/** What is missing until the node part serves: new pods everywhere, and their driver in every node's CSINode. */
export function missingOfNodes(
  daemonSet: DaemonSet | undefined,
  pods: readonly Pod[],
  csiNodes: readonly CSINode[],
  driver: string,
): string | undefined {
  if (daemonSet === undefined) return "the node part's DaemonSet";
  const { status, metadata } = daemonSet;
  // Until it has seen the new template, its numbers are those of the old one.
  if ((status?.observedGeneration ?? 0) < (metadata?.generation ?? 0)) return "the DaemonSet controller";
  const wanted = status?.desiredNumberScheduled ?? 0;
  const updated = status?.updatedNumberScheduled ?? 0;
  if (updated < wanted) return `the node part: ${updated} of ${wanted} nodes have the new pod`;
  const available = status?.numberAvailable ?? 0;
  if (available < wanted) return `the node part: ${available} of ${wanted} pods are ready`;
  const registered = new Set(
    csiNodes
      .filter(({ spec }) => spec.drivers?.some(({ name }) => name === driver))
      .map(({ metadata: { name = "" } = {} }) => name),
  );
  const nodes = [
    ...new Set(pods.map(({ spec }) => spec?.nodeName).filter((name) => name !== undefined)),
  ].sort();
  const [first, ...others] = nodes.filter((name) => !registered.has(name));
  if (first === undefined) return undefined;
  const more = others.length === 0 ? "" : ` and of ${others.length} more`;
  return `the driver in the CSINode of ${first}${more}: the kubelet has not registered it`;
}

/** What is missing until the controller serves. */
export function missingOfController(workload: StatefulSet | Deployment | undefined): string | undefined {
  if (workload === undefined) return "the controller's workload";
  const { status, metadata, spec } = workload;
  if ((status?.observedGeneration ?? 0) < (metadata?.generation ?? 0)) return "the workload's controller";
  const wanted = spec?.replicas ?? 1;
  const ready = status?.readyReplicas ?? 0;
  const updated = status?.updatedReplicas ?? 0;
  if (updated < wanted) return `the controller: ${updated} of ${wanted} pods are new`;
  if (ready < wanted) return `the controller: ${ready} of ${wanted} pods are ready`;
  return undefined;
}

/** The pods that are still there. */
export function missingUntilGone(pods: readonly Pod[]): string | undefined {
  const [first] = pods;
  if (first === undefined) return undefined;
  const { name, namespace } = first.metadata ?? {};
  const more = pods.length === 1 ? "" : ` and ${pods.length - 1} more`;
  const node = first.spec?.nodeName;
  // A pod of a node that does not answer ends when its Node object is deleted.
  return `the end of pod "${namespace}/${name}"${node === undefined ? "" : ` on node ${node}`}${more}`;
}
