/**
 * The journal of a crossing, a file that says what was begun, so that an interrupted run is resumed
 * and a second run at the same time is refused. It is a hint: what is observed in the cluster decides.
 */
import type { Host } from "@longshore/runtime";
import type { CrossingDirection } from "./crossing-subject.ts";
import type { Wait } from "./wait.ts";

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
  /** The step that has come to its end last. */
  readonly stepDone?: { readonly name: string; readonly nodeName?: string; readonly at: string };
  readonly waiting?: Wait & { readonly since: string };
  /** How it ended, unless it came to its end or was killed. */
  readonly ended?: { readonly at: string; readonly how: "timedOut" | "interrupted" | "failed" | "paused" };
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
  /** Nodes that have crossed, in order; of many the newest. */
  readonly nodesDone: readonly string[];
  /** How many nodes had crossed before those that are named. */
  readonly nodesDoneEarlier?: number;
  /** `madeAt` of the plan that the crossing follows. */
  readonly plan?: string;
  readonly run?: RunRecord;
  /** How often it was written: of two, the one with more is the newer state, whatever the clocks of two machines say. */
  readonly writes?: number;
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
  return text === undefined ? undefined : parseJournal(text, file);
}

/** The journal that the text holds. @param place where it was read, for errors @throws JournalError when it is damaged or newer */
export function parseJournal(text: string, place: string): CrossingJournal {
  let journal: Partial<CrossingJournal> | null;
  try {
    journal = JSON.parse(text) as Partial<CrossingJournal> | null;
  } catch (error) {
    throw new JournalError(`the journal ${place} is damaged: remove it; the cluster's own state decides`, {
      cause: error,
    });
  }
  if (journal?.version !== 1)
    throw new JournalError(`the journal ${place} is of a newer version of Longshore`);
  const { plugin, nodesDone, nodesDoneEarlier = 0 } = journal;
  if (typeof plugin !== "string" || !Array.isArray(nodesDone) || !Number.isInteger(nodesDoneEarlier)) {
    throw new JournalError(`the journal ${place} is damaged: remove it; the cluster's own state decides`);
  }
  return journal as CrossingJournal;
}

/** The text of a journal. */
export const journalText = (journal: object): string => `${JSON.stringify(journal, undefined, 2)}\n`;
