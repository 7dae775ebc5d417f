/** What a crossing needs, and what it is asked to do. */
import type { KubeClient } from "@longshore/kube";
import type { Host, RuntimeEnv } from "@longshore/runtime";
import type { CrossingListener } from "./crossing-events.ts";
import type { Runner } from "./crossing-journal.ts";
import type { CrossingDirection, CrossingSubject } from "./crossing-subject.ts";
import type { CrossingPlan } from "./plan-document.ts";
import type { Platform } from "./platform.ts";

/** The seams of a crossing. */
export interface CrossingEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly platform: Platform;
  /** Where the journal lies. */
  readonly host: Host;
}

/** What is to be done. */
export interface CrossingOptions {
  readonly subject: CrossingSubject;
  readonly direction: CrossingDirection;
  readonly journalFile: string;
  /** Journals of the cluster's other plugins: the crossing does not begin while one of these is unfinished. */
  readonly otherJournalFiles?: readonly string[];
  /** Also keeps the journal in a ConfigMap, from which another machine can go on, and looks there for those of other plugins. */
  readonly clusterJournal?: boolean;
  /** The plan to follow: the run does not begin where the cluster is no longer as it says, and crosses no other node. */
  readonly plan?: CrossingPlan;
  /** Nodes that cross at the same time at most; default that of the plan, or 1. */
  readonly maxUnavailable?: number;
  /** Crosses only these nodes, and leaves the crossing unfinished unless there are no others. */
  readonly onlyNodes?: readonly string[];
  /** Pauses after so many batches of nodes, and leaves the crossing unfinished unless there are no more. */
  readonly pauseAfter?: number;
  /** Evicts pods that no controller brings back. */
  readonly force?: boolean;
  /** The run goes on after it has lost its Lease: it waits for an API server that is unreachable also at its start. Default false. */
  readonly isLaterTerm?: boolean;
  readonly onEvent?: CrossingListener;
  /** A step that takes longer than this fails, in milliseconds; default {@link defaultStepTimeoutMs}. */
  readonly stepTimeoutMs?: number;
  /** Whose process this is, for the journal. */
  readonly by?: Runner;
}

/** How long a step may take, in milliseconds. */
export const defaultStepTimeoutMs = 10 * 60_000;
