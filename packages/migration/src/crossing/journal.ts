/**
 * The journal of a crossing, a file that says what was begun, so that an interrupted run is resumed
 * and a second one beside it refused. It is a hint: what is observed in the cluster decides.
 */
import type { Host } from "@longshore/runtime";
import type { CrossingDirection } from "./subject.ts";

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
}

/** The journal cannot be used for the crossing that was asked for. */
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
