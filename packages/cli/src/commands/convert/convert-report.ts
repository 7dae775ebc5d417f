/** What the verbs of `longshore convert` print. */
import {
  type ConversionEvent,
  type ConversionPlan,
  type ConversionResult,
  type ConversionStatusRow,
  diffOfObjects,
  type PlannedReplacement,
  type PlannedTemplate,
  type PlannedVolume,
  type Refusal,
  type ReplacementStatusRow,
  refusalWords,
  templateForms,
  templateName,
  waitWords,
} from "@longshore/migration";
import { errorChain, foreignLines, foreignText } from "@longshore/runtime";
import pc from "picocolors";
import { clusterFields, inFlags } from "../../field-flags.ts";
import { lastingMs, type Progress, seconds, wholeSeconds } from "../../terminal.ts";
import { textTable } from "../../text-table.ts";

type Refused = ConversionPlan["refused"];

/** The plan as text: what each volume becomes, and why others stay. */
export function planWords({
  volumes,
  refused,
  classes = [],
  replacements = [],
  inline = [],
}: Pick<ConversionPlan, "volumes" | "refused" | "classes" | "replacements"> & {
  readonly inline?: readonly PlannedTemplate[];
}): string {
  const parts = [
    ...volumes.map(volumeWords),
    ...inline.map(inlineWords),
    ...replacements.map(replacementWords),
  ];
  const names = [
    ...volumes.map(({ volume }) => volume),
    ...inline.map(templateName),
    ...replacements.map(({ key }) => key),
  ];
  const count = `${counted(names)} can be carried, ${refused.length} refused; nothing was changed\n`;
  return [...parts, ...classes.map(classWords), refusedWords(refused), count]
    .filter((part) => part !== "")
    .join("\n");
}

function replacementWords({ key, before, after, keepsOld, kind, owners }: PlannedReplacement): string {
  const how = keepsOld
    ? `${after.metadata?.name} is made beside it`
    : kind === "StatefulSet"
      ? "made again around its pods, which go on running"
      : "made again under its name; meanwhile no volume of it is provisioned";
  const lines = [`${key}: ${how}`, ...owners.map(({ kind, name, change }) => `  ${kind} ${name}: ${change}`)];
  return `${foreignLines([...lines, diffOfObjects(before, after)].join("\n"), Number.POSITIVE_INFINITY)}\n`;
}

/** A class that is not asked for. */
function classWords({ before, after }: NonNullable<ConversionPlan["classes"]>[number]): string {
  const head = `StorageClass ${before.metadata?.name}: it stays an in-tree one; with --classes this one is put in its place`;
  return `${foreignLines(`${head}\n${diffOfObjects(before, after)}`, Number.POSITIVE_INFINITY)}\n`;
}

function volumeWords(planned: PlannedVolume): string {
  const { volume, claim, plugin, driver, inUseBy, workloads, owners, snapshots, policy } = planned;
  const scaled = workloads.map(
    ({ kind, namespace, name, replicas }) => `${kind} ${namespace}/${name} (${replicas} replicas)`,
  );
  const downtime =
    inUseBy.length === 0
      ? "none of a pod: nothing uses it now"
      : `from the end of ${inUseBy.join(", ")} until its claim is bound again`;
  const lines = [
    `PersistentVolume ${volume}: ${plugin} to ${driver}, claim ${claim.namespace}/${claim.name}, policy ${policy} (Retain meanwhile)`,
    `  downtime: ${downtime}`,
    ...(scaled.length === 0 ? [] : [`  scaled to 0, and back: ${scaled.join(", ")}`]),
    ...(snapshots.length === 0 ? [] : [`  snapshots that stay as they are: ${snapshots.join(", ")}`]),
    ...owners.map(({ kind, name, change }) => `  ${kind} ${name}: ${change}`),
  ];
  const diffs = [
    diffOfObjects(planned.fromBefore, planned.toAfter),
    diffOfObjects(planned.claimBefore, planned.claimAfter),
  ];
  return `${foreignLines([...lines, ...diffs].join("\n"), Number.POSITIVE_INFINITY)}\n`;
}

function inlineWords(planned: PlannedTemplate): string {
  const { workload, volumes, inUseBy, owners, scaleDown } = planned;
  const downtime =
    inUseBy.length === 0
      ? "none of a pod: nothing uses the disks now"
      : `from the end of ${inUseBy.join(", ")} until the template names the claims`;
  const lines = [
    `${templateName(planned)}: ${plural(volumes.length, "volume")} of its template to claims, policy Retain`,
    `  downtime: ${downtime}`,
    ...(scaleDown && workload.replicas > 0
      ? [`  scaled to 0, and back: ${templateName(planned)} (${workload.replicas} replicas)`]
      : []),
    ...owners.map(({ kind, name, change }) => `  ${kind} ${name}: ${change}`),
  ];
  const diffs = [
    diffOfObjects(...templateForms(planned)),
    ...volumes.flatMap(({ volume, claim }) => [
      diffOfObjects(undefined, volume),
      diffOfObjects(undefined, claim),
    ]),
  ];
  return `${foreignLines([...lines, ...diffs].join("\n"), Number.POSITIVE_INFINITY)}\n`;
}

/** That others were begun and are not carried now. */
export function unfinishedWords(names: readonly string[]): string {
  const text = names.map((name) => foreignText(name, 300)).join(", ");
  return `${pc.yellow("!")} unfinished, and not chosen: ${text}; their disks are kept by policy Retain, see longshore convert status\n`;
}

/** The refusals, each by name with its remedy. */
export function refusedWords(refused: Refused): string {
  return refused
    .flatMap(({ volume, refusals }) => refusals.map((refusal) => refusalLine(volume, refusal)))
    .join("");
}

function refusalLine(volume: string, refusal: Refusal): string {
  return `${pc.red("✗")} ${foreignText(`${volume}: ${inFlags(refusalWords(refusal), clusterFields)} [${refusal.code}]`, 2000)}\n`;
}

/** Shows the events of a run. */
export function showConversion(progress: Progress): (event: ConversionEvent) => void {
  return (event) => {
    switch (event.kind) {
      case "volumeStarted":
        return progress.status(`  … ${event.volume}`);
      case "stepDone":
        return progress.status(`  … ${event.volume}: ${event.step}`);
      case "waiting": {
        const text = `  … ${event.volume}: ${event.step} waits for ${waitWords(event.wait)}`;
        const { waitedMs, leftMs } = event;
        const lasts = waitedMs >= lastingMs;
        const times = `, for ${wholeSeconds(waitedMs)} now; given up in ${wholeSeconds(leftMs)}`;
        if (lasts || !progress.live) progress.line(`${text}${lasts ? times : ""}`);
        return progress.status(text, waitedMs);
      }
      case "volumeDone":
        return progress.line(
          `  ${pc.green("✓")} ${event.volume} ${pc.dim(`${seconds(event.ms)}, ${plural(event.requests, "API request")}`)}`,
        );
      case "volumeFailed":
        return progress.line(`  ${pc.red("✗")} ${event.volume}: ${foreignText(event.error, 2000)}`);
    }
  };
}

/** How a run went. */
export function resultWords(verb: "converted" | "undone", result: ConversionResult): string {
  const { converted, failed, left, elapsedMs } = result;
  const requests = converted.map((each) => each.requests);
  const sum = requests.reduce((all, each) => all + each, 0);
  const per =
    converted.length === 0
      ? ""
      : `; API requests for each: ${Math.round(sum / converted.length)} on average, ${Math.max(...requests)} at most`;
  const rest = [
    ...(failed.length === 0 ? [] : [`${failed.length} failed`]),
    ...(left.length === 0 ? [] : [`${left.length} left`]),
  ];
  const others = rest.length === 0 ? "" : `, ${rest.join(", ")}`;
  const names = converted.map(({ volume }) => volume);
  return `${counted(names)} ${verb}${others} in ${seconds(elapsedMs)}${per}\n`;
}

/** Classes that a run has left as they are. */
export function leftClassWords(classes: NonNullable<ConversionPlan["classes"]>): string {
  if (classes.length === 0) return "";
  const names = classes.map(({ before }) => before.metadata?.name).join(", ");
  return `still in-tree, and so are new claims' volumes: StorageClass ${foreignText(names, 2000)}; convert with --classes\n`;
}

/** How many volumes and other objects; one that is no volume is named with its kind. */
export function counted(names: readonly string[]): string {
  const objects = names.filter((name) => name.includes(" "));
  const volumes = plural(names.length - objects.length, "volume");
  if (objects.length === 0) return volumes;
  const others = plural(objects.length, "other object");
  return objects.length === names.length ? others : `${volumes} and ${others}`;
}

/** The same for programs. */
export function resultJson(result: ConversionResult): string {
  const failed = result.failed.map(({ volume, error }) => ({ volume, error: errorChain(error) }));
  return `${JSON.stringify({ kind: "result", ...result, failed })}\n`;
}

/** The table of `status`. */
export function statusWords(
  rows: readonly ConversionStatusRow[],
  objects: readonly ReplacementStatusRow[],
): string {
  if (rows.length === 0 && objects.length === 0) return "no volume has been converted\n";
  const head = ["VOLUME", "CLAIM", "STATE", "BECOMES", "STEP", "AT", "REQUESTS"];
  const cells = rows.map(({ volume, claim, state, direction, becomes, step, at, requests }) => [
    volume,
    claim,
    state === "unfinished" ? `${direction}, unfinished` : state,
    becomes,
    step ?? "-",
    at ?? "-",
    String(requests),
  ]);
  const others = objects.map(({ object, state, direction, becomes, step, at, requests }) => [
    object,
    "-",
    state === "unfinished" ? `${direction}, unfinished` : state,
    becomes,
    step ?? "-",
    at ?? "-",
    String(requests),
  ]);
  return textTable([head, ...cells, ...others]);
}

function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
