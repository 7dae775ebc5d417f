/** Carries classes and StatefulSets, one after the other. */
import { join } from "node:path";
import { type KubeClient, type KubeObject, resources, type StatefulSet, type Stored } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { betaStorageClassAnnotation } from "@longshore/storage";
import type { ConversionEnv, ConversionRunOptions } from "../conversion-options.ts";
import type { ConversionResult } from "../conversion-run.ts";
import type { ConversionDirection, Refusal } from "../conversion-types.ts";
import { unitJournal } from "../units/unit-journal.ts";
import { carryUnit } from "../units/unit-run.ts";
import { refOf, replacedResource } from "./observe-replacement.ts";
import type { ReplacementPlan } from "./plan-replacements.ts";
import { probeReplacement } from "./probe-replacement.ts";
import { replacementKind } from "./replacement-actions.ts";
import { newReplacementJournal, replacementJournals } from "./replacement-journal.ts";
import { newNameOf, type PlannedReplacement, type ReplacementJournal } from "./replacement-types.ts";
import { undoOfReplacement } from "./undo-replacements.ts";

/** Carries them in this order, or goes on with them. After a failure none is begun. @throws the signal's reason */
export async function carryReplacements(
  env: ConversionEnv,
  journals: readonly ReplacementJournal[],
  options: ConversionRunOptions,
  signal: AbortSignal,
): Promise<ConversionResult> {
  const startMs = env.clock.monotonicMs();
  const converted: { volume: string; requests: number }[] = [];
  const failed: { volume: string; error: unknown }[] = [];
  const left: string[] = [];
  const { host } = env;
  const { journalDir: dir } = options;
  if (journals.length > 0) await host.makeDirectory(join(dir, replacementJournals.label));
  for (const journal of journals) {
    const name = journal.planned.key;
    if (failed.length > 0) {
      left.push(name);
      continue;
    }
    const storeOf = (kube: KubeClient) => unitJournal({ kube, host, dir }, replacementJournals, name);
    try {
      const unit = { kind: replacementKind, name, journal, storeOf };
      const { requests } = await carryUnit(env, unit, options, signal);
      converted.push({ volume: name, requests });
    } catch (error) {
      // An interruption is no failure of the object.
      if (signal.aborted) throw signal.reason;
      failed.push({ volume: name, error });
      options.onEvent?.({ kind: "volumeFailed", volume: name, error: errorChain(error) });
    }
  }
  return { converted, failed, left, elapsedMs: Math.round(env.clock.monotonicMs() - startMs) };
}

/** Journals at the beginning for what a plan holds. @param known what earlier runs have left, by the key of the object */
export function startedReplacements(
  replacements: readonly PlannedReplacement[],
  known: ReadonlyMap<string, ReplacementJournal>,
  clusterId: string,
  direction: ConversionDirection,
): readonly ReplacementJournal[] {
  return replacements.map((planned) =>
    newReplacementJournal(planned, clusterId, direction, known.get(planned.key)),
  );
}

/**
 * What earlier runs have left half-done. It is carried before anything else is planned: its object may be away. In the direction of
 * an undo, what is half converted is carried back.
 */
export async function openReplacements(
  kube: KubeClient,
  known: ReadonlyMap<string, ReplacementJournal>,
  direction: ConversionDirection,
  signal: AbortSignal,
): Promise<readonly ReplacementJournal[]> {
  const open = [...known.values()].filter(({ finishedAt }) => finishedAt === undefined);
  if (direction === "convert")
    return inOrder(
      open.filter((each) => each.direction === "convert"),
      direction,
    );
  const journals: ReplacementJournal[] = [];
  for (const journal of open) {
    if (journal.direction === "undo") {
      journals.push(journal);
      continue;
    }
    const planned = undoOfReplacement(journal, await madeBy(kube, journal, signal));
    if ("refusals" in planned) continue;
    journals.push(newReplacementJournal(planned, journal.clusterId, "undo", journal));
  }
  return inOrder(journals, direction);
}

/** Plans the way back of conversions that have come to their end; changes nothing. */
export async function planUndoReplacements(
  kube: KubeClient,
  journals: readonly ReplacementJournal[],
  signal: AbortSignal,
): Promise<ReplacementPlan> {
  const replacements: PlannedReplacement[] = [];
  const refused: { volume: string; refusals: readonly Refusal[] }[] = [];
  const isBeside = journals.some(({ planned }) => newNameOf(planned) !== planned.name);
  const sets = isBeside ? (await kube.list(resources.statefulSets, { signal })).items : [];
  const undone = new Set(journals.map(({ planned }) => planned.key));
  for (const journal of inOrder(journals, "undo")) {
    const { planned } = journal;
    const users = sets
      .filter((set) => newNameOf(planned) !== planned.name && namesClass(set, newNameOf(planned)))
      .map(({ metadata }) => `StatefulSet ${metadata.namespace}/${metadata.name}`)
      .filter((key) => !undone.has(key));
    const back = undoOfReplacement(journal, await madeBy(kube, journal, signal), users);
    const refusals = "refusals" in back ? back.refusals : await probeReplacement(kube, back, signal);
    if ("refusals" in back || refusals.length > 0) refused.push({ volume: planned.key, refusals });
    else replacements.push(back);
  }
  return { replacements, refused };
}

/** Templates are changed while both classes are there. */
function inOrder(
  journals: readonly ReplacementJournal[],
  direction: ConversionDirection,
): readonly ReplacementJournal[] {
  const first = direction === "convert" ? "StorageClass" : "StatefulSet";
  const isFirst = ({ planned }: ReplacementJournal) => planned.kind === first;
  return [...journals.filter(isFirst), ...journals.filter((journal) => !isFirst(journal))];
}

/** The object that the conversion has made, or was to make. */
async function madeBy(
  kube: KubeClient,
  { planned }: ReplacementJournal,
  signal: AbortSignal,
): Promise<Stored<KubeObject> | undefined> {
  return kube.get(replacedResource(planned.kind), refOf(planned, newNameOf(planned)), { signal });
}

function namesClass({ spec }: StatefulSet, name: string): boolean {
  return (spec?.volumeClaimTemplates ?? []).some(
    ({ metadata, spec }) =>
      spec?.storageClassName === name || metadata?.annotations?.[betaStorageClassAnnotation] === name,
  );
}
