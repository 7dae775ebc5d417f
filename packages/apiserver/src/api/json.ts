/**
 * JSON with the integers that a number of JavaScript cannot hold: those of which it would write other digits
 * (beyond 2^53) are read as `bigint` and written digit by digit. They occur where the API has no type for a value: in custom resources and raw extensions. All other
 * JSON takes the engine's own reader and writer.
 */
import { spendTime } from "./work-time.ts";

/** Only a text with so many digits in a row can have an integer beyond 2^53. */
const manyDigits = /\d{16}/;

/** An integer of sixteen digits or more, outside of strings; no part of a fraction or an exponent. */
const longInteger = /(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

/**
 * As `JSON.parse`; integers of 64 bits that are none of JavaScript are a `bigint`, larger ones are rounded, as the
 * reference does (apimachinery util/json). @throws SyntaxError
 */
export function parseJson(text: string): unknown {
  if (!manyDigits.test(text)) return JSON.parse(text);
  // A mark that no string of the text has.
  let mark = "int:";
  while (text.includes(mark)) mark += ":";
  const marked = outsideStrings(text, (part) =>
    part.replaceAll(longInteger, (digits) => (isLong(digits) ? `"${mark}${digits}"` : digits)),
  );
  if (marked === text) return JSON.parse(text);
  return JSON.parse(marked, (_, value) =>
    typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  );
}

function isLong(digits: string): boolean {
  if (digits.length > 20 || /^-?0/.test(digits)) return false;
  const value = BigInt(digits);
  return value >= int64Min && value <= int64Max && String(Number(digits)) !== digits;
}

/** The text with its parts that are no strings changed. */
function outsideStrings(text: string, change: (part: string) => string): string {
  let result = "";
  for (let at = 0; ; ) {
    spendTime();
    const quote = text.indexOf('"', at);
    if (quote < 0) return result + change(text.slice(at));
    let end = quote + 1;
    while (end < text.length && text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
    result += change(text.slice(at, quote)) + text.slice(quote, end + 1);
    at = end + 1;
  }
}

/** True for a number of JSON, however it is held. */
export const isNumber = (value: unknown): value is number | bigint =>
  typeof value === "number" || typeof value === "bigint";

/** As `JSON.stringify`, of a value that is JSON but for its `bigint`s. */
export function toJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return write(value, Object.keys) ?? "null";
  }
}

/** As Go's encoder writes a map: members in the order of their names, `<`, `>` and `&` escaped. */
export function toGoJson(value: unknown): string {
  // None of these is anything but a part of a string.
  return toSortedJson(value).replaceAll(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The same text for the same value: members in the order of their names. */
export function toSortedJson(value: unknown): string {
  return write(value, (object) => Object.keys(object).sort()) ?? "null";
}

function write(value: unknown, keysOf: (object: object) => string[]): string | undefined {
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  spendTime();
  if (Array.isArray(value)) return `[${value.map((item) => write(item, keysOf) ?? "null").join(",")}]`;
  const members: string[] = [];
  for (const key of keysOf(value)) {
    const member = write((value as Readonly<Record<string, unknown>>)[key], keysOf);
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${member}`);
  }
  return `{${members.join(",")}}`;
}
