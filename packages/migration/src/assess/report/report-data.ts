/** The report of an assessment as data: what its JSON and YAML forms have. */
import type { Assessment } from "../assess.ts";
import { findingCode, findingLink } from "../finding-codes.ts";

/** The version of the report's form: a field that is added keeps it, one that changes or goes raises it. */
export const reportVersion = "longshore.dev/assessment/v1";

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
    findings: assessment.findings.map(({ code, severity, when, ...rest }) => ({
      code,
      severity,
      when,
      title: findingCode(code)?.title ?? "",
      ...rest,
      link: findingLink(code),
    })),
  };
}

/** How many findings there are of each severity. */
export function countsOf({ findings }: Assessment): Record<"error" | "unknown" | "warning" | "info", number> {
  const counts = { error: 0, unknown: 0, warning: 0, info: 0 };
  for (const { severity } of findings) counts[severity] += 1;
  return counts;
}
