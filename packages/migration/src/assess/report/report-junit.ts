/** The report in the XML of JUnit, which continuous integration shows: a test case a finding. */
import { foreignText } from "@longshore/runtime";
import type { Assessment } from "../assess.ts";
import { findingCode } from "../finding-codes.ts";
import { countsOf } from "./report-data.ts";

/** The report as XML. Errors and what could not be looked at are failures; warnings and notes are passed, with their text. */
export function reportJunit(assessment: Assessment): string {
  const { findings } = assessment;
  const counts = countsOf(assessment);
  const failures = counts.error + counts.unknown;
  const cases = findings.map((finding) => {
    const { code, severity, object, evidence, remedy } = finding;
    const head = `    <testcase classname="${code}" name="${escaped(object)}">`;
    const text = escaped(`${findingCode(code)?.title}: ${evidence}; ${remedy}`);
    const isFailure = severity === "error" || severity === "unknown";
    const body = isFailure
      ? `<failure type="${code}" message="${text}"/>`
      : `<system-out>${severity}: ${text}</system-out>`;
    return `${head}${body}</testcase>`;
  });
  return `${[
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites tests="${findings.length}" failures="${failures}">`,
    `  <testsuite name="longshore assess" tests="${findings.length}" failures="${failures}">`,
    ...cases,
    "  </testsuite>",
    "</testsuites>",
  ].join("\n")}\n`;
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

/** Control characters have been escaped by the sanitizing; two more characters XML cannot hold (XML 1.0, production 2). */
function escaped(text: string): string {
  const clean = foreignText(text, Number.POSITIVE_INFINITY).replace(/[\ufffe\uffff]/g, "\ufffd");
  return clean.replace(/[&<>"]/g, (char) => entities[char] ?? char);
}
