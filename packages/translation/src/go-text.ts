/**
 * Text rules of the reference implementation where JavaScript's differ: lower case, white space, the
 * order of strings, integers, lengths in bytes. Pure functions on strings.
 */

import type { Fault } from "./translation-error.ts";

const BEYOND_ASCII = /[\u0080-\uffff]/;

/** Lower case, one code point for one: U+0130 becomes a plain i and a final sigma is no exception. */
export function lowerCase(text: string): string {
  if (!BEYOND_ASCII.test(text)) return text.toLowerCase();
  let lower = "";
  for (const char of text) lower += char === "\u0130" ? "i" : char.toLowerCase();
  return lower;
}

const SPACE = "[\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+";
const SURROUNDING_SPACE = new RegExp(`^${SPACE}|${SPACE}$`, "g");

/** Takes away surrounding Unicode white space; unlike `trim` it keeps U+FEFF and removes U+0085. */
export function trimSpace(text: string): string {
  return text.replace(SURROUNDING_SPACE, "");
}

/** Orders strings by code point, which is the order of their UTF-8 bytes. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return codePointRank(left) - codePointRank(right);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above all others of the basic plane. */
function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

/** The UTF-8 bytes of a text; a lone surrogate counts as U+FFFD. */
export function utf8Bytes(text: string): number[] {
  const bytes: number[] = [];
  for (const char of text) {
    let point = char.codePointAt(0) as number;
    if (point >= 0xd800 && point <= 0xdfff) point = 0xfffd;
    if (point < 0x80) bytes.push(point);
    else if (point < 0x800) bytes.push(0xc0 | (point >> 6), 0x80 | (point & 63));
    else if (point < 0x10000)
      bytes.push(0xe0 | (point >> 12), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63));
    else {
      bytes.push(
        0xf0 | (point >> 18),
        0x80 | ((point >> 12) & 63),
        0x80 | ((point >> 6) & 63),
        0x80 | (point & 63),
      );
    }
  }
  return bytes;
}

/** Text from UTF-8 bytes; each byte that is part of no valid sequence becomes U+FFFD. */
export function textFromUtf8(bytes: readonly number[]): string {
  let text = "";
  for (let i = 0; i < bytes.length; ) {
    const [point, length] = decodeAt(bytes, i);
    text += String.fromCodePoint(point);
    i += length;
  }
  return text;
}

function decodeAt(bytes: readonly number[], at: number): [point: number, length: number] {
  const lead = bytes[at] as number;
  if (lead < 0x80) return [lead, 1];
  // 0xc0 and 0xc1 begin only overlong forms of ASCII, and from 0xf5 on only points beyond U+10FFFF.
  const length =
    lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
  if (length === 0) return [0xfffd, 1];
  let point = lead & (0xff >> (length + 1));
  for (let i = 1; i < length; i++) {
    const next = bytes[at + i];
    if (next === undefined || (next & 0xc0) !== 0x80) return [0xfffd, 1];
    point = (point << 6) | (next & 63);
  }
  const smallest = length === 2 ? 0x80 : length === 3 ? 0x800 : 0x10000;
  if (point < smallest || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return [0xfffd, 1];
  return [point, length];
}

const INTEGER = /^[+-]?[0-9]+$/;

/**
 * A partition number: decimal digits with an optional sign, within 64 bits, kept as its lowest 32
 * bits, as the API field is an int32.
 */
export function parsePartition(text: string): number | Fault {
  if (!INTEGER.test(text)) {
    return {
      problem: `partition ${JSON.stringify(text)} is not a whole number`,
      remedy: "write decimal digits",
    };
  }
  const value = BigInt(text.startsWith("+") ? text.slice(1) : text);
  if (BigInt.asIntN(64, value) !== value) {
    return { problem: `partition ${text} is out of range`, remedy: "write a number that fits in 32 bits" };
  }
  return Number(BigInt.asIntN(32, value));
}
