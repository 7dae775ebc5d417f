/** Classes and StatefulSets of `longshore convert`: those that a run goes on with, and those that it begins. */
import type { KubeClient } from "@longshore/kube";
import {
  type ConversionDirection,
  type ConversionPlan,
  type ConversionPlanOptions,
  openReplacements,
  type ReplacementJournal,
  readReplacementJournals,
  startedReplacements,
} from "@longshore/migration";
import { UsageError } from "../../exit.ts";
import type { ConversionTarget } from "./convert-target.ts";

/** The journals of classes and StatefulSets, by the names of the objects. */
export function objectJournals(
  { env, clusterId, journalDir }: ConversionTarget,
  kube: KubeClient,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ReplacementJournal>> {
  return readReplacementJournals({ kube, host: env.host, dir: journalDir }, clusterId, signal);
}

/** What an earlier run has left half-done. @throws UsageError where that is an undo, and a conversion is asked for */
export async function objectsLeftOpen(
  target: ConversionTarget,
  kube: KubeClient,
  direction: ConversionDirection,
  signal: AbortSignal,
): Promise<readonly ReplacementJournal[]> {
  const known = await objectJournals(target, kube, signal);
  const undone = [...known.values()].filter(
    (journal) => journal.finishedAt === undefined && journal.direction === "undo",
  );
  if (direction === "convert" && undone.length > 0) {
    const names = undone.map(({ planned }) => planned.key).join(", ");
    throw new UsageError(`an undo of ${names} is unfinished: end it first with longshore convert undo`);
  }
  return openReplacements(kube, known, direction, signal);
}

/** The journals that the plan begins. */
export async function objectsToBegin(
  target: ConversionTarget,
  kube: KubeClient,
  replacements: NonNullable<ConversionPlan["replacements"]>,
  direction: ConversionDirection,
  signal: AbortSignal,
): Promise<readonly ReplacementJournal[]> {
  if (replacements.length === 0) return [];
  const known = await objectJournals(target, kube, signal);
  return startedReplacements(replacements, known, target.clusterId, direction);
}

/** Of a converted object that the flags mean. */
export function isObjectToUndo(
  { direction, planned, finishedAt }: ReplacementJournal,
  { classes, templates, namespaces, plugins }: ConversionPlanOptions,
): boolean {
  if (direction === "undo" || finishedAt === undefined) return false;
  const { provisioner = "" } = planned.before as { readonly provisioner?: string };
  return planned.kind === "StorageClass"
    ? classes === true && (plugins?.includes(provisioner) ?? true)
    : templates === true && (namespaces?.includes(planned.namespace ?? "") ?? true);
}
