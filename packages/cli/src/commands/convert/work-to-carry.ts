/** What a run of `longshore convert` carries: what an earlier run has left of what is chosen, and then what is new. */
import { type KubeClient, parseLabelSelector } from "@longshore/kube";
import {
  type ConversionDirection,
  type ConversionPlan,
  type ConversionPlanOptions,
  type InlineJournal,
  isUnfinishedConversion,
  newJournal,
  originalVolume,
  planConversion,
  planUndo,
  planUndoReplacements,
  type ReplacementJournal,
  readJournals,
  unfinishedChoice,
  type VolumeJournal,
  withLaterWorkloads,
} from "@longshore/migration";
import { UsageError } from "../../exit.ts";
import type { ConvertFlags } from "./convert-flags.ts";
import { isObjectToUndo, objectJournals, objectsToBegin } from "./convert-objects.ts";
import { refusedWords, unfinishedWords } from "./convert-report.ts";
import type { ConversionTarget } from "./convert-target.ts";
import { templatesToCarry } from "./templates-to-carry.ts";

/** What a run is asked for. */
export interface Asked {
  readonly direction: ConversionDirection;
  readonly flags: ConvertFlags;
  readonly options: ConversionPlanOptions;
  readonly target: ConversionTarget;
}

/** What a run carries. */
export interface Work {
  readonly volumes: readonly VolumeJournal[];
  readonly inline: readonly InlineJournal[];
  readonly objects: readonly ReplacementJournal[];
  /** Classes that stay as they are. */
  readonly classes: NonNullable<ConversionPlan["classes"]>;
}

/** Undefined where something is refused, which is printed. @throws UsageError */
export async function workToCarry(
  asked: Asked,
  kube: KubeClient,
  signal: AbortSignal,
): Promise<Work | undefined> {
  const { direction, flags, options, target } = asked;
  const known = await journalsOf(target, kube, signal);
  const { carried, left } = unfinishedWork(known, asked);
  const made: PlannedWork =
    direction === "convert"
      ? await planConversion({ ...target.env, kube }, options, signal, unfinished(known))
      : await plannedUndo(asked, known, kube, signal);
  const inline = await templatesToCarry({ direction, flags, plugins: options.plugins, target }, kube, signal);
  printUnfinished([...left.map(originalVolume), ...inline.left], flags);
  if (!mayGoOn([...made.refused, ...inline.refused], flags)) return undefined;
  return {
    volumes: [
      ...(await withLaterWorkloads(kube, carried, options, signal)),
      ...freshJournals(made.volumes, known, asked),
    ],
    inline: inline.journals,
    objects: await objectsToBegin(target, kube, made.replacements ?? [], direction, signal),
    classes: made.classes ?? [],
  };
}

/** @throws UsageError where what is chosen to be converted is on its way back */
function unfinishedWork(known: ReadonlyMap<string, VolumeJournal>, asked: Asked) {
  const { direction } = asked;
  const open = [...known.values()].filter(isUnfinishedConversion);
  const others = open.filter((journal) => journal.direction !== direction);
  const undone = direction === "convert" ? others.filter((journal) => isMeant(journal, asked)) : [];
  if (undone.length > 0) {
    const names = undone.map(originalVolume).join(", ");
    throw new UsageError(`an undo of ${names} is unfinished: end it first with longshore convert undo`);
  }
  const same = open.filter((journal) => journal.direction === direction);
  const { carried, left } = unfinishedChoice(same, (journal) => isMeant(journal, asked));
  // What an undo means of unfinished conversions it undoes.
  return { carried, left: [...left, ...others.filter((journal) => !isMeant(journal, asked))] };
}

function printUnfinished(names: readonly string[], { json }: ConvertFlags): void {
  if (names.length === 0) return;
  if (json === true) process.stdout.write(`${JSON.stringify({ kind: "unfinished", volumes: names })}\n`);
  else process.stderr.write(unfinishedWords(names));
}

/** Prints the refusals. */
function mayGoOn(refused: ConversionPlan["refused"], { json, skipRefused }: ConvertFlags): boolean {
  if (refused.length === 0) return true;
  if (json === true) process.stdout.write(`${JSON.stringify({ kind: "refused", refused })}\n`);
  else process.stderr.write(refusedWords(refused));
  if (skipRefused === true) return true;
  if (json !== true) process.stderr.write("nothing was changed; --skip-refused leaves these out\n");
  return false;
}

type PlannedWork = Pick<ConversionPlan, "volumes" | "refused" | "classes" | "replacements">;

async function plannedUndo(
  asked: Asked,
  known: ReadonlyMap<string, VolumeJournal>,
  kube: KubeClient,
  signal: AbortSignal,
): Promise<PlannedWork> {
  const { options, target } = asked;
  const ofVolumes = [...known.values()].filter((journal) => isToUndo(journal, asked));
  const objects = [...(await objectJournals(target, kube, signal)).values()];
  const { volumes, refused } = await planUndo(kube, ofVolumes, options, signal);
  const back = await planUndoReplacements(
    kube,
    objects.filter((journal) => isObjectToUndo(journal, options)),
    signal,
  );
  return { volumes, refused: [...refused, ...back.refused], replacements: back.replacements };
}

function freshJournals(
  volumes: ConversionPlan["volumes"],
  known: ReadonlyMap<string, VolumeJournal>,
  { direction, target }: Asked,
): readonly VolumeJournal[] {
  return volumes.map((planned) => {
    const name = direction === "convert" ? planned.volume : (planned.toAfter.metadata?.name ?? "");
    return newJournal(planned, target.clusterId, direction, known.get(name));
  });
}

/** Of a journal whose volume is, or is becoming, a converted one. */
function isToUndo(journal: VolumeJournal, asked: Asked): boolean {
  if (journal.direction === "undo" || asked.options.noVolumes === true) return false;
  if (asked.flags.selector !== undefined) {
    throw new UsageError(
      "--selector: an undo is chosen by --pv, --namespace or --plugin, as the journals know these",
    );
  }
  return isMeant(journal, asked);
}

/** True for a journal of a volume that the flags choose. */
function isMeant({ planned }: VolumeJournal, { flags, options }: Asked): boolean {
  if (options.noVolumes === true) return false;
  const names = [planned.volume, planned.toAfter.metadata?.name];
  const { rule, selector, plugins } = options;
  return (
    (flags.pv?.some((name) => names.includes(name)) ?? true) &&
    (flags.namespace?.includes(planned.claim.namespace) ?? true) &&
    (plugins?.includes(planned.plugin) ?? true) &&
    (rule === undefined || planned.driver === rule.toDriver) &&
    (selector === undefined ||
      parseLabelSelector(selector).matches(planned.claimBefore.metadata?.labels ?? {}))
  );
}

/** The journals of volumes, by the names that these had before. */
export function journalsOf(
  { env, clusterId, journalDir }: ConversionTarget,
  kube: KubeClient,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, VolumeJournal>> {
  return readJournals({ kube, host: env.host, dir: journalDir }, clusterId, signal);
}

/** Names of what a run has left half-done. */
export function unfinished(
  journals: ReadonlyMap<string, { readonly finishedAt?: string }>,
): ReadonlySet<string> {
  return new Set(
    [...journals].filter(([, { finishedAt }]) => finishedAt === undefined).map(([name]) => name),
  );
}
