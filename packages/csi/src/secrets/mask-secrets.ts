/**
 * Takes secret values out of texts, also where they are encoded: percent-encoded, with the escapes of JSON and Go, in hex,
 * and in base64 at any offset (as in `user:password`).
 *
 * Invariants
 *  - Values that overlap are removed together: nothing of either is left.
 *  - What a value looks like means nothing: it is searched for as it is, never as a pattern.
 */

/** What stands in a text in place of a secret, as in the logs of the reference sidecars. */
export const strippedSecret = "***stripped***";

/** Minimum length of a secret that is searched for. Shorter values (a user `a`, a port) occur by chance: to mask them makes texts unreadable. */
export const searchedSecretLengthMin = 4;
/** Lines of a value of many lines (a private key) that are this long are looked for on their own. */
const searchedLineLengthMin = 8;
/** Base64 of fewer characters occurs by chance. */
const searchedBase64LengthMin = 8;
/** Longer texts are not searched: nothing of them is shown. */
const searchedMax = 65_536;

/** What is searched for, as texts whose characters are bytes of UTF-8. */
export interface SecretForms {
  readonly plain: readonly string[];
  /** Without the characters that depend on the bytes next to the value. */
  readonly base64: readonly string[];
  readonly hex: readonly string[];
}

/** The forms of one value; none of a value that is shorter than `shortest` characters. */
export function formsOfSecret(value: string, shortest = searchedSecretLengthMin): SecretForms {
  // Values come from files that end with a line end, which a driver may strip.
  const plain = new Set([value, value.trim()].filter((each) => each.length >= shortest));
  if (/[\r\n]/.test(value)) {
    for (const line of value.split(/[\r\n]+/)) {
      if (line.trim().length >= searchedLineLengthMin) plain.add(line.trim());
    }
  }
  const bytes = [...plain].map((each) => Buffer.from(each, "utf8"));
  return {
    plain: bytes.map((each) => each.toString("latin1")),
    base64: bytes.flatMap(base64Of).filter((each) => each.length >= searchedBase64LengthMin),
    hex: bytes.filter((each) => each.length >= searchedSecretLengthMin).map((each) => each.toString("hex")),
  };
}

/** The characters of base64 that the value alone decides, behind 0, 1 and 2 other bytes. */
function base64Of(bytes: Buffer): string[] {
  return [0, 1, 2].map((before) => {
    const all = Buffer.concat([Buffer.alloc(before), bytes]);
    const first = Math.ceil((before * 8) / 6);
    const end = Math.floor((all.length * 8) / 6);
    return all.toString("base64").slice(first, end);
  });
}

/** The text without the secrets, {@link strippedSecret} in their place. */
export function maskSecrets(text: string, secrets: readonly SecretForms[]): string {
  if (text === "" || secrets.length === 0) return text;
  if (text.length > searchedMax) return `(a text of ${text.length} characters: too long to be shown)`;
  const bytes = Buffer.from(text, "utf8").toString("latin1");
  const clean = maskBytes(bytes, secrets);
  return clean === bytes ? text : Buffer.from(clean, "latin1").toString("utf8");
}

function maskBytes(bytes: string, secrets: readonly SecretForms[]): string {
  const found = secretsIn(bytes, secrets);
  if (found.length === 0) return bytes;
  const kept: string[] = [];
  let at = 0;
  for (const { start, end } of merged(found)) {
    kept.push(bytes.slice(at, start));
    at = end;
  }
  kept.push(bytes.slice(at));
  // Where one value is gone, what follows it may read otherwise: a `%` before it no longer begins an escape.
  return kept.map((part) => maskBytes(part, secrets)).join(strippedSecret);
}

/** Whether the text holds one of the secrets in any form. */
export function holdsSecret(text: string, secrets: readonly SecretForms[]): boolean {
  if (text === "" || secrets.length === 0) return false;
  return secretsIn(Buffer.from(text, "utf8").toString("latin1"), secrets).length > 0;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** A text as it reads when it is decoded, with where each character (and the end) was. */
interface View {
  readonly text: string;
  readonly origins?: readonly number[];
}

function secretsIn(bytes: string, secrets: readonly SecretForms[]): Span[] {
  const found: Span[] = [];
  for (const { text, origins } of decodedViews(bytes)) {
    for (const { plain } of secrets) {
      for (const value of plain) {
        for (const span of occurrences(text, value)) {
          found.push(origins === undefined ? span : spanOf(span, origins));
        }
      }
    }
  }
  const lower = bytes.toLowerCase();
  const standard = bytes.replaceAll("-", "+").replaceAll("_", "/");
  for (const { hex, base64 } of secrets) {
    for (const value of hex) found.push(...occurrences(lower, value));
    for (const value of base64) {
      for (const span of occurrences(standard, value)) found.push(wholeBase64(standard, span));
    }
  }
  return found;
}

function spanOf({ start, end }: Span, origins: readonly number[]): Span {
  return { start: origins[start] ?? 0, end: origins[end] ?? 0 };
}

/** Extends the span: the adjacent characters contain some bits of the value. */
function wholeBase64(text: string, { start, end }: Span): Span {
  const isPart = (at: number) => /[A-Za-z0-9+/=]/.test(text.charAt(at));
  let [from, to] = [start, end];
  while (from > 0 && from > start - 2 && isPart(from - 1)) from--;
  while (to < text.length && to < end + 4 && isPart(to)) to++;
  return { start: from, end: to };
}

function* occurrences(text: string, value: string): Generator<Span> {
  // From the next character on: occurrences may overlap, and nothing of either may be left.
  for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + 1)) {
    yield { start: at, end: at + value.length };
  }
}

function merged(spans: readonly Span[]): readonly Span[] {
  const all: { start: number; end: number }[] = [];
  for (const { start, end } of [...spans].sort((a, b) => a.start - b.start)) {
    const last = all.at(-1);
    if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end);
    else all.push({ start, end });
  }
  return all;
}

const percent = /%[0-9a-fA-F]{2}/y;
const percentOrPlus = /%[0-9a-fA-F]{2}|\+/y;
const backslash =
  /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[^uUx])/y;

/** The text, and what it reads like with each way of escaping undone; of quotes, also twice. */
function decodedViews(bytes: string): readonly View[] {
  const views: View[] = [{ text: bytes }];
  if (bytes.includes("%")) views.push(decoded({ text: bytes }, percent, unpercent));
  if (bytes.includes("+")) views.push(decoded({ text: bytes }, percentOrPlus, unpercent));
  if (bytes.includes("\\")) {
    const once = decoded({ text: bytes }, backslash, unbackslash);
    views.push(once);
    if (once.text.includes("\\")) views.push(decoded(once, backslash, unbackslash));
  }
  return views;
}

function unpercent(sequence: string): string {
  return sequence === "+" ? " " : String.fromCharCode(Number.parseInt(sequence.slice(1), 16));
}

const controls: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f", 0: "\0" };

function unbackslash(sequence: string): string {
  const kind = sequence.charAt(1);
  if (kind === "u" || kind === "U") {
    const codes = sequence.slice(2).split("\\u");
    const units = codes.map((code) => Math.min(Number.parseInt(code, 16), 0x10ffff));
    const chars = kind === "U" ? String.fromCodePoint(...units) : String.fromCharCode(...units);
    return Buffer.from(chars, "utf8").toString("latin1");
  }
  if (kind === "x") return String.fromCharCode(Number.parseInt(sequence.slice(2), 16));
  return controls[kind] ?? kind;
}

function decoded(view: View, escapes: RegExp, decode: (sequence: string) => string): View {
  const { text, origins: before } = view;
  const origins: number[] = [];
  let read = "";
  for (let at = 0; at < text.length; ) {
    escapes.lastIndex = at;
    const sequence = escapes.exec(text)?.[0];
    const plain = sequence === undefined ? text.charAt(at) : decode(sequence);
    for (let i = 0; i < plain.length; i++) origins.push(before?.[at] ?? at);
    read += plain;
    at += sequence?.length ?? 1;
  }
  origins.push(before?.[text.length] ?? text.length);
  return { text: read, origins };
}
