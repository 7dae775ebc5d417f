/** The report in SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format), for what collects findings of tools. */
import type { Assessment } from "../assess.ts";
import type { Severity } from "../finding-codes.ts";
import { findingCode, findingCodes, findingLink } from "../finding-codes.ts";

const levels: Readonly<Record<Severity, "error" | "warning" | "note">> = {
  error: "error",
  unknown: "warning",
  warning: "warning",
  info: "note",
};

/** The report as a SARIF log. */
export function reportSarif({ findings }: Assessment): object {
  const used = new Set<string>(findings.map(({ code }) => code));
  const codes = findingCodes.filter(({ code }) => used.has(code));
  const index = new Map(codes.map(({ code }, at) => [code, at]));
  const rules = codes.map(({ code, title, why, remedy }) => ({
    id: code,
    shortDescription: { text: title },
    fullDescription: { text: why },
    help: { text: `${remedy} See ${findingLink(code)}.` },
  }));
  const results = findings.map(({ code, severity, object, field, evidence, remedy }) => ({
    ruleId: code,
    ruleIndex: index.get(code),
    level: levels[severity],
    message: { text: `${findingCode(code)?.title}: ${object}: ${evidence}. ${remedy}` },
    locations: [
      {
        logicalLocations: [
          { kind: "object", fullyQualifiedName: field === undefined ? object : `${object}: ${field}` },
        ],
      },
    ],
  }));
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [{ tool: { driver: { name: "longshore assess", rules } }, results }],
  };
}
