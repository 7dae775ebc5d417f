/** Which unfinished conversions a run goes on with: those that were chosen. Pure. */
import { isScaledDown } from "./conversion-journal.ts";
import type { VolumeJournal } from "./conversion-types.ts";

/** The unfinished ones, parted. */
export interface UnfinishedChoice {
  readonly carried: readonly VolumeJournal[];
  /** They stay as they are: the disks are kept by policy Retain. */
  readonly left: readonly VolumeJournal[];
}

const uidsOf = ({ planned }: VolumeJournal): string[] => planned.workloads.map(({ uid }) => uid);

/**
 * Those that were chosen, with those that share a workload with them that is scaled down: its replicas come back only when all of its volumes
 * have a place.
 */
export function unfinishedChoice(
  open: readonly VolumeJournal[],
  isChosen: (journal: VolumeJournal) => boolean,
): UnfinishedChoice {
  const down = new Set(open.filter(isScaledDown).flatMap(uidsOf));
  const byWorkload = new Map<string, VolumeJournal[]>();
  for (const journal of open) {
    for (const uid of uidsOf(journal)) byWorkload.set(uid, [...(byWorkload.get(uid) ?? []), journal]);
  }
  const carried = new Set<VolumeJournal>();
  const take = (journal: VolumeJournal): void => {
    if (carried.has(journal)) return;
    carried.add(journal);
    for (const uid of uidsOf(journal))
      if (down.has(uid)) for (const each of byWorkload.get(uid) ?? []) take(each);
  };
  for (const journal of open) if (isChosen(journal)) take(journal);
  return {
    carried: open.filter((journal) => carried.has(journal)),
    left: open.filter((journal) => !carried.has(journal)),
  };
}
