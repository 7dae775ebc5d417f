/** Conversions of the disks that a template names itself, as an operator runs them. */
import {
  type ConversionEnv,
  type ConversionResult,
  type ConversionRunOptions,
  type InlineJournal,
  type InlinePlan,
  isUnfinishedInline,
  newInlineJournal,
  openTemplates,
  planInlineConversion,
  planInlineUndo,
  readClusterId,
  readInlineJournals,
  runInlineConversion,
  templateKey,
} from "@longshore/migration";

const sizes = { others: "32Mi", byVolume: new Map<string, string>() };

/** Goes on with what is unfinished, and converts what else is there. */
export async function convertInline(
  env: ConversionEnv,
  run: ConversionRunOptions,
  { scaleDown = false }: { readonly scaleDown?: boolean },
  signal: AbortSignal,
): Promise<ConversionResult> {
  const known = await inlineJournals(env, run, signal);
  const open = [...known.values()].filter(isUnfinishedInline);
  const skipped = openTemplates(known.values());
  const { templates } = await planInlineConversion(env.kube, { scaleDown, sizes }, signal, skipped);
  const clusterId = await readClusterId(env.kube, signal);
  const fresh = templates.map((planned) =>
    newInlineJournal(planned, clusterId, "convert", known.get(templateKey(planned))),
  );
  return runInlineConversion(env, [...open, ...fresh], run, signal);
}

/** Goes on with unfinished ways back, and carries back what has been converted, wholly or in part. */
export async function undoInline(
  env: ConversionEnv,
  run: ConversionRunOptions,
  { scaleDown = false }: { readonly scaleDown?: boolean },
  signal: AbortSignal,
): Promise<ConversionResult & Pick<InlinePlan, "refused">> {
  const known = await inlineJournals(env, run, signal);
  const all = [...known.values()];
  const open = all.filter((journal) => journal.direction === "undo" && isUnfinishedInline(journal));
  const converted = all.filter(({ direction }) => direction === "convert");
  const { templates, refused } = await planInlineUndo(env.kube, converted, { scaleDown }, signal);
  const clusterId = await readClusterId(env.kube, signal);
  const fresh = templates.map((planned) =>
    newInlineJournal(planned, clusterId, "undo", known.get(templateKey(planned))),
  );
  return { ...(await runInlineConversion(env, [...open, ...fresh], run, signal)), refused };
}

/** The journals of workloads, by their keys. */
export async function inlineJournals(
  { kube, host }: ConversionEnv,
  { journalDir }: Pick<ConversionRunOptions, "journalDir">,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, InlineJournal>> {
  return readInlineJournals({ kube, host, dir: journalDir }, await readClusterId(kube, signal), signal);
}
