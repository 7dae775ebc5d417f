/** The report as CSV (RFC 4180), a line a finding, for spreadsheets. */
import { foreignText } from "@longshore/runtime";
import type { Assessment } from "../assess.ts";
import { findingCode } from "../finding-codes.ts";

const columns = ["code", "severity", "when", "title", "object", "field", "evidence", "remedy"] as const;

/** The findings as CSV with a head. */
export function reportCsv({ findings }: Assessment): string {
  const rows = findings.map((finding) => {
    const values = { ...finding, title: findingCode(finding.code)?.title, field: finding.field ?? "" };
    return columns.map((column) => value(values[column] ?? ""));
  });
  return [columns, ...rows].map((row) => `${row.join(",")}\r\n`).join("");
}

/** One value. A spreadsheet takes what begins with one of these for a formula: an apostrophe before it makes it text. */
function value(text: string): string {
  const clean = foreignText(text, Number.POSITIVE_INFINITY);
  const inert = /^[=+\-@]/.test(clean) ? `'${clean}` : clean;
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}
