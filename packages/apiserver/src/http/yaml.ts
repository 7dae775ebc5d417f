/**
 * Reads and writes YAML with the types of JSON. The library is loaded with the first text in it: most clients speak JSON,
 * and the server is there the sooner.
 */
import { createRequire } from "node:module";
import { parseJson } from "../api/json.ts";

const require = createRequire(import.meta.url);

/** Loads js-yaml at the first call. */
export const yaml = (): typeof import("js-yaml") => require("js-yaml");

type Schema = import("js-yaml").Schema;

let reading: Schema | undefined;
let writing: Schema | undefined;

/** The scalars of JSON; integers that a number cannot hold are a `bigint`, as those of a JSON body. */
export function readingSchema(): Schema {
  if (reading !== undefined) return reading;
  const { intJsonTag, JSON_SCHEMA, NOT_RESOLVED } = yaml();
  const resolve: typeof intJsonTag.resolve = (source, isExplicit, tag) => {
    const value = intJsonTag.resolve(source, isExplicit, tag);
    if (value === NOT_RESOLVED || Number.isSafeInteger(value) || isExplicit) return value;
    return parseJson(source) as number;
  };
  reading = JSON_SCHEMA.withTags({ ...intJsonTag, resolve });
  return reading;
}

/** As the library writes by itself, and every `bigint` with its digits. */
function writingSchema(): Schema {
  if (writing !== undefined) return writing;
  const { DUMP_SCHEMA, intCoreTag, intYaml11Tag, NOT_RESOLVED } = yaml();
  // What looks like a number in one of the dialects is quoted when it is a text.
  const resolve: typeof intCoreTag.resolve = (...text) => {
    const value = intYaml11Tag.resolve(...text);
    return value === NOT_RESOLVED ? intCoreTag.resolve(...text) : value;
  };
  const identify = (value: unknown) => typeof value === "bigint" || intYaml11Tag.identify(value);
  writing = DUMP_SCHEMA.withTags({ ...intYaml11Tag, resolve, identify, represent: String });
  return writing;
}

/** JSON text as YAML, members in order of their names, as the real server writes it. */
export function toYaml(json: string): string {
  return yaml().dump(parseJson(json), {
    schema: writingSchema(),
    sortKeys: true,
    noRefs: true,
    lineWidth: -1,
    quoteStyle: "double",
  });
}
