/** Conversions as an administrator runs them: what is unfinished is gone on with, and what else there is is begun. */
import {
  type ConversionEnv,
  type ConversionPlan,
  type ConversionPlanOptions,
  type ConversionResult,
  type ConversionRunOptions,
  isUnfinishedConversion,
  newJournal,
  planConversion,
  planUndo,
  readClusterId,
  readJournals,
  runConversion,
  type UndoPlan,
  type VolumeJournal,
  withLaterWorkloads,
} from "@longshore/migration";

/** What is carried, and how. */
export type CarryOptions = ConversionPlanOptions & ConversionRunOptions;

/** Goes on with what is unfinished, and converts what else is there. */
export async function convertVolumes(
  env: ConversionEnv,
  options: CarryOptions,
  signal: AbortSignal,
): Promise<ConversionResult & { readonly plan: ConversionPlan }> {
  const journals = await journalsOf(env, options, signal);
  const open = [...journals.values()].filter(isUnfinishedConversion);
  const unfinished = await withLaterWorkloads(env.kube, open, options, signal);
  const names = new Set(unfinished.flatMap((journal) => namesOf(journal)));
  const plan = await planConversion(env, options, signal, names);
  const begun = plan.volumes.map((planned) =>
    newJournal(planned, plan.clusterId, "convert", journals.get(planned.volume)),
  );
  return { ...(await runConversion(env, [...unfinished, ...begun], options, signal)), plan };
}

/** Goes on with unfinished ways back, and carries back what has been converted, wholly or in part. */
export async function undoVolumes(
  env: ConversionEnv,
  options: CarryOptions,
  signal: AbortSignal,
): Promise<ConversionResult & Partial<UndoPlan>> {
  const journals = [...(await journalsOf(env, options, signal)).values()];
  const open = journals.filter((journal) => journal.direction === "undo" && isUnfinishedConversion(journal));
  const unfinished = await withLaterWorkloads(env.kube, open, options, signal);
  const converted = journals.filter(({ direction }) => direction === "convert");
  const plan = await planUndo(env.kube, converted, options, signal);
  const clusterId = await readClusterId(env.kube, signal);
  const begun = plan.volumes.map((planned) => {
    const name = planned.toAfter.metadata?.name;
    const earlier = converted.find((journal) => journal.planned.volume === name);
    return newJournal(planned, clusterId, "undo", earlier);
  });
  const result = await runConversion(env, [...unfinished, ...begun], options, signal);
  return { ...result, refused: plan.refused };
}

/** The journals of the machine from which the volumes are carried. */
export async function journalsOf(
  { kube, host }: Pick<ConversionEnv, "kube" | "host">,
  { journalDir }: Pick<ConversionRunOptions, "journalDir">,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, VolumeJournal>> {
  const clusterId = await readClusterId(kube, signal);
  return readJournals({ kube, host, dir: journalDir }, clusterId, signal);
}

function namesOf({ planned }: VolumeJournal): string[] {
  return [planned.volume, planned.toAfter.metadata?.name ?? ""];
}
