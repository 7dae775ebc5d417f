/** What has changed since an earlier report: which findings are new, and which are gone. Pure. */
import type { AssessmentFinding } from "./assessment-finding.ts";
import { reportVersion } from "./report-version.ts";

/** What an earlier report is compared by: the values that were seen may change from run to run. */
type Known = Pick<AssessmentFinding, "code" | "object" | "field">;

/** What has changed. */
export interface AssessmentDiff {
  /** When the earlier report was made, as it says. */
  readonly since: string;
  readonly added: readonly AssessmentFinding[];
  /** Findings of the earlier report, as it has them. */
  readonly gone: readonly (Known & Readonly<Record<string, unknown>>)[];
}

/** What has changed between two assessments of one run. */
export interface Changes {
  readonly added: readonly AssessmentFinding[];
  readonly gone: readonly AssessmentFinding[];
}

/** Compares two assessments as {@link diffOf} compares an assessment with a report. */
export function changesBetween(
  before: { readonly findings: readonly AssessmentFinding[] },
  after: { readonly findings: readonly AssessmentFinding[] },
): Changes {
  const known = new Set(before.findings.map(keyOf));
  const now = new Set(after.findings.map(keyOf));
  return {
    added: after.findings.filter((finding) => !known.has(keyOf(finding))),
    gone: before.findings.filter((finding) => !now.has(keyOf(finding))),
  };
}

/** An earlier report that cannot be compared: says why. */
export class EarlierReportError extends Error {
  override readonly name = "EarlierReportError";
}

/**
 * Compares findings with those of an earlier report.
 * @param earlier the text of that report in its JSON form
 * @throws EarlierReportError
 */
export function diffOf(findings: readonly AssessmentFinding[], earlier: string): AssessmentDiff {
  const report = parsedReport(earlier);
  const before = new Map(report.findings.map((finding) => [keyOf(finding), finding]));
  const now = new Set(findings.map(keyOf));
  return {
    since: report.at,
    added: findings.filter((finding) => !before.has(keyOf(finding))),
    gone: [...before].filter(([key]) => !now.has(key)).map(([, finding]) => finding),
  };
}

function keyOf({ code, object, field }: Known): string {
  return JSON.stringify([code, object, field ?? ""]);
}

function parsedReport(text: string): { readonly at: string; readonly findings: AssessmentDiff["gone"] } {
  let report: { apiVersion?: unknown; at?: unknown; findings?: unknown } | null;
  try {
    report = JSON.parse(text);
  } catch (error) {
    throw new EarlierReportError("it is no JSON; name a report that was written with `json`", {
      cause: error,
    });
  }
  if (report?.apiVersion !== reportVersion || typeof report.at !== "string") {
    throw new EarlierReportError(
      `its apiVersion is not ${reportVersion}; name a report that was written with \`json\``,
    );
  }
  const { findings } = report;
  const isFinding = (value: unknown) => {
    const { code, object } = (value ?? {}) as Partial<Known>;
    return typeof code === "string" && typeof object === "string";
  };
  if (!Array.isArray(findings) || !findings.every(isFinding)) {
    throw new EarlierReportError("its findings are not those of a report");
  }
  return { at: report.at, findings };
}
