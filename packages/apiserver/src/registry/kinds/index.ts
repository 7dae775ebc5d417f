/** The table of all kinds that are built in. */
import type { KubeObject } from "@longshore/kube";
import type { Kind } from "../kind.ts";

type Rest = Partial<Omit<Kind, "group" | "kind" | "plural">>;

function core(kind: string, plural: string, rest: Rest = {}): Kind {
  return { group: "", versions: ["v1"], kind, plural, namespaced: true, ...rest };
}

function inGroup(group: string, kind: string, plural: string, rest: Rest = {}): Kind {
  return { group, versions: ["v1"], kind, plural, namespaced: true, ...rest };
}

const text = (value: unknown): string => (value === undefined ? "" : String(value));

interface Loose extends KubeObject {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
  readonly type?: string;
  readonly reason?: string;
  readonly source?: { readonly component?: string };
  readonly reportingComponent?: string;
  readonly involvedObject?: Readonly<Record<string, unknown>>;
}

function podFields(object: KubeObject): Readonly<Record<string, string>> {
  const { spec, status } = object as Loose;
  return {
    "spec.nodeName": text(spec?.nodeName),
    "spec.restartPolicy": text(spec?.restartPolicy),
    "spec.schedulerName": text(spec?.schedulerName),
    "spec.serviceAccountName": text(spec?.serviceAccountName),
    "status.phase": text(status?.phase),
    "status.podIP": text(status?.podIP),
    "status.nominatedNodeName": text(status?.nominatedNodeName),
  };
}

function eventFields(object: KubeObject): Readonly<Record<string, string>> {
  const { involvedObject = {}, reason, type, source, reportingComponent } = object as Loose;
  const fields: Record<string, string> = {
    reason: text(reason),
    type: text(type),
    source: text(source?.component ?? reportingComponent),
    reportingComponent: text(reportingComponent),
  };
  for (const key of ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"]) {
    fields[`involvedObject.${key}`] = text(involvedObject[key]);
  }
  return fields;
}

const storageGroup = "storage.k8s.io";

/** Every built-in kind. */
export const builtInKinds: readonly Kind[] = [
  core("Namespace", "namespaces", {
    namespaced: false,
    shortNames: ["ns"],
    statusSubresource: true,
    noDeleteCollection: true,
    subresources: { finalize: { kind: "Namespace", verbs: ["update"] } },
    names: "label",
    fields: (o) => ({ "status.phase": text((o as Loose).status?.phase) }),
  }),
  core("Node", "nodes", {
    namespaced: false,
    shortNames: ["no"],
    statusSubresource: true,
    fields: (o) => ({ "spec.unschedulable": String((o as Loose).spec?.unschedulable ?? false) }),
  }),
  core("Pod", "pods", {
    shortNames: ["po"],
    categories: ["all"],
    statusSubresource: true,
    answersDeleted: true,
    subresources: {
      binding: { kind: "Binding", verbs: ["create"] },
      eviction: { group: "policy", version: "v1beta1", kind: "Eviction", verbs: ["create"] },
    },
    fields: podFields,
    prepareCreate: (o) => ({ ...o, status: { phase: "Pending", ...(o as Loose).status } }) as KubeObject,
  }),
  core("PersistentVolume", "persistentvolumes", {
    namespaced: false,
    shortNames: ["pv"],
    statusSubresource: true,
    answersDeleted: true,
  }),
  core("PersistentVolumeClaim", "persistentvolumeclaims", {
    shortNames: ["pvc"],
    statusSubresource: true,
    answersDeleted: true,
  }),
  core("Secret", "secrets", { fields: (o) => ({ type: text((o as Loose).type) }) }),
  core("ConfigMap", "configmaps", { shortNames: ["cm"] }),
  core("Event", "events", { shortNames: ["ev"], fields: eventFields, createsOnUpdate: true }),
  core("Service", "services", { shortNames: ["svc"], categories: ["all"], statusSubresource: true }),
  core("ServiceAccount", "serviceaccounts", { shortNames: ["sa"], answersDeleted: true }),
  inGroup(storageGroup, "StorageClass", "storageclasses", {
    namespaced: false,
    shortNames: ["sc"],
    answersDeleted: true,
  }),
  inGroup(storageGroup, "VolumeAttachment", "volumeattachments", {
    namespaced: false,
    statusSubresource: true,
    statusKeepsMetadata: true,
    updateNeedsVersion: true,
    answersDeleted: true,
  }),
  inGroup(storageGroup, "CSINode", "csinodes", {
    namespaced: false,
    updateNeedsVersion: true,
    answersDeleted: true,
  }),
  inGroup(storageGroup, "CSIDriver", "csidrivers", {
    namespaced: false,
    versions: ["v1", "v1beta1"],
    answersDeleted: true,
  }),
  inGroup("coordination.k8s.io", "Lease", "leases", { createsOnUpdate: true, updateNeedsVersion: true }),
  inGroup("apps", "StatefulSet", "statefulsets", {
    shortNames: ["sts"],
    categories: ["all"],
    statusSubresource: true,
    countsGenerations: true,
  }),
  inGroup("apps", "Deployment", "deployments", {
    shortNames: ["deploy"],
    categories: ["all"],
    statusSubresource: true,
    countsGenerations: true,
  }),
  inGroup("apps", "ReplicaSet", "replicasets", {
    shortNames: ["rs"],
    categories: ["all"],
    statusSubresource: true,
    countsGenerations: true,
  }),
  inGroup("apps", "DaemonSet", "daemonsets", {
    shortNames: ["ds"],
    categories: ["all"],
    statusSubresource: true,
    countsGenerations: true,
  }),
  inGroup("policy", "PodDisruptionBudget", "poddisruptionbudgets", {
    versions: ["v1beta1", "v1"],
    shortNames: ["pdb"],
    statusSubresource: true,
    countsGenerations: true,
  }),
];
