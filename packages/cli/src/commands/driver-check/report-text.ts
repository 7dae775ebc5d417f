/** The report of a conformance run as text for people. */
import {
  type CallRecord,
  type Check,
  type CheckResult,
  type ConformanceReport,
  goneSince,
} from "@longshore/conformance";
import pc from "picocolors";
import { seconds, table } from "../../terminal.ts";

const longestRequest = 300;

/** The whole report. @param verbose one line a check instead of one a subject */
export function reportText(report: ConformanceReport, verbose: boolean): string {
  const { results, leftovers } = report;
  const failed = results.filter(({ outcome }) => outcome === "failed" || outcome === "warned");
  return [
    driverText(report),
    verbose ? everyCheck(results) : subjects(results),
    skippedText(results),
    failed.map(failureText).join("\n"),
    leftovers.length === 0
      ? ""
      : `${pc.red("Still there")}, made by the checks: remove it by hand\n${leftovers.map((text) => `  ${text}\n`).join("")}`,
    summary(report),
  ]
    .filter((part) => part !== "")
    .join("\n");
}

/** The list of checks. */
export function listText(checks: readonly Pick<Check, "id" | "sentence" | "spec">[]): string {
  return table([
    ["CHECK", "SPECIFICATION", "WHAT MUST HOLD"],
    ...checks.map(({ id, spec, sentence }) => [id, spec, sentence]),
  ]);
}

function driverText({ driver }: ConformanceReport): string {
  const { capabilities } = driver;
  const rows = [
    ["driver", `${driver.name || "(no name)"} ${driver.vendorVersion}`.trim()],
    ...(driver.nodeId === "" ? [] : [["node", driver.nodeId]]),
    ...(
      [
        ["plugin", capabilities.plugin],
        ["controller", capabilities.controller],
        ["group controller", capabilities.groupController],
        ["node service", capabilities.node],
      ] as const
    )
      .filter(([, names]) => names.length > 0)
      .map(([title, names]) => [title, names.join(", ")]),
  ];
  return table(rows);
}

/** `controller.create-volume` of `controller.create-volume.idempotent`. */
function subjectOf(id: string): string {
  return id.slice(0, id.lastIndexOf("."));
}

function subjects(results: readonly CheckResult[]): string {
  const rows: string[][] = [];
  for (const subject of new Set(results.map(({ id }) => subjectOf(id)))) {
    const own = results.filter(({ id }) => subjectOf(id) === subject);
    const count = (outcome: string) => own.filter((result) => result.outcome === outcome).length;
    const ms = own.reduce((sum, { elapsedMs }) => sum + elapsedMs, 0);
    rows.push([
      subject,
      ...["passed", "failed", "warned", "skipped"].map((o) => String(count(o) || "-")),
      seconds(ms),
    ]);
  }
  return table([["SUBJECT", "PASSED", "FAILED", "WARNED", "SKIPPED", "TIME"], ...rows]);
}

function everyCheck(results: readonly CheckResult[]): string {
  const rows = results.map(({ id, outcome, elapsedMs, sentence }) => [
    outcome,
    id,
    outcome === "skipped" ? "-" : seconds(elapsedMs),
    sentence,
  ]);
  return table([["RESULT", "CHECK", "TIME", "WHAT MUST HOLD"], ...rows]);
}

/** Skipped checks, those of one reason together. */
function skippedText(results: readonly CheckResult[]): string {
  const byReason = new Map<string, string[]>();
  for (const { id, outcome, message = "" } of results) {
    if (outcome === "skipped") byReason.set(message, [...(byReason.get(message) ?? []), id]);
  }
  if (byReason.size === 0) return "";
  const lines = [...byReason].map(([reason, ids]) => {
    const shown =
      ids.length <= 3 ? ids.join(", ") : `${ids.slice(0, 2).join(", ")} and ${ids.length - 2} more`;
    return `  ${reason}: ${shown}\n`;
  });
  return `Skipped\n${lines.join("")}`;
}

const holds = { MUST: "must hold: ", SHOULD: "should hold: ", ADVICE: "our advice: " } as const;

function failureText({ id, sentence, spec, verb, outcome, message = "", calls = [] }: CheckResult): string {
  return [
    `${outcome === "failed" ? pc.red("FAILED") : pc.yellow("WARNED")} ${pc.bold(id)}`,
    `  ${holds[outcome === "failed" ? "MUST" : verb]}${sentence} ${pc.dim(`(CSI specification, ${spec})`)}`,
    `  was seen:  ${message}`,
    ...(calls.length === 0 ? [] : ["  calls:"]),
    ...calls.map((call) => `    ${callText(call)}`),
    "",
  ].join("\n");
}

function callText({ rpc, code, message, request, elapsedMs }: CallRecord): string {
  const text = JSON.stringify(request);
  const shown = text.length > longestRequest ? `${text.slice(0, longestRequest)}…` : text;
  const ending = message === undefined || message === "" ? code : `${code}: ${message}`;
  return `${rpc} ${pc.dim(shown)} → ${ending} ${pc.dim(`(${Math.round(elapsedMs)} ms)`)}`;
}

function summary(report: ConformanceReport): string {
  const { results, passed, failed, warned, skipped, notRun, leftovers, elapsedMs } = report;
  const verdict =
    notRun !== undefined && failed === 0
      ? `interrupted, ${notRun} checks were not run`
      : failed > 0
        ? pc.red("the driver breaks the contract")
        : leftovers.length > 0
          ? pc.red("what the checks made could not be removed")
          : passed === 0
            ? "nothing was checked"
            : pc.green("the driver keeps the contract, as far as it was checked");
  const lost = results.filter(({ message = "" }) => message.startsWith(goneSince)).length;
  const unseen = lost === 0 ? "" : `, and ${lost} checks were not run since the driver was gone`;
  return `${passed} passed, ${failed} failed, ${warned} warned, ${skipped} skipped in ${seconds(elapsedMs)}: ${verdict}${unseen}\n`;
}
