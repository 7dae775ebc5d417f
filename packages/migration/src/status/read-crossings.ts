/** The crossings of a cluster, those that there have been, from their journals in it. */
import { KubeApiError, type KubeClient } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import { type CrossingStatus, crossingStatusOf } from "../crossing/crossing-status.ts";
import { allSubjects } from "../crossing/crossing-subject.ts";
import { configMapJournal } from "../crossing/journal-store.ts";

/** What was read; `gap` where the journals may not be. */
export interface CrossingsRead {
  readonly crossings: readonly CrossingStatus[];
  readonly gap?: string;
}

/** Reads one ConfigMap for each plugin. @throws JournalError for a damaged one, and what the client throws but that it is forbidden */
export async function readCrossings(
  env: { readonly clock: Pick<Clock, "now">; readonly kube: KubeClient },
  signal: AbortSignal,
): Promise<CrossingsRead> {
  const stores = allSubjects().map((subject) => configMapJournal(env.kube, subject));
  try {
    const journals = await Promise.all(stores.map((store) => store.read(signal)));
    return {
      crossings: journals
        .filter((journal) => journal !== undefined)
        // Whether the process of another machine lives cannot be asked: the age of its last word decides.
        .map((journal) => crossingStatusOf(journal, () => undefined, env.clock.now())),
    };
  } catch (error) {
    if (!(error instanceof KubeApiError && error.code === 403)) throw error;
    return { crossings: [], gap: `the journals of crossings: ${error.message}` };
  }
}
