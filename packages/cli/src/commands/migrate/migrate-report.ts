/** What `migrate` and `rollback` print: results, events and what an unfinished run leaves. Pure, but for the stream of events. */
import {
  type CrossingEvent,
  type CrossingJournal,
  type CrossingResult,
  type Finding,
  findingWords,
  type ManualTask,
  PreflightError,
  StepTimeoutError,
  type UnfinishedRun,
} from "@longshore/migration";
import { errorChain } from "@longshore/runtime";
import pc from "picocolors";
import { clusterFields, inFlags } from "../../field-flags.ts";
import { seconds } from "../../terminal.ts";

/** What an unfinished run leaves. */
export interface Left {
  /** What was seen, or why nothing could be. */
  readonly seen: UnfinishedRun | Error;
  readonly journalFile: string;
  readonly journal: CrossingJournal | undefined;
  /** The commands that go on, and that go back. */
  readonly resume: string;
  readonly rollBack: string;
  /** `--uncordon-on-abort` was given. */
  readonly uncordonAsked: boolean;
}

/** The result of a run that came to its end. */
export function crossingWords(result: CrossingResult, json: boolean): string {
  const { nodesLeft } = result;
  if (json) return `${JSON.stringify({ outcome: nodesLeft.length === 0 ? "done" : "paused", ...result })}\n`;
  if (nodesLeft.length > 0) {
    return `${pc.bold(result.plugin)}: paused after ${seconds(result.elapsedMs)}; left: ${someOf(nodesLeft)}; run it again to go on\n`;
  }
  const what = result.direction === "migrate" ? "is served by CSI" : "is served in-tree again";
  const resumed = result.resumed ? " (resumed)" : "";
  const end = `${pc.bold(result.plugin)} ${what}${resumed}, after ${seconds(result.elapsedMs)}\n`;
  return result.direction === "migrate" ? end : `${end}${driverWords(result.driverVolumes)}\n`;
}

/** Most volumes or nodes that are named in a line. */
const namedMax = 10;

function someOf(names: readonly string[]): string {
  const more = names.length > namedMax ? ` and ${names.length - namedMax} more` : "";
  return `${names.slice(0, namedMax).join(", ")}${more}`;
}

function driverWords(volumes: readonly string[]): string {
  if (volumes.length === 0) return "no volume needs the driver any more";
  return `keep the driver: it has made PersistentVolume ${someOf(volumes)}, which cannot go back`;
}

/** The warnings, a line each, and a sentence that ends them. */
export function preflightWords(warnings: readonly Finding[], end?: string): string {
  const lines = warnings.map((finding) => `warning: ${inFlags(findingWords(finding), clusterFields)}\n`);
  return `${lines.join("")}${end ?? (lines.length === 0 ? "preflight found no problem\n" : "nothing blocks the crossing\n")}`;
}

/** What the preflight found; of which plugin, where several are asked for. */
export function preflightJson(findings: readonly Finding[], plugin?: string): string {
  const of = (severity: Finding["severity"]) => findings.filter((finding) => finding.severity === severity);
  return jsonLine({
    ...(plugin === undefined ? {} : { plugin }),
    blockers: of("blocker"),
    warnings: of("warning"),
  });
}

/** What an administrator is to do by hand. */
export function taskLines({ nodeName, gates, confirm }: ManualTask): string[] {
  if (nodeName !== undefined) {
    return [
      `to do: on node ${nodeName}, which is drained now, set the feature gates ${gates} of the kubelet (featureGates in its configuration) and restart it`,
    ];
  }
  const first = `to do: start kube-apiserver, kube-controller-manager and kube-scheduler with --feature-gates=${gates} beside the gates they have`;
  if (confirm === undefined) return [first];
  const { namespace, name, key } = confirm;
  return [
    first,
    "  the controller manager has no pods here that show its gates, so say it once all of them run:",
    `  kubectl -n ${namespace} create configmap ${name} --from-literal=${key}=${gates} --dry-run=client -o yaml | kubectl apply -f -`,
  ];
}

/** Writes events to stderr, a JSON object a line. */
export function jsonEvents(event: CrossingEvent | ({ readonly kind: "task" } & ManualTask)): void {
  process.stderr.write(jsonLine(event));
}

/** A run that did not come to its end. */
export function jsonFailure(error: unknown, interrupted: boolean, left: Left | undefined): string {
  const outcome =
    error instanceof StepTimeoutError
      ? "timedOut"
      : interrupted
        ? "interrupted"
        : error instanceof PreflightError
          ? "blocked"
          : "failed";
  return jsonLine({
    outcome,
    error: errorChain(error),
    ...(error instanceof StepTimeoutError
      ? { step: error.step, nodeName: error.nodeName, waitingFor: error.wait.subjects }
      : {}),
    ...(error instanceof PreflightError ? { findings: error.findings } : {}),
    ...(left === undefined ? {} : { left: jsonLeft(left) }),
  });
}

/** One line of JSON, whose texts say flags in place of fields. */
function jsonLine(value: object): string {
  return `${inFlags(JSON.stringify(value), clusterFields)}\n`;
}

function jsonLeft({ seen, journalFile, journal, resume, rollBack }: Left): object {
  const facts = seen instanceof Error ? { unknown: errorChain(seen) } : seen;
  return { ...facts, journalFile, nodesDone: journal?.nodesDone ?? [], resume, rollBack };
}

/** What is left, for people. */
export function leftLines(left: Left): string[] {
  const { seen, journalFile, journal, resume, rollBack } = left;
  const step = journal?.run?.step;
  const where = step?.nodeName === undefined ? step?.name : `${step.nodeName}: ${step.name}`;
  const done = journal?.nodesDone ?? [];
  const earlier = journal?.nodesDoneEarlier === undefined ? "" : `${journal.nodesDoneEarlier} others and `;
  return [
    ...(where === undefined ? [] : [`stopped in step "${where}"`]),
    ...(seen instanceof Error
      ? [`what is left cannot be seen (${errorChain(seen)}): the node of this step may be cordoned`]
      : seenLines(seen, left.uncordonAsked)),
    `journal ${journalFile}: ${journal?.direction ?? "no crossing"} begun, nodes done: ${earlier}${someOf(done) || "none"}`,
    `go on:     ${resume}`,
    `go back:   ${rollBack}`,
  ];
}

function seenLines({ controlPlane, nodes }: UnfinishedRun, uncordonAsked: boolean): string[] {
  const served = someOf(nodes.map((node) => `${node.name} ${node.served}`));
  const cordoned = nodes.filter((node) => node.cordoned);
  const given = nodes.filter((node) => node.uncordoned).map((node) => node.name);
  return [
    `feature gates: control plane ${controlPlane}, ${served}`,
    ...(given.length === 0 ? [] : [`uncordoned: ${given.join(", ")}`]),
    ...cordoned.map((node) =>
      node.kept === undefined
        ? `${node.name} stays cordoned; it is uncordoned when the crossing of it ends`
        : `${node.name} stays cordoned, although --uncordon-on-abort was given: ${node.kept}`,
    ),
    ...(cordoned.length === 0 && given.length === 0 && uncordonAsked ? ["no node was left cordoned"] : []),
  ];
}
