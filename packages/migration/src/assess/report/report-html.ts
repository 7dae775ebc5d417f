/**
 * The report as one page that works from disk: nothing is fetched, and the policy of the page forbids it. It can be searched, is light or
 * dark as the reader's system is, and prints whole.
 */
import { createHash } from "node:crypto";
import { foreignText } from "@longshore/runtime";
import type { Assessment, Verdict } from "../assess.ts";
import type { AssessmentFinding, Becomes } from "../assessment-finding.ts";
import { findingCode, type Severity } from "../finding-codes.ts";
import { pageScript, pageStyle } from "./page-parts.ts";
import { byCode, countsOf, whenText } from "./report-data.ts";

const weightOfVerdict: Readonly<Record<Verdict, Severity>> = {
  READY: "info",
  WARNINGS: "warning",
  "NOT READY": "error",
  "CANNOT DETERMINE": "unknown",
};
const severityNames: Readonly<Record<Severity, string>> = {
  error: "errors",
  unknown: "unknown",
  warning: "warnings",
  info: "notes",
};

/** The report as an HTML document. */
export function reportHtml(assessment: Assessment): string {
  const { at, findings, looked } = assessment;
  const counts = countsOf(assessment);
  const policy = `default-src 'none'; style-src '${hashOf(pageStyle)}'; script-src '${hashOf(pageScript)}'`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Assessment of volumes: ${escaped(assessment.targetVerdict ?? assessment.verdict)}</title>
<style>${pageStyle}</style>
</head>
<body>
<header>
<h1>Assessment of the cluster's volumes</h1>
<dl class="verdicts">
${verdict("now", assessment.clusterMinor, assessment.verdict)}
${assessment.targetVerdict === undefined ? "" : verdict("target", assessment.targetMinor, assessment.targetVerdict)}
</dl>
<p class="made">Made <time datetime="${at.toISOString()}">${at.toISOString().slice(0, 16).replace("T", " ")} UTC</time> by longshore assess.
Looked at ${escaped(
    Object.entries(looked)
      .map(([kind, count]) => `${count} ${kind}`)
      .join(", "),
  )}.${suppressedText(assessment)}</p>
<form class="filter" role="search">
<label>Find <input type="search" id="find" placeholder="object, field, code or words" autocomplete="off"></label>
${Object.entries(severityNames)
  .map(
    ([severity, name]) =>
      `<label class="${severity}"><input type="checkbox" name="severity" value="${severity}" checked> ${counts[severity as Severity]} ${name}</label>`,
  )
  .join("\n")}
<output id="shown" aria-live="polite"></output>
</form>
</header>
<main>
${byCode(findings).map(group).join("\n")}
${findings.length === 0 ? "<p>Nothing was found.</p>" : ""}
</main>
<script>${pageScript}</script>
</body>
</html>
`;
}

function suppressedText({ suppressed, diff }: Assessment): string {
  const parts = [
    ...(suppressed.length === 0 ? [] : [` ${suppressed.length} findings are suppressed.`]),
    ...(diff === undefined
      ? []
      : [` Since ${escaped(diff.since)}: ${diff.added.length} new, ${diff.gone.length} gone.`]),
  ];
  return parts.join("");
}

function verdict(what: string, minor: number | undefined, of: Verdict): string {
  const version = minor === undefined ? "unknown version" : `1.${minor}`;
  return `<div><dt>${what}, Kubernetes ${version}</dt><dd class="${weightOfVerdict[of]}">${of}</dd></div>`;
}

function group(findings: readonly AssessmentFinding[]): string {
  const [first] = findings;
  if (first === undefined) return "";
  const { code, severity } = first;
  const entry = findingCode(code);
  return `<details class="group" data-severity="${severity}" open>
<summary><span class="badge ${severity}">${severity}</span> <b>${code}</b> ${escaped(entry?.title ?? "")} <span class="count">${findings.length}</span></summary>
<p>${escaped(entry?.why ?? "")}</p>
<div class="scroll"><table>
<thead><tr><th>object</th><th>seen</th><th>remedy</th><th>when</th></tr></thead>
<tbody>
${findings.map(row).join("\n")}
</tbody>
</table></div>
</details>`;
}

function row({ object, field, evidence, remedy, when, becomes = [] }: AssessmentFinding): string {
  const at = field === undefined ? "" : `<br><code>${escaped(field)}</code>`;
  return `<tr><td>${escaped(object)}${at}</td><td>${escaped(evidence)}${sides(becomes)}</td><td>${escaped(remedy)}</td><td>${whenText(when)}</td></tr>`;
}

/** An object beside what it becomes. Lines of a description list: a table in the table would be read as rows of findings. */
function sides(becomes: readonly Becomes[]): string {
  if (becomes.length === 0) return "";
  const text = (field: string, value: string | undefined) =>
    field === "" ? "—" : escaped(value === undefined ? field : `${field} = ${value}`);
  const rows = becomes.map(
    ({ field, value, to, toValue, fate, why }) =>
      `<div><dt><code>${text(field, value)}</code></dt><dd><code>${text(to, toValue)}</code> ${escaped(`${fate}: ${why}`)}</dd></div>`,
  );
  return `<dl class="sides">${rows.join("")}</dl>`;
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** What objects and drivers say is text, never markup; control characters are shown as escapes. */
function escaped(text: string): string {
  return foreignText(text, Number.POSITIVE_INFINITY).replace(/[&<>"']/g, (char) => entities[char] ?? char);
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
