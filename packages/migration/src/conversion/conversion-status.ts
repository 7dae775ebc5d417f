/** How the conversions of a cluster stand, by their journals. Pure. */
import { originalVolume } from "./conversion-journal.ts";
import type { ConversionDirection, VolumeJournal, VolumeStep } from "./conversion-types.ts";
import { type InlineJournal, type InlineStep, templateName } from "./inline/inline-types.ts";

/** One volume, or one workload with volumes of its own. */
export interface ConversionStatusRow {
  /** Name of the PersistentVolume before the first conversion, or of the workload, as `Deployment shop/web`. */
  readonly volume: string;
  readonly claim: string;
  readonly direction: ConversionDirection;
  readonly state: "converted" | "undone" | "unfinished";
  /** Name of the PersistentVolume at the end. */
  readonly becomes: string;
  /** Of an unfinished one: the step that was begun last. */
  readonly step?: VolumeStep | InlineStep;
  /** RFC 3339: when it ended, or when its last step was begun. */
  readonly at?: string;
  readonly requests: number;
}

/** Volumes by their names, and then workloads by theirs. */
export function conversionStatusOf(
  journals: Iterable<VolumeJournal>,
  templates: Iterable<InlineJournal> = [],
): readonly ConversionStatusRow[] {
  const volumes = [...journals].map((journal): ConversionStatusRow => {
    const { planned } = journal;
    return {
      volume: originalVolume(journal),
      claim: `${planned.claim.namespace}/${planned.claim.name}`,
      becomes: planned.toAfter.metadata?.name ?? "",
      ...standingOf(journal),
    };
  });
  const workloads = [...templates].map((journal): ConversionStatusRow => {
    const { planned, direction } = journal;
    const { namespace } = planned.workload;
    const becomes = planned.volumes.map(({ name, volume }) =>
      direction === "convert" ? (volume.metadata?.name ?? "") : name,
    );
    return {
      volume: templateName(planned),
      claim: planned.volumes.map(({ claim }) => `${namespace}/${claim.metadata?.name}`).join(", "),
      becomes: becomes.join(", "),
      ...standingOf(journal),
    };
  });
  return [...inOrder(volumes), ...inOrder(workloads)];
}

function standingOf(
  journal: VolumeJournal | InlineJournal,
): Pick<ConversionStatusRow, "direction" | "state" | "step" | "at" | "requests"> {
  const { direction, begun, finishedAt, requests } = journal;
  const isOpen = finishedAt === undefined;
  const at = finishedAt ?? begun?.at;
  return {
    direction,
    state: isOpen ? "unfinished" : direction === "convert" ? "converted" : "undone",
    ...(isOpen && begun !== undefined ? { step: begun.step } : {}),
    ...(at === undefined ? {} : { at }),
    requests,
  };
}

function inOrder(rows: readonly ConversionStatusRow[]): readonly ConversionStatusRow[] {
  return [...rows].sort((a, b) => (a.volume < b.volume ? -1 : a.volume > b.volume ? 1 : 0));
}
