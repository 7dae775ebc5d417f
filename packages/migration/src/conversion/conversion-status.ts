/** How the conversions of a cluster stand, by their journals. Pure. */
import { isUnfinishedConversion, originalVolume } from "./conversion-journal.ts";
import type { ConversionDirection, VolumeJournal, VolumeStep } from "./conversion-types.ts";

/** One volume. */
export interface ConversionStatusRow {
  /** Name of the PersistentVolume before the first conversion. */
  readonly volume: string;
  readonly claim: string;
  readonly direction: ConversionDirection;
  readonly state: "converted" | "undone" | "unfinished";
  /** Name of the PersistentVolume at the end. */
  readonly becomes: string;
  /** Of an unfinished one: the step that was begun last. */
  readonly step?: VolumeStep;
  /** RFC 3339: when it ended, or when its last step was begun. */
  readonly at?: string;
  readonly requests: number;
}

/** By the name of the volume. */
export function conversionStatusOf(journals: Iterable<VolumeJournal>): readonly ConversionStatusRow[] {
  const rows = [...journals].map((journal): ConversionStatusRow => {
    const { direction, planned, begun, finishedAt, requests } = journal;
    const isOpen = isUnfinishedConversion(journal);
    const at = finishedAt ?? begun?.at;
    return {
      volume: originalVolume(journal),
      claim: `${planned.claim.namespace}/${planned.claim.name}`,
      direction,
      state: isOpen ? "unfinished" : direction === "convert" ? "converted" : "undone",
      becomes: planned.toAfter.metadata?.name ?? "",
      ...(isOpen && begun !== undefined ? { step: begun.step } : {}),
      ...(at === undefined ? {} : { at }),
      requests,
    };
  });
  return rows.sort((a, b) => (a.volume < b.volume ? -1 : a.volume > b.volume ? 1 : 0));
}
