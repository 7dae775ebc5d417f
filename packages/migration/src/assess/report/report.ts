/** The forms of a report, by name. */
import { dump } from "js-yaml";
import type { Assessment } from "../assess.ts";
import { reportCsv } from "./report-csv.ts";
import { reportData } from "./report-data.ts";
import { reportHtml } from "./report-html.ts";
import { reportJunit } from "./report-junit.ts";
import { reportMarkdown } from "./report-markdown.ts";
import { reportPrometheus } from "./report-prometheus.ts";
import { reportSarif } from "./report-sarif.ts";
import { reportTable } from "./report-table.ts";

const forms = {
  table: (assessment: Assessment) => reportTable(assessment),
  wide: (assessment: Assessment) => reportTable(assessment, { all: true }),
  json: (assessment: Assessment) => json(reportData(assessment)),
  yaml: (assessment: Assessment) => dump(reportData(assessment), { lineWidth: -1, noRefs: true }),
  sarif: (assessment: Assessment) => json(reportSarif(assessment)),
  junit: reportJunit,
  markdown: reportMarkdown,
  csv: reportCsv,
  prometheus: reportPrometheus,
  html: reportHtml,
} as const;

/** A form of the report. */
export type ReportForm = keyof typeof forms;

/** All forms. */
export const reportForms = Object.keys(forms) as readonly ReportForm[];

/** The report in this form, ending with a line break. */
export function renderReport(form: ReportForm, assessment: Assessment): string {
  return forms[form](assessment);
}

function json(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
