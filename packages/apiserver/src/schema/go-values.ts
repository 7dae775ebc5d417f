/**
 * Members that the API's types hold by value and not by pointer: they are there even where JSON leaves them out,
 * which shows in who owns them (`f:resources: {}` of a container without resources). Source: the types of k8s.io/api.
 */
import type { Struct, TypeRef } from "./schema.ts";

/** Optional members that hold a struct by value, other than `metadata`, `spec` and `status` of kinds and templates. */
const structValues: ReadonlySet<string> = new Set([
  "apps.v1.DaemonSetSpec.updateStrategy",
  "apps.v1.DeploymentSpec.strategy",
  "apps.v1.ReplicaSetSpec.template",
  "apps.v1.StatefulSetSpec.updateStrategy",
  "batch.v1.CronJobSpec.jobTemplate",
  "core.v1.Container.resources",
  "core.v1.ContainerStatus.lastState",
  "core.v1.ContainerStatus.state",
  "core.v1.EphemeralContainer.resources",
  "core.v1.Event.involvedObject",
  "core.v1.Event.source",
  "core.v1.NodeDaemonEndpoints.kubeletEndpoint",
  "core.v1.NodeStatus.daemonEndpoints",
  "core.v1.NodeStatus.nodeInfo",
  "core.v1.PersistentVolumeClaimSpec.resources",
  "core.v1.PodTemplate.template",
  "core.v1.ServiceStatus.loadBalancer",
  "events.v1.Event.deprecatedSource",
  "events.v1.Event.regarding",
  "networking.v1.IngressStatus.loadBalancer",
  "networking.v1.NetworkPolicySpec.podSelector",
]);

/** Optional members that JSON never leaves out, empty or not. */
const neverOmitted: ReadonlySet<string> = new Set(["storage.v1.CSINodeDriver.topologyKeys"]);

/** Types other than kinds whose `metadata`, `spec` and `status` are held by value. */
const templates: ReadonlySet<string> = new Set([
  "batch.v1.JobTemplateSpec",
  "core.v1.PersistentVolumeClaimTemplate",
  "core.v1.PodTemplateSpec",
]);

/** Times held by pointer. */
const timePointers: ReadonlySet<string> = new Set([
  "autoscaling.v1.HorizontalPodAutoscalerStatus.lastScaleTime",
  "autoscaling.v2.HorizontalPodAutoscalerStatus.lastScaleTime",
  "batch.v1.CronJobStatus.lastScheduleTime",
  "batch.v1.CronJobStatus.lastSuccessfulTime",
  "batch.v1.JobStatus.completionTime",
  "batch.v1.JobStatus.startTime",
  "coordination.v1.LeaseSpec.acquireTime",
  "coordination.v1.LeaseSpec.renewTime",
  "core.v1.PersistentVolumeStatus.lastPhaseTransitionTime",
  "core.v1.PodStatus.startTime",
  "core.v1.Taint.timeAdded",
  "meta.v1.ManagedFieldsEntry.time",
  "meta.v1.ObjectMeta.deletionTimestamp",
]);

/** Members that are there although JSON leaves them out, with the values that they have then. */
export function alwaysThere(name: string, struct: Struct | undefined): ReadonlyMap<string, unknown> {
  const always = new Map<string, unknown>();
  if (struct === undefined) return always;
  const isObject = templates.has(name) || (struct.has("apiVersion") && struct.has("kind"));
  for (const [member, { type, required }] of struct) {
    const path = `${name}.${member}`;
    const ofObject = isObject && (member === "metadata" || member === "spec" || member === "status");
    const byValue =
      type.form === "struct"
        ? required || ofObject || structValues.has(path)
        : (type.form === "time" || type.form === "microTime") && !timePointers.has(path);
    if (required || byValue || neverOmitted.has(path)) always.set(member, zeroOf(type));
  }
  return always;
}

const nothing: Readonly<Record<string, never>> = Object.freeze({});

function zeroOf(type: TypeRef): unknown {
  switch (type.form) {
    case "string":
      return "";
    case "integer":
      return 0;
    case "boolean":
      return false;
    case "struct":
      return nothing;
    default:
      return null;
  }
}
