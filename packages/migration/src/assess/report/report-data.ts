/** The report of an assessment as data: what its JSON and YAML forms have. */
import type { Assessment } from "../assess.ts";
import type { AssessmentFinding, When } from "../assessment-finding.ts";
import { findingCode, findingLink } from "../finding-codes.ts";
import { reportVersion } from "../report-version.ts";

/** The report, with every finding and what its code says. */
export function reportData(assessment: Assessment): object {
  const version = (minor: number | undefined) => (minor === undefined ? {} : { version: `1.${minor}` });
  return {
    apiVersion: reportVersion,
    kind: "Assessment",
    at: assessment.at.toISOString(),
    now: { ...version(assessment.clusterMinor), verdict: assessment.verdict },
    ...(assessment.targetVerdict === undefined
      ? {}
      : { target: { ...version(assessment.targetMinor), verdict: assessment.targetVerdict } }),
    looked: assessment.looked,
    counts: countsOf(assessment),
    findings: assessment.findings.map(findingData),
    ...(assessment.suppressed.length === 0
      ? {}
      : {
          suppressed: assessment.suppressed.map(({ finding, reason, until }) => ({
            ...findingData(finding),
            reason,
            until,
          })),
        }),
    ...(assessment.diff === undefined
      ? {}
      : {
          diff: {
            since: assessment.diff.since,
            added: assessment.diff.added.map(findingData),
            gone: assessment.diff.gone,
          },
        }),
  };
}

function findingData({ code, severity, when, ...rest }: AssessmentFinding): object {
  const title = findingCode(code)?.title ?? "";
  return { code, severity, when, title, ...rest, link: findingLink(code) };
}

/** The findings of each code and severity, in the order of the report. */
export function byCode(findings: readonly AssessmentFinding[]): AssessmentFinding[][] {
  const groups = new Map<string, AssessmentFinding[]>();
  for (const finding of findings) {
    const key = `${finding.severity} ${finding.code}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [finding]);
    else group.push(finding);
  }
  return [...groups.values()];
}

/** To which version a finding belongs, in words. */
export function whenText(when: When): string {
  return when === "both" ? "now and target" : when;
}

/** How many findings there are of each severity. */
export function countsOf({ findings }: Assessment): Record<"error" | "unknown" | "warning" | "info", number> {
  const counts = { error: 0, unknown: 0, warning: 0, info: 0 };
  for (const { severity } of findings) counts[severity] += 1;
  return counts;
}
