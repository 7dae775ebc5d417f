/** What a crossing needs, and what it is asked to do. */
import type { KubeClient } from "@longshore/kube";
import type { Host, RuntimeEnv } from "@longshore/runtime";
import type { CrossingListener } from "./crossing-events.ts";
import type { Runner } from "./crossing-journal.ts";
import type { CrossingDirection, CrossingSubject } from "./crossing-subject.ts";
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
  /** Evicts pods that no controller brings back. */
  readonly force?: boolean;
  readonly onEvent?: CrossingListener;
  /** A step that takes longer than this fails, in milliseconds; default {@link defaultStepTimeoutMs}. */
  readonly stepTimeoutMs?: number;
  /** Whose process this is, for the journal. */
  readonly by?: Runner;
}

/** How long a step may take, in milliseconds. */
export const defaultStepTimeoutMs = 10 * 60_000;
