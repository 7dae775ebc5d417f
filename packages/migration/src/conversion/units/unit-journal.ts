/** The journals of units that are no volumes: one for each, in a file and in a ConfigMap, as those of volumes are. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { JournalError } from "../../crossing/crossing-journal.ts";
import {
  type JournalStore,
  journalInConfigMap,
  journalInFile,
  type ParseJournal,
  twoJournals,
} from "../../crossing/journal-store.ts";
import { conversionLabel, type JournalPlaces, journalsIn } from "../conversion-journal.ts";
import type { UnitJournal } from "./unit-run.ts";

/** Where the journals of a kind of units lie. */
export interface UnitJournals<Journal extends UnitJournal> {
  /** Value of the label of their ConfigMaps, and name of the directory of their files. */
  readonly label: string;
  readonly parse: ParseJournal<Journal>;
  /** What names the unit, the same in both directions. */
  readonly keyOf: (journal: Journal) => string;
}

/** The journal of the unit with this key. */
export function unitJournal<Journal extends UnitJournal>(
  { kube, host, dir }: JournalPlaces,
  { label, parse }: UnitJournals<Journal>,
  key: string,
): JournalStore<Journal> {
  const name = unitName(key);
  return twoJournals(
    journalInFile(host, join(dir, label, `${name}.json`), parse),
    journalInConfigMap(
      kube,
      { name: `longshore-conversion-${label}-${name}`, labels: { [conversionLabel]: label } },
      parse,
    ),
  );
}

/** All journals of the kind in the cluster, by their keys; of two of one unit the newer. @throws JournalError */
export function readUnitJournals<Journal extends UnitJournal>(
  places: JournalPlaces,
  { label, parse, keyOf }: UnitJournals<Journal>,
  clusterId: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Journal>> {
  const dir = join(places.dir, label);
  return journalsIn({ ...places, dir }, { label, parse, keyOf, clusterId }, signal);
}

/** What every kind of unit reads alike. @throws JournalError where the text is no journal of this version */
export function parseUnitJournal<Journal extends UnitJournal>(
  text: string,
  place: string,
  isComplete: (journal: Partial<Journal>) => boolean,
): Journal {
  const damaged = `the journal ${place} is damaged: remove it; its copy says the same`;
  let journal: Partial<Journal> | null;
  try {
    journal = JSON.parse(text) as Partial<Journal> | null;
  } catch (error) {
    throw new JournalError(damaged, { cause: error });
  }
  if (journal?.version !== 1) {
    throw new JournalError(`the journal ${place} is of a newer version of Longshore`);
  }
  if (!Array.isArray(journal.done) || !isComplete(journal)) throw new JournalError(damaged);
  return journal as Journal;
}

/** A name of the API for any key: readable, and no two keys have the same. */
export function unitName(key: string): string {
  const hash = createHash("sha256").update(key).digest("hex").slice(0, 12);
  const words = key.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return `${words.slice(0, 180)}-${hash}`;
}
