/**
 * The journals of conversions: one for each volume, in a file and in a ConfigMap, so that a step costs the same however many volumes
 * a run has, and none of them comes near the size that the API allows for an object.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { type KubeClient, resources } from "@longshore/kube";
import type { Host } from "@longshore/runtime";
import { JournalError } from "../crossing/crossing-journal.ts";
import {
  type Counted,
  crossingNamespace,
  type JournalStore,
  journalInConfigMap,
  journalInFile,
  journalKey,
  type ParseJournal,
  twoJournals,
} from "../crossing/journal-store.ts";
import type { VolumeJournal, VolumeStep } from "./conversion-types.ts";

/** Label of the ConfigMaps. */
export const conversionLabel = "longshore.dev/conversion";
const labels = { [conversionLabel]: "volume" };
/** ConfigMaps of one page. */
const pageSize = 100;

/** Where the journals lie. */
export interface JournalPlaces {
  readonly kube: KubeClient;
  readonly host: Host;
  /** Of the files. */
  readonly dir: string;
}

/** The journal of the volume, by the name that its PersistentVolume had before. */
export function volumeJournal(
  { kube, host, dir }: JournalPlaces,
  volume: string,
): JournalStore<VolumeJournal> {
  const file = join(dir, `${volume}.json`);
  return twoJournals(
    journalInFile(host, file, parseVolumeJournal),
    journalInConfigMap(kube, { name: conversionConfigMap(volume), labels }, parseVolumeJournal),
  );
}

/** Name of the ConfigMap of the volume: its name may be as long as a ConfigMap's alone. */
export function conversionConfigMap(volume: string): string {
  const name = `longshore-conversion-${volume}`;
  if (name.length <= 253) return name;
  const hash = createHash("sha256").update(volume).digest("hex").slice(0, 16);
  return `${name.slice(0, 236)}-${hash}`;
}

/** All journals of the cluster, by the name of the volume; of two of one volume the newer. @throws JournalError */
export function readJournals(
  places: JournalPlaces,
  clusterId: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, VolumeJournal>> {
  const form = { label: "volume", parse: parseVolumeJournal, keyOf: originalVolume, clusterId };
  return journalsIn(places, form, signal);
}

/** Journals of one kind. */
interface JournalForm<J> {
  /** Value of {@link conversionLabel}. */
  readonly label: string;
  readonly parse: ParseJournal<J>;
  readonly keyOf: (journal: J) => string;
  readonly clusterId: string;
}

type Finishing = Counted & { readonly clusterId: string; readonly finishedAt?: string };

/**
 * The journals of a kind, by what names them; of two of one name the newer. Where the file says that the run has ended, and the ConfigMap
 * says something else, the API server was restored from a backup: the ConfigMap is as old as the objects. @throws JournalError
 */
export async function journalsIn<J extends Finishing>(
  { kube, host, dir }: JournalPlaces,
  { label, parse, keyOf, clusterId }: JournalForm<J>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, J>> {
  const found = new Map<string, J>();
  const add = (journal: J) => {
    if (journal.clusterId !== clusterId) return;
    const name = keyOf(journal);
    const other = found.get(name);
    // Files come first. One that has ended is behind its ConfigMap, or ahead of a restored one: it is never ahead of another.
    const isOfObjects = other?.finishedAt !== undefined;
    if (other === undefined || isOfObjects || (journal.writes ?? 0) > (other.writes ?? 0))
      found.set(name, journal);
  };
  for (const file of (await host.readDirectory(dir)) ?? []) {
    if (!file.endsWith(".json")) continue;
    const path = join(dir, file);
    const text = await host.readFile(path);
    if (text !== undefined) add(parse(text, path));
  }
  let next: string | undefined;
  do {
    const page = await kube.list(resources.configMaps, {
      namespace: crossingNamespace,
      labelSelector: `${conversionLabel}=${label}`,
      limit: pageSize,
      ...(next === undefined ? {} : { continue: next }),
      signal,
    });
    for (const { metadata, data } of page.items) {
      const text = data?.[journalKey];
      if (text !== undefined) add(parse(text, `ConfigMap ${crossingNamespace}/${metadata.name}`));
    }
    next = page.continue;
  } while (next !== undefined);
  return found;
}

/** Name of the PersistentVolume before the first conversion, whichever way the journal goes now. */
export function originalVolume({ direction, planned }: VolumeJournal): string {
  return direction === "convert" ? planned.volume : (planned.toAfter.metadata?.name ?? "");
}

/** True when the volume is not where its run carries it. */
export const isUnfinishedConversion = ({ finishedAt }: VolumeJournal): boolean => finishedAt === undefined;

/** The steps that are over, with the one that was begun last: its outcome may be unknown. */
export function stepsOf({ begun, direction, done }: VolumeJournal): VolumeJournal["done"] {
  const last = done.at(-1);
  const isThere = begun === undefined || (last?.step === begun.step && last.direction === direction);
  return isThere ? done : [...done, { direction, ...begun }];
}

/**
 * True from the moment in which a run may have scaled the workloads, in either direction, until they have their replicas again. A
 * scaling up that was begun may not have reached all of them.
 */
export function isScaledDown({ begun, done }: VolumeJournal): boolean {
  if (begun !== undefined && scalingSteps.has(begun.step)) return true;
  return done.findLast(({ step }) => scalingSteps.has(step))?.step === "scale down";
}

const scalingSteps: ReadonlySet<VolumeStep> = new Set(["scale down", "scale up to grow", "scale up"]);

/** The steps of a journal that another one, of the other direction, goes on from. */
export function stepsBefore(journal: VolumeJournal): VolumeJournal["done"] {
  const isOpen = journal.begun?.step === "scale up" && isUnfinishedConversion(journal);
  return isOpen ? journal.done : stepsOf(journal);
}

function parseVolumeJournal(text: string, place: string): VolumeJournal {
  let journal: Partial<VolumeJournal> | null;
  try {
    journal = JSON.parse(text) as Partial<VolumeJournal> | null;
  } catch (error) {
    throw new JournalError(`the journal ${place} is damaged: remove it; its copy says the same`, {
      cause: error,
    });
  }
  if (journal?.version !== 1) {
    throw new JournalError(`the journal ${place} is of a newer version of Longshore`);
  }
  if (typeof journal.planned?.volume !== "string" || !Array.isArray(journal.done)) {
    throw new JournalError(`the journal ${place} is damaged: remove it; its copy says the same`);
  }
  return journal as VolumeJournal;
}
