/** What one pass over the attributes of a claim's volume knows: the input of `decideModifyStep`. */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import type { ModifyFacts, ModifyGoal } from "./modify-goal.ts";

/** What holds for every claim of the driver. */
export interface ModifyRules {
  /** What is impossible is tried again after this time, in milliseconds. */
  readonly infeasibleRetryMs: number;
  /** The driver receives the names of claim and volume. */
  readonly extraMetadata: boolean;
}

/** An attempt that failed, and how far that was reported. */
export interface ModifyRefusal {
  readonly message: string;
  /** Only another class helps. */
  readonly isInfeasible: boolean;
  /** Nothing is under way any more. */
  readonly isFinal: boolean;
  readonly cause?: unknown;
  /** When, as the API writes it. */
  readonly time: string;
  readonly isRemembered?: boolean;
  readonly isEmitted?: boolean;
  readonly isReported?: boolean;
}

/** What the actions of this pass have read and done. */
export interface ModifyProgress {
  /** What is under way, once that is stored. */
  readonly begun?: ModifyGoal & { readonly kind: "modify" };
  readonly isModifyingEmitted?: boolean;
  /** The values of the volume's secret, once read. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** The driver has applied the class. */
  readonly isModified?: boolean;
  readonly isClassStored?: boolean;
  readonly isReported?: boolean;
  readonly refusal?: ModifyRefusal;
  /** The class that is in force could not be stored. */
  readonly storeFailure?: { readonly error: unknown; readonly isEmitted?: boolean };
}

/** What one pass over a claim knows. */
export interface ObservedModify extends ModifyFacts {
  readonly claim: Stored<PersistentVolumeClaim>;
  readonly volume: Stored<PersistentVolume>;
  readonly rules: ModifyRules;
  /** The time of the observation, as the API writes it. */
  readonly time: string;
  readonly progress: ModifyProgress;
}
