/**
 * Where the journal of a crossing is kept: in a file, and beside it in a ConfigMap, from which another machine goes on.
 * Both hold the whole journal; of two that differ the one that was written more often counts.
 */
import {
  type ConfigMap,
  isAlreadyExists,
  isConflict,
  isNotFound,
  KubeApiError,
  type KubeClient,
  resources,
  type Stored,
  updateWithRetry,
} from "@longshore/kube";
import type { Host } from "@longshore/runtime";
import { type CrossingJournal, journalText, parseJournal } from "./crossing-journal.ts";
import type { CrossingSubject } from "./crossing-subject.ts";
import type { CrossingPlan } from "./plan-document.ts";

/** Namespace of the ConfigMaps and the Lease of crossings. */
export const crossingNamespace = "kube-system";
/** Key of the journal in its ConfigMap. */
export const journalKey = "journal.json";

/** Keeps one journal: of a crossing, or another that counts its writes. */
export interface JournalStore<J extends Counted = CrossingJournal> {
  /** Where it is, for people. */
  readonly place: string;
  /** @throws JournalError when it is damaged or newer */
  read(signal: AbortSignal): Promise<J | undefined>;
  /** Durable when it resolves. */
  write(journal: J, signal: AbortSignal): Promise<void>;
}

/** What of two journals says which is the newer one. */
export interface Counted {
  readonly writes?: number;
}

/** How a journal is read from its text. @throws JournalError */
export type ParseJournal<J> = (text: string, place: string) => J;

/** The journal in a file. */
export const fileJournal = (host: Host, file: string): JournalStore =>
  journalInFile(host, file, parseJournal);

/** A journal of any form in a file that only its owner reads. */
export function journalInFile<J extends Counted>(
  host: Host,
  file: string,
  parse: ParseJournal<J>,
): JournalStore<J> {
  return {
    place: file,
    async read() {
      const text = await host.readFile(file);
      return text === undefined ? undefined : parse(text, file);
    },
    write: (journal) => host.writeFileAtomic(file, journalText(journal), { mode: 0o600 }),
  };
}

/** Name of the ConfigMap with the journal of the plugin. */
export const journalConfigMapName = ({ shortName }: CrossingSubject): string =>
  `longshore-crossing-${shortName}`;

/** The journal in the ConfigMap `kube-system/longshore-crossing-PLUGIN`. */
export function configMapJournal(kube: KubeClient, subject: CrossingSubject): JournalStore {
  return journalInConfigMap(kube, { name: journalConfigMapName(subject) }, parseJournal);
}

/** A journal of any form in a ConfigMap of the namespace of crossings. */
export function journalInConfigMap<J extends Counted>(
  kube: KubeClient,
  { name, labels }: { readonly name: string; readonly labels?: Readonly<Record<string, string>> },
  parse: ParseJournal<J>,
): JournalStore<J> {
  const ref = { namespace: crossingNamespace, name };
  // As this process has written it: the next write needs no reading before.
  let last: Stored<ConfigMap> | undefined;
  const metadata = labels === undefined ? ref : { ...ref, labels };
  const place = `ConfigMap ${ref.namespace}/${ref.name}`;
  return {
    place,
    async read(signal) {
      const map = await kube.get(resources.configMaps, ref, { signal });
      const text = map?.data?.[journalKey];
      return text === undefined ? undefined : parse(text, place);
    },
    async write(journal, signal) {
      // In one line: a line end is two characters more in the text of an object, and each write carries all of it.
      const data = { [journalKey]: JSON.stringify(journal) };
      const change = (current: Stored<ConfigMap>) => ({ ...current, data: { ...current.data, ...data } });
      if (last !== undefined) {
        try {
          last = await kube.update(resources.configMaps, change(last), { signal });
          return;
        } catch (error) {
          if (!isConflict(error) && !isNotFound(error)) throw error;
        }
      }
      // One that was never written is likely not there: then there is nothing to read.
      for (let isNew = journal.writes === 1; ; isNew = false) {
        if (!isNew) {
          last = await updateWithRetry(kube, resources.configMaps, ref, change, { signal });
          if (last !== undefined) return;
        }
        try {
          const fresh = { apiVersion: "v1", kind: "ConfigMap", metadata, data } as const;
          last = await kube.create(resources.configMaps, fresh, { signal });
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
export function twoJournals<J extends Counted>(
  first: JournalStore<J>,
  second: JournalStore<J>,
): JournalStore<J> {
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
