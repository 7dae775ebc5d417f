/** The JSON Schema (draft 2020-12) of the report's JSON form. Members that are added keep its version, so others are allowed. */
import { severities } from "../assess.ts";
import { reportVersion } from "../report-version.ts";

const text = { type: "string" };
const version = { type: "string", pattern: "^1\\.[0-9]+$" };
const count = { type: "integer", minimum: 0 };
const judged = {
  type: "object",
  required: ["verdict"],
  properties: { version, verdict: { enum: ["READY", "WARNINGS", "NOT READY", "CANNOT DETERMINE"] } },
};
const finding = {
  type: "object",
  required: ["code", "severity", "when", "title", "object", "evidence", "remedy", "link"],
  properties: {
    code: { type: "string", pattern: "^LS1[0-9]{3}$" },
    severity: { enum: severities },
    when: { enum: ["now", "target", "both"] },
    title: text,
    object: text,
    field: text,
    evidence: text,
    remedy: text,
    link: text,
    becomes: {
      type: "array",
      items: {
        type: "object",
        required: ["field", "to", "fate", "why"],
        properties: {
          ...{ field: text, value: text, to: text, toValue: text, why: text },
          fate: { enum: ["kept", "renamed", "moved", "added", "dropped", "rejected"] },
        },
      },
    },
  },
};

/** The schema. */
export const assessmentSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "Assessment of a cluster by longshore assess",
  type: "object",
  required: ["apiVersion", "kind", "at", "now", "looked", "counts", "findings"],
  properties: {
    apiVersion: { const: reportVersion },
    kind: { const: "Assessment" },
    at: { type: "string", pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$" },
    now: judged,
    target: judged,
    looked: { type: "object", additionalProperties: count },
    counts: {
      type: "object",
      required: severities,
      properties: Object.fromEntries(severities.map((severity) => [severity, count])),
    },
    findings: { type: "array", items: { $ref: "#/$defs/finding" } },
    suppressed: {
      type: "array",
      items: {
        type: "object",
        allOf: [{ $ref: "#/$defs/finding" }],
        required: ["reason", "until"],
        properties: { reason: text, until: { type: "string", pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" } },
      },
    },
    diff: {
      type: "object",
      required: ["since", "added", "gone"],
      properties: {
        since: text,
        added: { type: "array", items: { $ref: "#/$defs/finding" } },
        gone: { type: "array", items: { type: "object", required: ["code", "object"] } },
      },
    },
  },
  $defs: { finding },
} as const;
