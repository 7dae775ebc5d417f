/**
 * The kinds that an inventory holds: from one table come what is listed, which rights that takes, what of an object
 * is kept, and which kinds a dump must have.
 */
import { type KubeObject, type Resource, resources } from "@longshore/kube";
import { isObject, member } from "../convert/kube-object.ts";
import { podHolderOf } from "../convert/pod-volumes.ts";
import type { InventoryList } from "./inventory.ts";

/** One kind of an inventory. */
export interface InventoryKind {
  readonly resource: Resource<KubeObject>;
  readonly list: InventoryList;
  /** Without these objects there is no verdict. */
  readonly essential: boolean;
  /** Fields that each object of the kind has, and that are objects. */
  readonly objects?: readonly string[];
  /** Fields that are lists where they are there. */
  readonly arrays?: readonly string[];
  /** The parts of an object that the rules look at; a large cluster has many more. */
  keep(object: KubeObject): KubeObject;
}

const whole = (object: KubeObject): KubeObject => ({ ...object, metadata: keptMetadata(object) });

function keptMetadata({ metadata = {} }: KubeObject): NonNullable<KubeObject["metadata"]> {
  const { managedFields: _fields, ...kept } = metadata;
  return kept;
}

function pick(value: unknown, ...names: readonly string[]): object {
  if (!isObject(value)) return {};
  return Object.fromEntries(names.flatMap((name) => (value[name] == null ? [] : [[name, value[name]]])));
}

/** Annotations of pods are many and long, and no rule looks at them. */
function keptPod(object: KubeObject): KubeObject {
  const { annotations: _annotations, ...metadata } = keptMetadata(object);
  return {
    kind: "Pod",
    metadata,
    spec: pick(member(object, "spec"), "nodeName", "volumes", "securityContext"),
    status: pick(member(object, "status"), "phase"),
  } as KubeObject;
}

function keptNode(object: KubeObject): KubeObject {
  return {
    kind: "Node",
    metadata: keptMetadata(object),
    spec: pick(member(object, "spec"), "unschedulable", "taints", "providerID"),
    status: {
      ...pick(member(object, "status"), "volumesInUse", "volumesAttached", "conditions"),
      nodeInfo: pick(member(object, "status", "nodeInfo"), "kubeletVersion"),
    },
  } as KubeObject;
}

/** The volumes of its pods, at the place where its kind has them. */
function keptWorkload(object: KubeObject): KubeObject {
  const holder = podHolderOf(object as Parameters<typeof podHolderOf>[0]);
  const { name = "", namespace = "", ownerReferences = [] } = object.metadata ?? {};
  const metadata = { name, namespace, ownerReferences };
  const volumes = member(object, ...(holder?.path ?? []), "volumes");
  const inner = (holder?.path ?? []).reduceRight<object>((below, at) => ({ [at]: below }), { volumes });
  return { kind: object.kind, metadata, ...inner } as KubeObject;
}

const cronJobs: Resource<KubeObject> = {
  group: "batch",
  versions: ["v1", "v1beta1"],
  plural: "cronjobs",
  kind: "CronJob",
  namespaced: true,
};

/** Every kind, in the order in which they are read. */
export const inventoryKinds: readonly InventoryKind[] = [
  {
    resource: resources.nodes,
    list: "nodes",
    arrays: ["spec.taints", "status.volumesInUse"],
    essential: true,
    keep: keptNode,
  },
  {
    resource: resources.csiNodes,
    list: "csiNodes",
    objects: ["spec"],
    arrays: ["spec.drivers"],
    essential: true,
    keep: whole,
  },
  { resource: resources.csiDrivers, list: "csiDrivers", essential: false, keep: whole },
  {
    resource: resources.persistentVolumes,
    list: "volumes",
    objects: ["spec"],
    arrays: ["spec.accessModes"],
    essential: true,
    keep: whole,
  },
  { resource: resources.persistentVolumeClaims, list: "claims", essential: true, keep: whole },
  { resource: resources.storageClasses, list: "classes", essential: false, keep: whole },
  {
    resource: resources.volumeAttachments,
    list: "attachments",
    objects: ["spec", "spec.source"],
    essential: false,
    keep: whole,
  },
  {
    resource: resources.pods,
    list: "pods",
    objects: ["spec"],
    arrays: ["spec.volumes"],
    essential: true,
    keep: keptPod,
  },
  { resource: resources.podDisruptionBudgets, list: "budgets", essential: false, keep: whole },
  ...[
    resources.statefulSets,
    resources.deployments,
    resources.daemonSets,
    resources.replicaSets,
    resources.jobs,
    cronJobs,
  ].map((resource): InventoryKind => ({ resource, list: "workloads", essential: false, keep: keptWorkload })),
];
