/**
 * The words of a conversion: a PersistentVolume's source is immutable, so a disk gets a PersistentVolume of another form
 * by putting a new object in the place of the old one, and the claim again in front of it (decision record 0031).
 *
 * A conversion is symmetric: `from` and `to` are two PersistentVolumes for one disk, and undoing is the same with both exchanged.
 */
import type {
  KubeObject,
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
  Stored,
} from "@longshore/kube";

/** In-tree to CSI (`convert`), or back (`undo`). */
export type ConversionDirection = "convert" | "undo";

/** The steps of one volume, in order. Each first looks whether it is done already. */
export const volumeSteps = [
  /** Policy Retain on the PersistentVolume that is there, and read back. */
  "retain old volume",
  /** Workloads that may be scaled have no replicas. */
  "scale down",
  /** No pod uses the claim, nothing is attached, no node has the disk in use. */
  "wait for quiet",
  /** The file system of a claim that has grown since needs a pod to grow: the workloads that were scaled down are up meanwhile. */
  "scale up to grow",
  /** An expansion of the claim that was asked for since the plan comes to its end. */
  "await growth",
  /** The plan, and a PersistentVolume that was made by it, get the sizes that there are now. */
  "follow growth",
  /** The new PersistentVolume, pre-bound to the claim's name, policy Retain. */
  "create new volume",
  /** A PersistentVolume of an earlier, interrupted run forgets the UID of the claim that is gone. */
  "free new volume",
  /** The persistent-volume controller has seen the new PersistentVolume. */
  "await new volume",
  "delete claim",
  "await claim gone",
  "create claim",
  "await bound",
  "delete old volume",
  "await old volume gone",
  /** The new PersistentVolume gets the policy that the old one had. */
  "restore policy",
  "scale up",
] as const;
/** One of them. */
export type VolumeStep = (typeof volumeSteps)[number];

/** What is to be done next with one volume. */
export type VolumeDecision =
  | { readonly step: VolumeStep; readonly why: string }
  | { readonly step: "done" }
  /** Nothing may be done: the cluster is in a state that the conversion did not make. */
  | { readonly step: "blocked"; readonly refusal: Refusal };

/** Why a volume is not converted, each by name. */
export type RefusalCode =
  | "volume-in-use"
  | "claim-deleting"
  | "claim-not-bound"
  | "volume-released"
  | "volume-failed"
  | "volume-deleting"
  | "volume-without-claim"
  | "volume-not-found"
  | "owner-recreates-claim"
  | "owner-needs-action"
  | "quota"
  | "admission"
  | "disk-shared"
  | "translation"
  | "driver-missing"
  | "snapshot"
  | "name-taken"
  | "changed-by-others";

/** One reason against a conversion. Nothing was changed. */
export interface Refusal {
  readonly code: RefusalCode;
  /** e.g. `PersistentVolume pv-1`. */
  readonly object: string;
  /** e.g. `spec.persistentVolumeReclaimPolicy`. */
  readonly field?: string;
  readonly reason: string;
  readonly remedy: string;
}

/** A field that is not the same in the new object. */
export interface Difference {
  /** e.g. `PersistentVolume`. */
  readonly kind: string;
  /** e.g. `spec.awsElasticBlockStore`. */
  readonly field: string;
  /** Undefined: there was none. JSON values. */
  readonly before?: unknown;
  /** Undefined: there is none. JSON values. */
  readonly after?: unknown;
  readonly why?: string;
}

/** What a pure function of `objects/` returns: the new object and how it differs, or why there is none. */
export type Converted<T> =
  | { readonly object: T; readonly differences: readonly Difference[] }
  | { readonly failure: string };

/** Maps the handles of one CSI driver to those of another; read from a rule file. */
export interface HandleRule {
  readonly fromDriver: string;
  readonly toDriver: string;
  /** The volume with the other driver's source. Does not look at `metadata`. */
  convert(volume: PersistentVolume): Converted<PersistentVolume>;
}

/** Who made an object, and what they must commit so that it is not made again in the old form. */
export interface ObjectOwner {
  readonly kind: "Helm" | "Argo CD" | "Flux" | "controller";
  /** e.g. `release web in namespace shop`, or `StatefulSet shop/web`. */
  readonly name: string;
  /** The change to the manifest, in words and YAML. */
  readonly change: string;
}

/** A workload whose replicas the run may set. */
export interface ScaledWorkload {
  readonly kind: "StatefulSet" | "Deployment" | "ReplicaSet";
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Replicas before. */
  readonly replicas: number;
}

/** One volume as planned. */
export interface PlannedVolume {
  /** Name of the PersistentVolume that is there. */
  readonly volume: string;
  readonly volumeUid: string;
  /** In-tree name of the plugin, or the driver that it comes from. */
  readonly plugin: string;
  readonly driver: string;
  readonly claim: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly fromBefore: PersistentVolume;
  readonly claimBefore: PersistentVolumeClaim;
  readonly toAfter: PersistentVolume;
  readonly claimAfter: PersistentVolumeClaim;
  readonly differences: readonly Difference[];
  /** Policy of the PersistentVolume before, which the new one has in the end. */
  readonly policy: string;
  /** Workloads to be scaled to no replicas for the time of the conversion. */
  readonly workloads: readonly ScaledWorkload[];
  readonly owners: readonly ObjectOwner[];
  /** What must end before, in words; empty: there is no downtime but for the few requests. */
  readonly inUseBy: readonly string[];
  readonly snapshots: readonly string[];
}

/** Kinds that are replaced. */
export type ReplacedKind = "StatefulSet" | "StorageClass";

/** A class or a StatefulSet as planned. */
export interface PlannedReplacement {
  /** What names the unit in both directions, e.g. `StatefulSet shop/web`. */
  readonly key: string;
  readonly kind: ReplacedKind;
  readonly namespace?: string;
  /** Of the object that is there. */
  readonly name: string;
  /** UID of it; empty: it is not there, and is made from `after`. */
  readonly uid: string;
  readonly before: KubeObject;
  readonly after: KubeObject;
  /** The object that is there stays beside the new one, which has another name. */
  readonly keepsOld: boolean;
  /** A run that was interrupted has asked for the deletion of the object: it may be found being deleted. */
  readonly deletionBegun: boolean;
  readonly differences: readonly Difference[];
  readonly owners: readonly ObjectOwner[];
}

/** What a plan holds. */
export interface ConversionPlan {
  readonly version: 1;
  /** UID of the namespace kube-system. */
  readonly clusterId: string;
  /** RFC 3339. */
  readonly madeAt: string;
  readonly volumes: readonly PlannedVolume[];
  readonly refused: readonly { readonly volume: string; readonly refusals: readonly Refusal[] }[];
  /** Classes of the volumes that still make in-tree ones: an administrator puts the new ones in their place. */
  readonly classes?: readonly { readonly before: StorageClass; readonly after: StorageClass }[];
  /** Classes and StatefulSets that are replaced, in this order. */
  readonly replacements?: readonly PlannedReplacement[];
}

/** The journal of one volume: all that is needed to go on, or back, from any machine. Holds no secret values. */
export interface VolumeJournal {
  readonly version: 1;
  readonly clusterId: string;
  readonly direction: ConversionDirection;
  readonly planned: PlannedVolume;
  /** Step that was begun last; its outcome may be unknown. */
  readonly begun?: { readonly step: VolumeStep; readonly at: string };
  /** Steps that have come to their end, in order, of both directions. */
  readonly done: readonly {
    readonly direction: ConversionDirection;
    readonly step: VolumeStep;
    readonly at: string;
  }[];
  /** UIDs of the objects that the run has made. */
  readonly made: { readonly volumeUid?: string; readonly claimUid?: string };
  readonly finishedAt?: string;
  /** API requests that the volume has cost. */
  readonly requests: number;
  /** How often it was written. */
  readonly writes?: number;
}

/** What is observed of one volume; the decision is a pure function of it and the journal. */
export interface VolumeObservation {
  readonly from: Stored<PersistentVolume> | undefined;
  readonly to: Stored<PersistentVolume> | undefined;
  readonly claim: Stored<PersistentVolumeClaim> | undefined;
  /** Who uses or holds the disk, in words, e.g. `Pod default/w-0`; empty: it is quiet. */
  readonly users: readonly string[];
  /** Workloads of the plan that still have replicas (`scale down`) or have not theirs again (`scale up`). */
  readonly workloadsUp: readonly ScaledWorkload[];
  readonly workloadsDown: readonly ScaledWorkload[];
}
