/** What a simulated cluster looks like, for a simulation that did not come to its end. */
import { resources } from "@longshore/kube";
import type { InProcessCluster } from "@longshore/local";

/** Its pods, budgets, nodes, attachments and last events, a line for each. */
export function standstill(cluster: InProcessCluster): readonly string[] {
  const pods = cluster.objects(resources.pods).map((pod) => {
    const deleting = pod.metadata.deletionTimestamp === undefined ? "" : " deleting";
    const ready = pod.status?.conditions?.find((c) => c.type === "Ready")?.status;
    return `${pod.metadata.name} ${pod.status?.phase} ready=${ready} on ${pod.spec?.nodeName}${deleting}`;
  });
  const budgets = cluster
    .objects(resources.podDisruptionBudgets)
    .map((b) => `budget ${JSON.stringify(b.status)}`);
  const nodes = cluster.objects(resources.nodes).map((n) => {
    const ready = n.status?.conditions?.find((c) => c.type === "Ready");
    const names = (n.status?.volumesAttached ?? []).map((v) => v.name);
    return `${n.metadata.name} ready=${ready?.status} (${ready?.message}) unschedulable=${n.spec?.unschedulable} taints=${n.spec?.taints?.map((t) => t.key)} attached=${names} inUse=${n.status?.volumesInUse}`;
  });
  const volumeAttachments = cluster.objects(resources.volumeAttachments).map(({ metadata, spec, status }) => {
    const deleting = metadata.deletionTimestamp === undefined ? "" : " deleting";
    const { persistentVolumeName = "of a pod" } = spec.source;
    return `${metadata.name} of ${persistentVolumeName} to ${spec.nodeName} attached=${status?.attached}${deleting}`;
  });
  const attached = cluster.cloud
    .disks()
    .flatMap(({ id, attachments }) =>
      attachments.map(({ instanceId }) => `${id} is attached to ${instanceId}`),
    );
  const events = cluster
    .objects(resources.events)
    .slice(-8)
    .map((e) => `${e.involvedObject.name} ${e.reason} ${e.message}`);
  return [...pods, ...budgets, ...nodes, ...volumeAttachments, ...attached, ...events];
}
