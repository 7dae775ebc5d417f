/** In which order the plugins of a cluster cross, where each has a journal of its own. */
import type { Host } from "@longshore/runtime";
import { isUnfinished, readJournal } from "./crossing-journal.ts";
import type { CrossingSubject } from "./crossing-subject.ts";

/**
 * These plugins in the order in which they are to be carried, one after the other: one whose crossing was left
 * unfinished comes first, as no other may begin before it has ended. @throws JournalError for a damaged journal
 */
export async function orderOfCrossings(
  host: Host,
  subjects: readonly CrossingSubject[],
  journalFileOf: (subject: CrossingSubject) => string,
): Promise<readonly CrossingSubject[]> {
  const unfinished = new Set<CrossingSubject>();
  for (const subject of subjects) {
    const journal = await readJournal(host, journalFileOf(subject));
    if (journal !== undefined && isUnfinished(journal)) unfinished.add(subject);
  }
  return [...unfinished, ...subjects.filter((subject) => !unfinished.has(subject))];
}
