/** What one pass over the size of a claim knows: the input of `decideResizeStep`. */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import type { ResizeFacts } from "./resize-goal.ts";
import type { Grown } from "./volume-growth.ts";

/** What holds for every claim of the driver. */
export interface ResizeRules {
  /** The driver has SINGLE_NODE_MULTI_WRITER. */
  readonly singleNodeMultiWriter: boolean;
  /** Volumes whose file system has yet to grow carry a note of their size before. */
  readonly notesOldSize: boolean;
  /** Which pods use a claim is followed, once a driver refuses volumes in use. */
  readonly followsPods: boolean;
  /** What is impossible is tried again after this time, in milliseconds. */
  readonly infeasibleRetryMs: number;
}

/** An attempt that failed, and how far that was reported. */
export interface Refusal {
  readonly error: unknown;
  /** When, as the API writes it. */
  readonly time: string;
  readonly isRemembered?: boolean;
  readonly isEmitted?: boolean;
  readonly isReported?: boolean;
}

/** What the actions of this pass have read and done. */
export interface ResizeProgress {
  readonly arePodsFollowed?: boolean;
  readonly isInUseEmitted?: boolean;
  /** The size that is under way, once that is stored. */
  readonly begunSize?: string;
  readonly isResizingEmitted?: boolean;
  /** The values of the volume's secret, once read. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** The volume has grown; when, as the API writes it. */
  readonly grown?: Grown & { readonly time: string };
  readonly isCapacityStored?: boolean;
  readonly isReported?: boolean;
  readonly isEndEmitted?: boolean;
  readonly refusal?: Refusal;
  /** What the volume has become could not be stored. */
  readonly storeFailure?: { readonly error: unknown; readonly isEmitted?: boolean };
}

/** What one pass over a claim knows. */
export interface ObservedResize extends ResizeFacts {
  readonly claim: Stored<PersistentVolumeClaim>;
  readonly volume: Stored<PersistentVolume>;
  readonly rules: ResizeRules;
  /** The time of the observation, as the API writes it. */
  readonly time: string;
  readonly progress: ResizeProgress;
}
