/** The report in Markdown, for issues, reviews and wikis: the verdicts, then a table for each code. */
import { foreignText } from "@longshore/runtime";
import type { Assessment } from "../assess.ts";
import { findingCode } from "../finding-codes.ts";
import { byCode, countsOf, whenText } from "./report-data.ts";

/** The report in Markdown, with the tables of GitHub's dialect. */
export function reportMarkdown(assessment: Assessment): string {
  const { clusterMinor, targetMinor, verdict, targetVerdict } = assessment;
  const counts = countsOf(assessment);
  const row = (what: string, minor: number | undefined, of: string) =>
    `| ${what} | ${minor === undefined ? "unknown" : `1.${minor}`} | ${of} |`;
  const lines = [
    "# Assessment of the cluster's volumes",
    "",
    `Made at ${assessment.at.toISOString()}.`,
    "",
    "| | Kubernetes | verdict |",
    "| --- | --- | --- |",
    row("now", clusterMinor, verdict),
    ...(targetVerdict === undefined ? [] : [row("target", targetMinor, targetVerdict)]),
    "",
    `${counts.error} errors, ${counts.unknown} unknown, ${counts.warning} warnings, ${counts.info} notes.`,
  ];
  for (const findings of byCode(assessment.findings)) {
    const [first] = findings;
    if (first === undefined) continue;
    const entry = findingCode(first.code);
    lines.push(
      "",
      `## ${first.code} ${first.severity}: ${entry?.title} (${findings.length})`,
      "",
      `${entry?.why}`,
      "",
      "| object | field | seen | remedy | when |",
      "| --- | --- | --- | --- | --- |",
      ...findings.map(
        ({ object, field = "", evidence, remedy, when }) =>
          `| ${[object, field, evidence, remedy, whenText(when)].map(cell).join(" | ")} |`,
      ),
    );
  }
  if (assessment.findings.length > 0) lines.push("", "`longshore explain CODE` says more of a code.");
  return `${lines.join("\n")}\n`;
}

/** Text of a cell: what objects are called makes no markup and ends no cell. */
function cell(text: string): string {
  return foreignText(text, Number.POSITIVE_INFINITY).replace(/[\\`*_{}[\]<>|#!&~]/g, (char) =>
    char === "`" ? char : `\\${char}`,
  );
}
