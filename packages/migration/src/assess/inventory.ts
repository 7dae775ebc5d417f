/** What an assessment looks at: the objects of a cluster that have to do with volumes, and what of them is not known. */
import type {
  CSIDriver,
  CSINode,
  Event,
  KubeObject,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  StorageClass,
  Stored,
  VolumeAttachment,
} from "@longshore/kube";
import type { VolumeSnapshot, VolumeSnapshotContent } from "@longshore/storage";
import type { RuleFinding } from "./assessment-finding.ts";

/** A disk that the vSphere driver has entered in the vCenter's list of container volumes (`cns.vmware.com/v1alpha1`). */
export interface VsphereRegistration extends KubeObject {
  readonly spec?: { readonly volumepath?: string; readonly volumeid?: string };
}

/** The objects of a cluster, as far as an assessment or a plan needs them. They are never changed. */
export interface Inventory {
  /** When the cluster was looked at. */
  readonly now: Date;
  readonly volumes: readonly Stored<PersistentVolume>[];
  readonly claims: readonly Stored<PersistentVolumeClaim>[];
  readonly classes: readonly Stored<StorageClass>[];
  readonly pods: readonly Stored<Pod>[];
  /** What makes pods: Deployments, StatefulSets, and so on. */
  readonly workloads: readonly Stored[];
  readonly attachments: readonly Stored<VolumeAttachment>[];
  readonly nodes: readonly Stored<Node>[];
  readonly csiNodes: readonly Stored<CSINode>[];
  readonly csiDrivers: readonly Stored<CSIDriver>[];
  readonly budgets: readonly Stored<PodDisruptionBudget>[];
  readonly snapshots: readonly Stored<VolumeSnapshot>[];
  readonly snapshotContents: readonly Stored<VolumeSnapshotContent>[];
  readonly vsphereRegistrations: readonly Stored<VsphereRegistration>[];
  /** Warnings that have to do with volumes. */
  readonly events: readonly Stored<Event>[];
  /** `namespace/name` of each Secret; undefined: not looked for. */
  readonly secrets: ReadonlySet<string> | undefined;
  /** What could not be looked at, as findings. */
  readonly gaps: readonly RuleFinding[];
  /** Kinds of which nothing is known. */
  readonly unread: ReadonlySet<string>;
}

/** The list of an inventory that a kind belongs to. */
export type InventoryList = Exclude<keyof Inventory, "now" | "secrets" | "gaps" | "unread">;

/** `Kind namespace/name`, as findings name objects. */
export function subjectOf(kind: string, object: KubeObject): string {
  const { namespace, name } = object.metadata ?? {};
  return `${kind} ${namespace === undefined || namespace === "" ? name : `${namespace}/${name}`}`;
}
