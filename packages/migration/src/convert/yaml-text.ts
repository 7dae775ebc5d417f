/**
 * YAML as Kubernetes reads it: `yes` and `on` are booleans, `0644` is octal, and a time is a string. What is
 * written is quoted so that YAML 1.1 and 1.2 readers agree on it.
 */

import {
  defineScalarTag,
  dump,
  floatYaml11Tag,
  load,
  mapTag,
  mergeTag,
  NOT_RESOLVED,
  nullYaml11Tag,
  Schema,
  seqTag,
  strTag,
  YAMLException,
} from "js-yaml";

import { hasExcessiveAliases } from "./alias-limit.ts";

const TRUE = /^(?:true|True|TRUE|yes|Yes|YES|on|On|ON)$/;
const FALSE = /^(?:false|False|FALSE|no|No|NO|off|Off|OFF)$/;
const INTEGER =
  /^[-+]?(?:0b_*[01][01_]*|0[0-7_]*|0o_*[0-7][0-7_]*|0x_*[0-9a-fA-F][0-9a-fA-F_]*|[1-9][0-9_]*)$/;

const boolTag = defineScalarTag("tag:yaml.org,2002:bool", {
  implicit: true,
  resolve: (source) => (TRUE.test(source) ? true : FALSE.test(source) ? false : NOT_RESOLVED),
  identify: (data) => typeof data === "boolean",
});

const intTag = defineScalarTag("tag:yaml.org,2002:int", {
  implicit: true,
  resolve: (source) => (INTEGER.test(source) ? integerOf(source) : NOT_RESOLVED),
  identify: (data) => Number.isInteger(data),
});

/** Whole numbers beyond 2^53 lose digits; the API has none in what translation touches. */
function integerOf(source: string): number {
  const digits = source.replace(/[_+-]/g, "");
  const value = /^0[0-7]/.test(digits) ? Number.parseInt(digits, 8) : Number(digits);
  return source.startsWith("-") ? -value : value;
}

const schema = new Schema([strTag, seqTag, mapTag, nullYaml11Tag, boolTag, intTag, floatYaml11Tag, mergeTag]);

/**
 * The value of one document; `undefined` or `null` where it is empty.
 * @throws YAMLException also where aliases make far more of the document than it holds
 */
export function parseYaml(text: string): unknown {
  const value = load(text.replace(/^\ufeff/, ""), { schema });
  // Without an alias nothing is there twice.
  if (text.includes("*") && hasExcessiveAliases(value)) {
    throw new YAMLException("its aliases would make far more of it than it holds");
  }
  return value;
}

/** A value as a YAML document, without a separator. */
export function formatYaml(value: unknown): string {
  return dump(value, { lineWidth: -1, noRefs: true, seqNoIndent: true });
}
