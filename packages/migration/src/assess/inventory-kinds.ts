/**
 * The kinds that an inventory holds: from one table come what is listed, which rights that takes, what of an object
 * is kept, and which kinds a dump must have.
 */
import { type KubeObject, type Resource, resources } from "@longshore/kube";
import { snapshotResources } from "@longshore/storage";
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
  /** It was asked for by name, so that it is missed where it is not served. */
  readonly isNamed?: true;
  /** Only these objects are read, as a selector of fields of the API. */
  readonly fieldSelector?: string;
  /** False for an object that no rule looks at; default: all are kept. */
  isKept?(object: KubeObject): boolean;
  /** The parts of an object that the rules look at; a large cluster has many more. */
  keep(object: KubeObject): KubeObject;
}

const whole = (object: KubeObject): KubeObject => ({ ...object, metadata: keptMetadata(object) });

function keptMetadata({ metadata = {} }: KubeObject): NonNullable<KubeObject["metadata"]> {
  const { managedFields: _fields, ...kept } = metadata;
  return kept;
}

/** Names, labels, annotations and finalizers: of 100,000 volumes the rest is some ten megabytes. */
function keptVolume(object: KubeObject): KubeObject {
  return { ...object, metadata: identity(object) } as KubeObject;
}

function keptClaim(object: KubeObject): KubeObject {
  const { spec, status } = object as { spec?: PodMembers; status?: PodMembers };
  return {
    kind: "PersistentVolumeClaim",
    metadata: identity(object),
    spec: { volumeName: spec?.volumeName, storageClassName: spec?.storageClassName },
    status: { phase: status?.phase },
  } as KubeObject;
}

function identity({ metadata = {} }: KubeObject): object {
  const { name, namespace, uid, labels, annotations, finalizers, deletionTimestamp } = metadata;
  return { name, namespace, uid, labels, annotations, finalizers, deletionTimestamp };
}

function pick(value: unknown, ...names: readonly string[]): object {
  if (!isObject(value)) return {};
  return Object.fromEntries(names.flatMap((name) => (value[name] == null ? [] : [[name, value[name]]])));
}

/** Annotations of pods are many and long, and no rule looks at them. */
function keptPod(object: KubeObject): KubeObject {
  const { name, namespace, labels, deletionTimestamp, ownerReferences } = object.metadata ?? {};
  const { spec, status } = object as { spec?: PodMembers; status?: PodMembers };
  const all = Array.isArray(spec?.volumes) ? spec.volumes : [];
  // Findings name the place of a volume where it is written down, which for a pod with a controller is elsewhere.
  const isMade = ownerReferences?.some(({ controller }) => controller === true) === true;
  const volumes = isMade ? all.filter(mayBeDisk) : all;
  const metadata = { name, namespace, labels, deletionTimestamp, ownerReferences: isMade ? made : [] };
  const conditions = volumes.some(isPluginDirectory) ? status?.conditions : undefined;
  return {
    kind: "Pod",
    metadata,
    spec: { nodeName: spec?.nodeName, volumes, securityContext: spec?.securityContext },
    status: { phase: status?.phase, conditions },
  } as unknown as KubeObject;
}

type PodMembers = Readonly<Record<string, unknown>>;
/** Which controller it is does not matter. */
const made = [{ controller: true }];
/** Volumes that have nothing to do with disks: most pods have some, and no rule looks at them. */
const otherVolumes = ["configMap", "secret", "projected", "emptyDir", "downwardAPI"];

function mayBeDisk(volume: unknown): boolean {
  return isObject(volume) && !otherVolumes.some((field) => volume[field] != null);
}

/** Where a driver of volumes has its socket on the node: its pods are known by that. */
function isPluginDirectory(volume: unknown): boolean {
  const path = member(volume, "hostPath", "path");
  return typeof path === "string" && path.includes("/plugins/");
}

function keptNode(object: KubeObject): KubeObject {
  return {
    kind: "Node",
    metadata: keptMetadata(object),
    spec: pick(member(object, "spec"), "unschedulable", "taints", "providerID"),
    status: {
      ...pick(member(object, "status"), "volumesInUse", "volumesAttached", "conditions"),
      allocatable: keptLimits(member(object, "status", "allocatable")),
      nodeInfo: pick(member(object, "status", "nodeInfo"), "kubeletVersion"),
    },
  } as KubeObject;
}

/** How many volumes of each in-tree plugin the node may have. */
function keptLimits(allocatable: unknown): object {
  if (!isObject(allocatable)) return {};
  return pick(
    allocatable,
    ...Object.keys(allocatable).filter((name) => name.startsWith("attachable-volumes-")),
  );
}

function keptEvent(object: KubeObject): KubeObject {
  const { name, namespace } = object.metadata ?? {};
  return {
    kind: "Event",
    metadata: { name, namespace },
    ...pick(object, "involvedObject", "reason", "message", "count", "lastTimestamp", "eventTime"),
  } as KubeObject;
}

/** Reasons with which controllers and kubelets say that something failed with a volume. */
const volumeReasons: ReadonlySet<unknown> = new Set([
  ...["FailedAttachVolume", "FailedMount", "FailedMapVolume", "FailedDetachVolume", "FailedUnMount"],
  ...["ProvisioningFailed", "VolumeFailedDelete", "VolumeResizeFailed", "FileSystemResizeFailed"],
]);

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

const vsphereRegistrations: Resource<KubeObject> = {
  group: "cns.vmware.com",
  versions: ["v1alpha1"],
  plural: "cnsvspherevolumemigrations",
  kind: "CnsVSphereVolumeMigration",
  namespaced: false,
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
    keep: keptVolume,
  },
  { resource: resources.persistentVolumeClaims, list: "claims", essential: true, keep: keptClaim },
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
  {
    resource: snapshotResources.volumeSnapshots,
    list: "snapshots",
    objects: ["spec"],
    essential: false,
    keep: whole,
  },
  {
    resource: snapshotResources.volumeSnapshotContents,
    list: "snapshotContents",
    objects: ["spec"],
    essential: false,
    keep: whole,
  },
  { resource: vsphereRegistrations, list: "vsphereRegistrations", essential: false, keep: whole },
  {
    resource: resources.events,
    list: "events",
    essential: false,
    fieldSelector: "type=Warning",
    isKept: (event) => volumeReasons.has(member(event, "reason")),
    keep: keptEvent,
  },
  ...[
    resources.statefulSets,
    resources.deployments,
    resources.daemonSets,
    resources.replicaSets,
    resources.jobs,
    cronJobs,
  ].map((resource): InventoryKind => ({ resource, list: "workloads", essential: false, keep: keptWorkload })),
];
