/**
 * Where the journal of a crossing is kept: in a file, and beside it in a ConfigMap, from which another machine goes on.
 * Both hold the whole journal; of two that differ the one that was written more often counts.
 */
import {
  type ConfigMap,
  isAlreadyExists,
  KubeApiError,
  type KubeClient,
  resources,
  type Stored,
  updateWithRetry,
} from "@longshore/kube";
import type { Host } from "@longshore/runtime";
import { type CrossingJournal, journalText, parseJournal, readJournal } from "./crossing-journal.ts";
import type { CrossingSubject } from "./crossing-subject.ts";
import type { CrossingPlan } from "./plan-document.ts";

/** Namespace of the ConfigMaps and the Lease of crossings. */
export const crossingNamespace = "kube-system";
const journalKey = "journal.json";

/** Keeps one journal. */
export interface JournalStore {
  /** Where it is, for people. */
  readonly place: string;
  /** @throws JournalError when it is damaged or newer */
  read(signal: AbortSignal): Promise<CrossingJournal | undefined>;
  /** Durable when it resolves. */
  write(journal: CrossingJournal, signal: AbortSignal): Promise<void>;
}

/** The journal in a file. */
export function fileJournal(host: Host, file: string): JournalStore {
  return {
    place: file,
    read: () => readJournal(host, file),
    write: (journal) => host.writeFileAtomic(file, journalText(journal)),
  };
}

/** Name of the ConfigMap with the journal of the plugin. */
export const journalConfigMapName = ({ shortName }: CrossingSubject): string =>
  `longshore-crossing-${shortName}`;

/** The journal in the ConfigMap `kube-system/longshore-crossing-PLUGIN`. */
export function configMapJournal(kube: KubeClient, subject: CrossingSubject): JournalStore {
  const ref = { namespace: crossingNamespace, name: journalConfigMapName(subject) };
  const place = `ConfigMap ${ref.namespace}/${ref.name}`;
  return {
    place,
    async read(signal) {
      const map = await kube.get(resources.configMaps, ref, { signal });
      const text = map?.data?.[journalKey];
      return text === undefined ? undefined : parseJournal(text, place);
    },
    async write(journal, signal) {
      const data = { [journalKey]: journalText(journal) };
      const change = (current: Stored<ConfigMap>) => ({ ...current, data: { ...current.data, ...data } });
      for (;;) {
        if ((await updateWithRetry(kube, resources.configMaps, ref, change, { signal })) !== undefined)
          return;
        try {
          const fresh = { apiVersion: "v1", kind: "ConfigMap", metadata: ref, data } as const;
          await kube.create(resources.configMaps, fresh, { signal });
          return;
        } catch (error) {
          if (!isAlreadyExists(error)) throw error;
        }
      }
    },
  };
}

/** Nodes that a run of the plan has carried across, as its journal in the cluster says; none where that may not be read. */
export async function nodesDoneOf(
  kube: KubeClient,
  subject: CrossingSubject,
  plan: Pick<CrossingPlan, "madeAt" | "direction" | "nodes">,
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    const journal = await configMapJournal(kube, subject).read(signal);
    const isOfPlan = journal?.plan === plan.madeAt && journal.direction === plan.direction;
    if (!isOfPlan) return [];
    // Of many the journal names the newest alone: then those count that the plan names and that need no crossing any more.
    return journal.nodesDoneEarlier === undefined ? journal.nodesDone : plan.nodes.map(({ name }) => name);
  } catch (error) {
    if (error instanceof KubeApiError && error.code === 403) return [];
    throw error;
  }
}

/** Both: each write goes to both of them, the first one first. */
export function twoJournals(first: JournalStore, second: JournalStore): JournalStore {
  return {
    place: `${first.place} and ${second.place}`,
    async read(signal) {
      const [one, other] = await Promise.all([first.read(signal), second.read(signal)]);
      if (one === undefined || other === undefined) return one ?? other;
      return (one.writes ?? 0) > (other.writes ?? 0) ? one : other;
    },
    async write(journal, signal) {
      await first.write(journal, signal);
      await second.write(journal, signal);
    },
  };
}
