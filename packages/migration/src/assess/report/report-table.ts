/** The report of an assessment for people: counts first, then the findings of each code, no line longer than 100 columns. */
import { foreignText } from "@longshore/runtime";
import type { Assessment } from "../assess.ts";
import type { AssessmentDiff } from "../assessment-diff.ts";
import type { AssessmentFinding, Becomes } from "../assessment-finding.ts";
import { findingCode } from "../finding-codes.ts";
import { byCode, countsOf } from "./report-data.ts";

const width = 100;
/** Objects of one code that are shown. */
const shownMax = 10;

/** How the table is written. */
export interface TableOptions {
  /** Shows every object of a code, however many there are. */
  readonly all?: boolean;
}

/** The report as lines of text. */
export function reportTable(assessment: Assessment, options: TableOptions = {}): string {
  const lines = head(assessment);
  const hasTarget = assessment.targetVerdict !== undefined;
  for (const findings of byCode(assessment.findings)) lines.push("", ...group(findings, hasTarget, options));
  if (assessment.diff !== undefined) lines.push(...changes(assessment.diff, options));
  lines.push("", "`longshore explain CODE` says more of a code.");
  return `${lines.join("\n")}\n`;
}

function head(assessment: Assessment): string[] {
  const { clusterMinor, targetMinor, verdict, targetVerdict, looked, suppressed } = assessment;
  const counts = countsOf(assessment);
  const version = (minor: number | undefined) => (minor === undefined ? "of unknown version" : `1.${minor}`);
  const what = Object.entries(looked).map(([name, count]) => `${count} ${name}`);
  return [
    `now     Kubernetes ${version(clusterMinor)}: ${verdict}`,
    ...(targetVerdict === undefined ? [] : [`target  Kubernetes ${version(targetMinor)}: ${targetVerdict}`]),
    `findings: ${counts.error} errors, ${counts.unknown} unknown, ${counts.warning} warnings, ${counts.info} notes`,
    ...(suppressed.length === 0
      ? []
      : [`suppressed: ${suppressed.length}; \`-o json\` has them with their reasons`]),
    ...wrapped(`looked at: ${what.join(", ")}`, ""),
  ];
}

function changes({ since, added, gone }: AssessmentDiff, { all = false }: TableOptions): string[] {
  const list = (title: string, findings: AssessmentDiff["gone"] | AssessmentDiff["added"]) => {
    const shown = all ? findings : findings.slice(0, shownMax);
    const left = findings.length - shown.length;
    return [
      `${title}: ${findings.length}`,
      ...shown.flatMap(({ code, object }) => wrapped(`  - ${code} ${object}`, "    ")),
      ...(left > 0 ? [`  … and ${left} more; \`-o wide\` shows all`] : []),
    ];
  };
  return ["", ...wrapped(`since the report of ${since}`, ""), ...list("new", added), ...list("gone", gone)];
}

function group(
  findings: readonly AssessmentFinding[],
  hasTarget: boolean,
  { all = false }: TableOptions,
): string[] {
  const [first] = findings;
  if (first === undefined) return [];
  const shown = all ? findings : findings.slice(0, shownMax);
  const lines = wrapped(
    `${first.code} ${first.severity}: ${findingCode(first.code)?.title} (${findings.length})`,
    "       ",
  );
  const remedies = new Set(shown.map(({ remedy }) => remedy));
  for (const { object, field, evidence, remedy, when, becomes = [] } of shown) {
    const only = when === "both" || !hasTarget ? "" : when === "now" ? " [now only]" : " [target only]";
    const at = field === undefined ? "" : `, ${field}`;
    lines.push(...wrapped(`  - ${object}${at}: ${evidence}${only}`, "    "));
    if (all) lines.push(...sides(becomes));
    if (remedies.size > 1) lines.push(...wrapped(`    -> ${remedy}`, "       "));
  }
  const left = findings.length - shown.length;
  if (left > 0) lines.push(`  … and ${left} more; \`-o wide\` shows all`);
  if (remedies.size === 1) lines.push(...wrapped(`  -> ${first.remedy}`, "     "));
  return lines;
}

/** The object and what it becomes, side by side where both fit. */
function sides(becomes: readonly Becomes[]): string[] {
  const column = 44;
  return becomes.flatMap(({ field, value, to, toValue, fate }) => {
    const left = field === "" ? "" : value === undefined ? field : `${field} = ${value}`;
    const right = to === "" ? "" : toValue === undefined ? to : `${to} = ${toValue}`;
    const row = `      ${left.padEnd(column)} ${`| ${right}`.trimEnd()} (${fate})`;
    if (left.length <= column && row.length <= width) return wrapped(row, "        ", true);
    return wrapped(`      ${left} | ${right} (${fate})`, "        ");
  });
}

/** The text on lines that fit; words longer than a line are cut. What servers and drivers said is sanitized. */
function wrapped(text: string, indent: string, isAligned = false): string[] {
  if (isAligned) return [foreignText(text, Number.POSITIVE_INFINITY)];
  const lines: string[] = [];
  const start = /^ */.exec(text)?.[0] ?? "";
  let line = start;
  for (const word of foreignText(text, Number.POSITIVE_INFINITY).trim().split(/ +/)) {
    let rest = word;
    const glue = line.trim() === "" ? "" : " ";
    if (line.length + glue.length + rest.length <= width) {
      line += glue + rest;
      continue;
    }
    if (glue !== "") {
      lines.push(line);
      line = indent;
    }
    while (line.length + rest.length > width) {
      const room = width - line.length;
      lines.push(line + rest.slice(0, room));
      rest = rest.slice(room);
      line = indent;
    }
    line += rest;
  }
  return [...lines, line];
}
