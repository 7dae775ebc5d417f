/** The report as figures in the text form of Prometheus, for a job that writes them where a node exporter reads them. */
import type { Assessment, Verdict } from "../assess.ts";
import { findingCodes } from "../finding-codes.ts";

const verdicts: readonly Verdict[] = ["READY", "WARNINGS", "NOT READY", "CANNOT DETERMINE"];

/** The report as figures: findings by code, the verdicts, what was looked at, and when, in seconds since 1970. */
export function reportPrometheus(assessment: Assessment): string {
  const { at, verdict, targetVerdict, findings, looked } = assessment;
  const now = verdicts.map((name) => sample({ at: "now", verdict: name }, name === verdict ? 1 : 0));
  const target = verdicts.map((name) =>
    sample({ at: "target", verdict: name }, name === targetVerdict ? 1 : 0),
  );
  const counts = new Map<string, number>();
  for (const { code, severity, when } of findings) {
    const labels = labelsOf({ code, severity, when });
    counts.set(labels, (counts.get(labels) ?? 0) + 1);
  }
  // A code that is found no more must not keep its last figure: without findings it is 0.
  const seen = new Set<string>(findings.map(({ code }) => code));
  for (const { code, severity } of findingCodes) {
    if (!seen.has(code)) counts.set(labelsOf({ code, severity, when: "now" }), 0);
  }
  return [
    family("longshore_assessment_verdict", "1 for the verdict that holds, 0 for the others.", [
      ...now,
      ...(targetVerdict === undefined ? [] : target),
    ]),
    family(
      "longshore_assessment_findings",
      "Number of findings.",
      [...counts].map(([labels, count]) => `${labels} ${count}`),
    ),
    family(
      "longshore_assessment_objects",
      "Number of objects that were looked at.",
      Object.entries(looked).map(([kind, count]) => sample({ kind }, count)),
    ),
    family("longshore_assessment_timestamp_seconds", "When the assessment was made.", [
      ` ${at.getTime() / 1000}`,
    ]),
  ].join("");
}

function family(name: string, help: string, samples: readonly string[]): string {
  return [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} gauge`,
    ...samples.map((text) => `${name}${text}`),
    "",
  ].join("\n");
}

function sample(labels: Readonly<Record<string, string>>, value: number): string {
  return `${labelsOf(labels)} ${value}`;
}

/** All values are names of ours: none needs an escape. */
function labelsOf(labels: Readonly<Record<string, string>>): string {
  return `{${Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(",")}}`;
}
