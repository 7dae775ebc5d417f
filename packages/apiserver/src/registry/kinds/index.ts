/** The table of all kinds that are built in. */
import type { KubeObject } from "@longshore/kube";
import type { Kind } from "../../api/kind.ts";
import { structNameOf, structOf } from "../../schema/schema.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import { csiStorageCapacity, volumeAttributesClass } from "./capacity.ts";
import { certificateSigningRequest } from "./certificate-signing-request.ts";
import { componentStatus } from "./component-status.ts";
import { binding, configMap, lease, namespace, secret, service, serviceAccount } from "./core.ts";
import { customResourceDefinition } from "./custom-resource-definition.ts";
import { endpointSlice, endpoints } from "./endpoints.ts";
import { event, groupEvent } from "./events.ts";
import { horizontalPodAutoscaler } from "./horizontal-pod-autoscaler.ts";
import { withHostPorts } from "./host-ports.ts";
import { cronJob, job } from "./jobs.ts";
import { ingress, ingressClass, networkPolicy } from "./networking.ts";
import { node } from "./node.ts";
import { persistentVolume } from "./persistent-volume.ts";
import { persistentVolumeClaim } from "./persistent-volume-claim.ts";
import { pod } from "./pod.ts";
import { podDisruptionBudget } from "./pod-disruption-budget.ts";
import { limitRange, resourceQuota } from "./quotas.ts";
import { controllerRevision, podTemplate, replicationController } from "./replication.ts";
import { clusterRole, clusterRoleBinding, reviews, role, roleBinding } from "./roles.ts";
import { priorityClass, runtimeClass } from "./scheduling.ts";
import { type LooseObject, withDefaults } from "./shaping.ts";
import { csiDriver, csiNode, storageClass, volumeAttachment } from "./storage-group.ts";
import { mutatingWebhookConfiguration, validatingWebhookConfiguration } from "./webhook-configurations.ts";
import { daemonSet, deployment, replicaSet, statefulSet } from "./workloads.ts";

/** A kind whose rules differ between versions is made for one. */
type KindSource = Kind | ((version: EmulatedVersion) => Kind);

const sources: readonly KindSource[] = [
  namespace,
  node,
  pod,
  binding,
  persistentVolume,
  persistentVolumeClaim,
  secret,
  configMap,
  event,
  groupEvent,
  (version) =>
    version.has("servicesNeedVersion") ? { ...service, updateNeedsVersion: "validated" as const } : service,
  serviceAccount,
  endpoints,
  limitRange,
  resourceQuota,
  podTemplate,
  replicationController,
  componentStatus,
  storageClass,
  volumeAttachment,
  csiNode,
  csiDriver,
  csiStorageCapacity,
  volumeAttributesClass,
  statefulSet,
  deployment,
  replicaSet,
  daemonSet,
  controllerRevision,
  job,
  cronJob,
  lease,
  podDisruptionBudget,
  endpointSlice,
  priorityClass,
  runtimeClass,
  ingress,
  ingressClass,
  networkPolicy,
  horizontalPodAutoscaler,
  clusterRole,
  clusterRoleBinding,
  role,
  roleBinding,
  certificateSigningRequest,
  customResourceDefinition,
  mutatingWebhookConfiguration,
  validatingWebhookConfiguration,
  ...reviews,
];

/** Every built-in kind that the version serves, in the versions of its group that it serves. */
export function builtInKinds(version: EmulatedVersion): readonly Kind[] {
  return sources.flatMap((source) => {
    const kind = withHostPorts(withSpec(typeof source === "function" ? source(version) : source), version);
    const [first, ...rest] = kind.versions.filter((v) => version.serves(kind.group, v, kind.kind));
    if (first === undefined) return [];
    return [
      rest.length + 1 === kind.versions.length ? kind : { ...kind, versions: [first, ...rest] as const },
    ];
  });
}

/** In the reference a spec is no pointer: every object of a kind that has one shows it. */
function withSpec(kind: Kind): Kind {
  if (structOf(structNameOf(kind.group, kind.kind))?.get("spec")?.type.form !== "struct") return kind;
  const filled = (object: KubeObject) => withDefaults(object as LooseObject, { spec: {} });
  return { ...kind, defaults: (object) => kind.defaults?.(filled(object)) ?? filled(object) };
}
