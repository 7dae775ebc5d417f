/** What an assessment looks at: the objects of a cluster that have to do with volumes, and what of them is not known. */
import type {
  CSIDriver,
  CSINode,
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
import type { RuleFinding } from "./assessment-finding.ts";

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
