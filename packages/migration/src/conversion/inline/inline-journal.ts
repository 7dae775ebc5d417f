/** The journals of conversions of inline volumes: one for each workload, beside those of volumes, in a file and in a ConfigMap. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { resources } from "@longshore/kube";
import { JournalError } from "../../crossing/crossing-journal.ts";
import {
  crossingNamespace,
  type JournalStore,
  journalInConfigMap,
  journalInFile,
  journalKey,
  twoJournals,
} from "../../crossing/journal-store.ts";
import { conversionLabel, type JournalPlaces } from "../conversion-journal.ts";
import type { ConversionDirection } from "../conversion-types.ts";
import type { InlineJournal, PlannedTemplate } from "./inline-types.ts";

const labels = { [conversionLabel]: "template" };
/** ConfigMaps of one page. */
const pageSize = 100;
/** Below the directory of the volumes' journals. */
const folder = "templates";

/** Names the workload among all: a namespace has no dot in its name. */
export function templateKey({ workload: { kind, namespace, name } }: PlannedTemplate): string {
  return `${kind.toLowerCase()}.${namespace}.${name}`;
}

/** The journal of the workload. */
export function inlineJournal(
  { kube, host, dir }: JournalPlaces,
  planned: PlannedTemplate,
): JournalStore<InlineJournal> {
  const key = templateKey(planned);
  const hash = createHash("sha256").update(key).digest("hex").slice(0, 16);
  const name = `longshore-conversion-template-${hash}`;
  // A file's name has no more than 255 bytes.
  const file = join(dir, folder, key.length <= 240 ? `${key}.json` : `${hash}.json`);
  return twoJournals(
    journalInFile(host, file, parseInlineJournal),
    journalInConfigMap(kube, { name, labels }, parseInlineJournal),
  );
}

/** All journals of the cluster, by {@link templateKey}; of two of one workload the newer. @throws JournalError */
export async function readInlineJournals(
  { kube, host, dir }: JournalPlaces,
  clusterId: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, InlineJournal>> {
  const found = new Map<string, InlineJournal>();
  const add = (journal: InlineJournal) => {
    if (journal.clusterId !== clusterId) return;
    const key = templateKey(journal.planned);
    const other = found.get(key);
    if (other === undefined || (journal.writes ?? 0) > (other.writes ?? 0)) found.set(key, journal);
  };
  const files = join(dir, folder);
  for (const file of (await host.readDirectory(files)) ?? []) {
    if (!file.endsWith(".json")) continue;
    const path = join(files, file);
    const text = await host.readFile(path);
    if (text !== undefined) add(parseInlineJournal(text, path));
  }
  let next: string | undefined;
  do {
    const page = await kube.list(resources.configMaps, {
      namespace: crossingNamespace,
      labelSelector: `${conversionLabel}=template`,
      limit: pageSize,
      ...(next === undefined ? {} : { continue: next }),
      signal,
    });
    for (const { metadata, data } of page.items) {
      const text = data?.[journalKey];
      if (text !== undefined)
        add(parseInlineJournal(text, `ConfigMap ${crossingNamespace}/${metadata.name}`));
    }
    next = page.continue;
  } while (next !== undefined);
  return found;
}

/** Where the files of the journals lie. */
export const inlineJournalDir = (dir: string): string => join(dir, folder);

/** A journal at the beginning. @param earlier that of a run before, which may have scaled the workload */
export function newInlineJournal(
  planned: PlannedTemplate,
  clusterId: string,
  direction: ConversionDirection,
  earlier?: InlineJournal,
): InlineJournal {
  return {
    version: 1,
    clusterId,
    direction,
    planned,
    done: earlier === undefined ? [] : inlineStepsOf(earlier),
    requests: 0,
    ...(earlier?.writes === undefined ? {} : { writes: earlier.writes }),
  };
}

/** True when the workload is not where its run carries it. */
export const isUnfinishedInline = ({ finishedAt }: InlineJournal): boolean => finishedAt === undefined;

/**
 * The steps that are over, with the one that was begun last: its outcome may be unknown. A scaling up of an unfinished run may not have
 * reached the workload, and is done again.
 */
export function inlineStepsOf(journal: InlineJournal): InlineJournal["done"] {
  const { begun, direction, done } = journal;
  const last = done.at(-1);
  const isThere = begun === undefined || (last?.step === begun.step && last.direction === direction);
  if (isThere || (begun.step === "scale up" && isUnfinishedInline(journal))) return done;
  return [...done, { direction, ...begun }];
}

/** True from the moment in which a run may have scaled the workload, in either direction, until it has its replicas again. */
export function isInlineScaledDown({ begun, done }: InlineJournal): boolean {
  if (begun?.step === "scale down" || begun?.step === "scale up") return true;
  return done.findLast(({ step }) => step === "scale down" || step === "scale up")?.step === "scale down";
}

function parseInlineJournal(text: string, place: string): InlineJournal {
  let journal: Partial<InlineJournal> | null;
  try {
    journal = JSON.parse(text) as Partial<InlineJournal> | null;
  } catch (error) {
    throw new JournalError(`the journal ${place} is damaged: remove it; its copy says the same`, {
      cause: error,
    });
  }
  if (journal?.version !== 1) {
    throw new JournalError(`the journal ${place} is of a newer version of Longshore`);
  }
  if (typeof journal.planned?.workload?.name !== "string" || !Array.isArray(journal.done)) {
    throw new JournalError(`the journal ${place} is damaged: remove it; its copy says the same`);
  }
  return journal as InlineJournal;
}
