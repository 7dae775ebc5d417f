/**
 * The journal of a crossing, a file that says what was begun, so that an interrupted run is resumed
 * and a second run at the same time is refused. It is a hint: what is observed in the cluster decides.
 */
import type { Host } from "@longshore/runtime";
import type { CrossingDirection } from "./crossing-subject.ts";
import type { WaitSubject } from "./wait.ts";

/** Whose process carries the cluster. */
export interface Runner {
  readonly user: string;
  readonly host: string;
  readonly pid: number;
  /** When the process started, in a form that only needs to be compared: a pid alone may be another's by now. */
  readonly processStartedAt: string;
}

/** How the last run of a crossing goes. Times are RFC 3339. */
export interface RunRecord {
  readonly by?: Runner;
  readonly startedAt: string;
  /** The run wrote this at least so recently; while it runs it writes every half minute. */
  readonly aliveAt: string;
  readonly step?: { readonly name: string; readonly nodeName?: string; readonly since: string };
  readonly waiting?: { readonly since: string; readonly subjects: readonly WaitSubject[] };
  /** How it ended, unless it came to its end or was killed. */
  readonly ended?: { readonly at: string; readonly how: "timedOut" | "interrupted" | "failed" };
}

/** What the journal holds. */
export interface CrossingJournal {
  readonly version: 1;
  readonly platform: string;
  /** In-tree name of the plugin. */
  readonly plugin: string;
  readonly direction: CrossingDirection;
  /** RFC 3339. */
  readonly startedAt: string;
  readonly finishedAt?: string;
  /** Nodes that have crossed, in order. */
  readonly nodesDone: readonly string[];
  readonly run?: RunRecord;
}

/** Whether the crossing has not come to its end. */
export const isUnfinished = ({ finishedAt }: CrossingJournal): boolean => finishedAt === undefined;

/** The journal cannot be used for the crossing that was requested. */
export class JournalError extends Error {
  override readonly name = "JournalError";
}

/** The journal in the file, or undefined. @throws JournalError when it is damaged or newer */
export async function readJournal(host: Host, file: string): Promise<CrossingJournal | undefined> {
  const text = await host.readFile(file);
  if (text === undefined) return undefined;
  let journal: CrossingJournal;
  try {
    journal = JSON.parse(text) as CrossingJournal;
  } catch (error) {
    throw new JournalError(`the journal ${file} is damaged: remove it; the cluster's own state decides`, {
      cause: error,
    });
  }
  if (journal.version !== 1) throw new JournalError(`the journal ${file} is of a newer version of Longshore`);
  return journal;
}

/** Durable when it resolves. */
export async function writeJournal(host: Host, file: string, journal: CrossingJournal): Promise<void> {
  await host.writeFileAtomic(file, `${JSON.stringify(journal, undefined, 2)}\n`);
}
