/** What a conversion needs, what it is asked to do, and what it reports. */
import type { KubeClient } from "@longshore/kube";
import type { Host, RuntimeEnv } from "@longshore/runtime";
import type { WaitReport } from "../crossing/wait.ts";
import type { HandleRule } from "./conversion-types.ts";

/** The seams of a conversion. */
export interface ConversionEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  /** Where the journals and the saved objects lie. */
  readonly host: Host;
}

/** Which volumes are meant; of several conditions all must hold. */
export interface VolumeSelection {
  /** Names of PersistentVolumes. */
  readonly volumes?: readonly string[];
  /** Of the claims. */
  readonly namespaces?: readonly string[];
  /** In-tree names of plugins. */
  readonly plugins?: readonly string[];
  /** Selects claims by their labels. */
  readonly selector?: string;
}

/** How the plan is made. */
export interface ConversionPlanOptions extends VolumeSelection {
  /** No volume is meant, but the objects below. */
  readonly noVolumes?: boolean;
  /** In-tree StorageClasses are replaced. */
  readonly classes?: boolean;
  /** Claim templates of StatefulSets are changed: the sets are made again around their pods. */
  readonly templates?: boolean;
  /** New classes are made beside the old ones, with this at the end of the name. Default: in their place. */
  readonly classSuffix?: string;
  /** Volumes of this driver, by the rule, in place of in-tree ones. */
  readonly rule?: HandleRule;
  /** Workloads that use the claims are scaled to no replicas for the time, and back. */
  readonly scaleDown?: boolean;
  /** A disk in use is waited for. */
  readonly wait?: boolean;
  /** Controllers that own claims have been paused by the administrator. */
  readonly ownersPaused?: boolean;
}

/** How the plan is carried out. */
export interface ConversionRunOptions {
  /** Of the files of the journals. */
  readonly journalDir: string;
  /** The objects that are to be removed are saved here first. */
  readonly backupDir?: string;
  /** Volumes at the same time at most; default 1. Those of one workload go together. */
  readonly parallel?: number;
  /** Volumes of one batch; a failure keeps the next batch from beginning. Default: all. */
  readonly batch?: number;
  /** Pauses after so many batches. */
  readonly pauseAfter?: number;
  /** A step that takes longer fails, in milliseconds; default that of crossings. */
  readonly stepTimeoutMs?: number;
  readonly onEvent?: (event: ConversionEvent) => void;
}

/** The progress of one volume, or of another unit by its name, such as `StatefulSet shop/web`. Times are in milliseconds. */
export type ConversionEvent =
  | { readonly kind: "volumeStarted"; readonly volume: string }
  | { readonly kind: "stepDone"; readonly volume: string; readonly step: string; readonly ms: number }
  | ({ readonly kind: "waiting"; readonly volume: string; readonly step: string } & WaitReport)
  | { readonly kind: "volumeDone"; readonly volume: string; readonly requests: number; readonly ms: number }
  | { readonly kind: "volumeFailed"; readonly volume: string; readonly error: string };
