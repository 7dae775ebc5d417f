/** How far a crossing is and who runs it, from its journal: what a view shows. Pure. */
import type { CrossingJournal, Runner, RunRecord } from "./crossing-journal.ts";
import type { CrossingDirection } from "./crossing-subject.ts";
import type { Wait } from "./wait.ts";

/** A crossing at a glance. Times are RFC 3339. */
export interface CrossingStatus {
  /** `interrupted`: it has not come to its end, and no process carries it. */
  readonly state: "running" | "interrupted" | "finished";
  /** In-tree name of the plugin. */
  readonly plugin: string;
  readonly direction: CrossingDirection;
  readonly startedAt: string;
  readonly finishedAt?: string;
  readonly nodesDone: readonly string[];
  /** How many nodes had crossed before those that are named. */
  readonly nodesDoneEarlier?: number;
  readonly by?: Runner;
  readonly step?: NonNullable<RunRecord["step"]>;
  readonly waiting?: Wait & { readonly since: string };
  /** Why no process carries it: how its run ended, or that its process is gone. */
  readonly interruption?: {
    readonly how: "timedOut" | "interrupted" | "failed" | "paused" | "gone";
    /** When it ended, or was last known to live. */
    readonly at: string;
  };
}

/** A run that has not written for so long, in milliseconds, is gone; it writes every half minute. */
const silentMs = 90_000;

/**
 * The status from the journal. `isAlive`: whether the process runs; undefined where that cannot be asked,
 * as on another host.
 */
export function crossingStatusOf(
  journal: CrossingJournal,
  isAlive: (runner: Runner) => boolean | undefined,
  now: Date,
): CrossingStatus {
  const { plugin, direction, startedAt, finishedAt, nodesDone, nodesDoneEarlier, run } = journal;
  const facts = {
    plugin,
    direction,
    startedAt,
    nodesDone,
    ...(nodesDoneEarlier === undefined ? {} : { nodesDoneEarlier }),
    ...(run?.by === undefined ? {} : { by: run.by }),
  };
  if (finishedAt !== undefined) return { state: "finished", ...facts, finishedAt };
  const step = run?.step === undefined ? {} : { step: run.step };
  const waiting = run?.waiting === undefined ? {} : { waiting: run.waiting };
  const interruption = interruptionOf(journal, isAlive, now);
  if (interruption === undefined) return { state: "running", ...facts, ...step, ...waiting };
  return { state: "interrupted", ...facts, ...step, ...waiting, interruption };
}

function interruptionOf(
  { startedAt, run }: CrossingJournal,
  isAlive: (runner: Runner) => boolean | undefined,
  now: Date,
): CrossingStatus["interruption"] {
  if (run === undefined) return { how: "gone", at: startedAt };
  if (run.ended !== undefined) return run.ended;
  const alive = run.by === undefined ? undefined : isAlive(run.by);
  // Where the process cannot be asked, as on another host, the age of its last write decides.
  if (alive ?? now.getTime() - Date.parse(run.aliveAt) < silentMs) return undefined;
  return { how: "gone", at: run.aliveAt };
}
