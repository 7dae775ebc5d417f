/**
 * JSON with the numbers that JavaScript cannot hold. Integers of which it would write other digits (beyond 2^53) are read
 * as `bigint` and written digit by digit: they occur where the API has no type for a value, in custom resources and raw
 * extensions. All other JSON takes the engine's own reader and writer.
 */
import { spendTime } from "./work-time.ts";

/** A whole number that is written as none, `2.0` or `1e1`: no integer of the API may be written so. */
export class WholeFraction {
  readonly value: number;
  readonly text: string;
  constructor(text: string) {
    this.value = Number(text);
    this.text = text;
  }
}

const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

/**
 * As `JSON.parse`; integers of 64 bits that its numbers do not hold are a `bigint`, larger ones are rounded, as the
 * reference does (apimachinery util/json). @throws SyntaxError
 */
export function parseJson(text: string): unknown {
  // Only a text with so many digits in a row can have such an integer.
  return /\d{16}/.test(text) ? parseNumbers(text, longInteger) : JSON.parse(text);
}

/** As {@link parseJson}, with every {@link WholeFraction}: for what is read as a type of the API. @throws SyntaxError */
export function parseTypedJson(text: string): unknown {
  if (!/\d[.eE]/.test(text)) return parseJson(text);
  return parseNumbers(text, (number) => longInteger(number) ?? wholeFraction(number));
}

function longInteger(number: string): bigint | undefined {
  if (number.length < 16 || number.length > 20 || !/^-?[1-9]\d*$/.test(number)) return undefined;
  const value = BigInt(number);
  return value >= int64Min && value <= int64Max && String(Number(number)) !== number ? value : undefined;
}

function wholeFraction(number: string): WholeFraction | undefined {
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(number) || !/[.eE]/.test(number))
    return undefined;
  return Number.isInteger(Number(number)) ? new WholeFraction(number) : undefined;
}

/** Parses the text with what `read` makes of its numbers, as far as it makes something of them. */
function parseNumbers(text: string, read: (number: string) => unknown): unknown {
  // Few texts have such a number.
  let sign: string | undefined;
  const values: unknown[] = [];
  const marked = outsideStrings(text, (part) =>
    part.replaceAll(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (number) => {
      const value = read(number);
      if (value === undefined) return number;
      sign ??= unusedSign(text);
      return `"${sign}${values.push(value) - 1}"`;
    }),
  );
  if (sign === undefined) return JSON.parse(text);
  const mark = sign;
  return JSON.parse(marked, (_, value) =>
    typeof value === "string" && value.startsWith(mark) ? values[Number(value.slice(mark.length))] : value,
  );
}

/** A sign with which no string of the text begins, however it is written there. Costs time in proportion to the text. */
function unusedSign(text: string): string {
  const used = new Set<string>();
  JSON.parse(text, (_, value) => {
    const sign = typeof value === "string" ? /^number \d+:/.exec(value)?.[0] : undefined;
    if (sign !== undefined) used.add(sign);
    return value;
  });
  let count = 0;
  while (used.has(`number ${count}:`)) count++;
  return `number ${count}:`;
}

/** The value with numbers in place of every {@link WholeFraction}: where the API has no type. */
export function withoutFractions(value: unknown): unknown {
  if (value instanceof WholeFraction) return value.value;
  if (typeof value !== "object" || value === null) return value;
  spendTime();
  if (Array.isArray(value)) return value.map(withoutFractions);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withoutFractions(member)]));
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
  return escapedAsByGo(toSortedJson(value));
}

/** As Go's encoder writes a struct: members in the order in which they are here, `<`, `>` and `&` escaped. */
export function toGoStructJson(value: unknown): string {
  return escapedAsByGo(toJson(value));
}

function escapedAsByGo(json: string): string {
  // None of these is anything but a part of a string.
  return json.replaceAll(
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
