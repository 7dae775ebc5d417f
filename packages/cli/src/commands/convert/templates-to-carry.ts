/** The disks that pod templates name themselves: which of them a command of `longshore convert` is about. */
import type { KubeClient } from "@longshore/kube";
import {
  type ConversionDirection,
  type InlineJournal,
  type InlinePlan,
  type InlinePlanOptions,
  isUnfinishedInline,
  newInlineJournal,
  openTemplates,
  planInlineConversion,
  planInlineUndo,
  readInlineJournals,
  templateKey,
  templateName,
  wantedKey,
} from "@longshore/migration";
import { UsageError } from "../../exit.ts";
import { areInlineChosen, type ConvertFlags } from "./convert-flags.ts";
import type { ConversionTarget } from "./convert-target.ts";

/** What the command is about. */
export interface TemplatesAsked {
  readonly direction: ConversionDirection;
  readonly flags: ConvertFlags;
  /** In-tree names of plugins. */
  readonly plugins?: readonly string[] | undefined;
  readonly target: ConversionTarget;
}

/** What is to be carried, and what is not. */
export interface TemplatesToCarry {
  readonly journals: readonly InlineJournal[];
  readonly refused: InlinePlan["refused"];
  /** Names of unfinished ones that were not chosen. */
  readonly left: readonly string[];
}

const nothing: TemplatesToCarry = { journals: [], refused: [], left: [] };

/** The plan for the templates that the flags choose. */
export async function planTemplates(
  { flags, plugins, target }: TemplatesAsked,
  signal: AbortSignal,
): Promise<InlinePlan> {
  if (!areInlineChosen(flags)) return { templates: [], refused: [] };
  const { kube } = target.env;
  const journals = await templateJournals(target, kube, signal);
  return planInlineConversion(kube, optionsOf(flags, plugins), signal, openTemplates(journals.values()));
}

/** What an earlier run has left of what is chosen, and then what is new. @throws UsageError */
export async function templatesToCarry(
  asked: TemplatesAsked,
  kube: KubeClient,
  signal: AbortSignal,
): Promise<TemplatesToCarry> {
  const { direction, flags, plugins, target } = asked;
  if (!areInlineChosen(flags)) return nothing;
  const known = await templateJournals(target, kube, signal);
  const open = [...known.values()].filter(isUnfinishedInline);
  const chosen = open.filter((journal) => isChosen(journal, asked));
  const others = chosen.filter((journal) => journal.direction !== direction);
  if (direction === "convert" && others.length > 0) {
    const names = others.map(({ planned }) => templateName(planned)).join(", ");
    throw new UsageError(`an undo of ${names} is unfinished: end it first with longshore convert undo`);
  }
  const options = optionsOf(flags, plugins);
  const toUndo = [...known.values()].filter(
    (journal) => journal.direction === "convert" && isChosen(journal, asked),
  );
  const plan =
    direction === "convert"
      ? await planInlineConversion(kube, options, signal, openTemplates(known.values()))
      : await planInlineUndo(kube, toUndo, options, signal);
  const fresh = plan.templates.map((planned) =>
    newInlineJournal(planned, target.clusterId, direction, known.get(templateKey(planned))),
  );
  const resumed = chosen.filter((journal) => journal.direction === direction);
  const left = open.filter((journal) => !chosen.includes(journal));
  return {
    journals: [...resumed, ...fresh],
    refused: plan.refused,
    left: left.map(({ planned }) => templateName(planned)),
  };
}

/** All journals of templates in the cluster. */
export function templateJournals(
  { env, clusterId, journalDir }: ConversionTarget,
  kube: KubeClient,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, InlineJournal>> {
  return readInlineJournals({ kube, host: env.host, dir: journalDir }, clusterId, signal);
}

function isChosen({ planned }: InlineJournal, { flags, plugins }: TemplatesAsked): boolean {
  const { workload, namespace } = flags;
  if (workload !== undefined) return workload.some((text) => wantedKey(text) === templateKey(planned));
  return (
    (namespace?.includes(planned.workload.namespace) ?? true) &&
    (plugins === undefined || planned.volumes.some(({ plugin }) => plugins.includes(plugin)))
  );
}

function optionsOf(
  { workload, namespace, claimSize, scaleDown, wait }: ConvertFlags,
  plugins: readonly string[] | undefined,
): InlinePlanOptions {
  // A name alone says which: the other flags choose volumes then.
  const chosen =
    workload === undefined
      ? {
          ...(namespace === undefined ? {} : { namespaces: namespace }),
          ...(plugins === undefined ? {} : { plugins }),
        }
      : { workloads: workload };
  return {
    ...chosen,
    ...(claimSize === undefined ? {} : { sizes: claimSize }),
    scaleDown: scaleDown === true,
    wait: wait === true,
  };
}
