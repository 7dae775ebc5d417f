/**
 * Where some members are in one line of JSON, found without parsing it.
 *
 * One pass over the bytes checks the whole line against the grammar of JSON (RFC 8259) and notes the places of the
 * members that were requested; everything between is neither decoded nor turned into objects. It never guesses. A
 * line that is not sound, names a wanted member twice, writes a name both plainly and with escapes, or nests deeper
 * than volumes do is given up, and the caller has to parse it.
 *
 * Precondition of all functions: a line feed follows, and the bytes are UTF-8. No value holds a raw line feed, so none of
 * the loops runs past it, and none needs to look where the line ends.
 */

/**
 * The members to find. `true`: note where it is; members: look inside, too, if it is an object; a text: the value must
 * be this one, written in exactly this way.
 */
export interface WantedMembers {
  readonly [name: string]: true | string | WantedMembers;
}

interface Wanted {
  readonly name: Uint8Array;
  readonly slot: number;
  readonly inside: Level | undefined;
  readonly literal: Uint8Array | undefined;
}

/** The wanted members of one object, by the length of their names. */
type Level = readonly (readonly Wanted[] | undefined)[];

const DEPTH_MAX = 64;
const NOWHERE = -1;

/** Finds members line by line. The places are those of the last line, until the next is scanned. */
export class MemberScanner {
  readonly #wanted: Level;
  readonly #slots = new Map<string, number>();
  /** For each slot where the name begins, the value begins and the value ends. */
  readonly #places: Int32Array;

  constructor(wanted: WantedMembers) {
    this.#wanted = this.#compile(wanted, "");
    this.#places = new Int32Array(3 * this.#slots.size);
  }

  #compile(wanted: WantedMembers, parent: string): Level {
    const level: (Wanted[] | undefined)[] = [];
    for (const [name, what] of Object.entries(wanted)) {
      const slot = this.#slots.size;
      this.#slots.set(parent + name, slot);
      const bytes = Buffer.from(name);
      level[bytes.length] ??= [];
      level[bytes.length]?.push({
        name: bytes,
        slot,
        inside: typeof what === "object" ? this.#compile(what, `${parent}${name}.`) : undefined,
        literal: typeof what === "string" ? Buffer.from(JSON.stringify(what)) : undefined,
      });
    }
    // Without holes, so that reading it is reading an array and nothing else.
    return Array.from(level);
  }

  /** The number of a wanted member, by its path such as `spec.claimRef`. */
  slotOf(path: string): number {
    const slot = this.#slots.get(path);
    if (slot === undefined) throw new RangeError(`${path} is not among the members that were asked for`);
    return slot;
  }

  /** Scans the object that begins at `start`; returns where it ends, or -1 for one that is given up. */
  scan(bytes: Uint8Array, start: number): number {
    this.#places.fill(NOWHERE);
    return bytes[start] === OPEN_BRACE ? this.#members(bytes, start, this.#wanted) : -1;
  }

  isFound(slot: number): boolean {
    return this.#places[3 * slot] !== NOWHERE;
  }

  /** Where the member begins: the quote before its name. */
  startOf(slot: number): number {
    return this.#places[3 * slot] as number;
  }

  valueStartOf(slot: number): number {
    return this.#places[3 * slot + 1] as number;
  }

  /** Where the member ends, and its value with it. */
  endOf(slot: number): number {
    return this.#places[3 * slot + 2] as number;
  }

  #members(bytes: Uint8Array, start: number, among: Level): number {
    let at = skipSpace(bytes, start + 1);
    if (bytes[at] === CLOSE_BRACE) return at + 1;
    for (;;) {
      const name = at;
      at = skipPlainString(bytes, name);
      if (at < 0) return -1;
      const wanted = wantedNamed(among, bytes, name + 1, at - 1);
      at = skipSpace(bytes, at);
      if (bytes[at] !== COLON) return -1;
      const value = skipSpace(bytes, at + 1);
      at =
        wanted?.inside !== undefined && bytes[value] === OPEN_BRACE
          ? this.#members(bytes, value, wanted.inside)
          : skipValue(bytes, value, 0);
      if (at < 0 || (wanted !== undefined && !this.#note(wanted, bytes, name, value, at))) return -1;
      at = skipSpace(bytes, at);
      if (bytes[at] === CLOSE_BRACE) return at + 1;
      if (bytes[at] !== COMMA) return -1;
      at = skipSpace(bytes, at + 1);
    }
  }

  /** Notes a member's place; false when it had one already, or is not what it must be. */
  #note(wanted: Wanted, bytes: Uint8Array, start: number, value: number, end: number): boolean {
    const { slot, literal } = wanted;
    if (this.isFound(slot) || (literal !== undefined && !isText(literal, bytes, value, end))) return false;
    this.#places[3 * slot] = start;
    this.#places[3 * slot + 1] = value;
    this.#places[3 * slot + 2] = end;
    return true;
  }
}

function wantedNamed(among: Level, bytes: Uint8Array, start: number, end: number): Wanted | undefined {
  if (end - start >= among.length) return undefined;
  const candidates = among[end - start];
  if (candidates === undefined) return undefined;
  for (let i = 0; i < candidates.length; i++) {
    const wanted = candidates[i] as Wanted;
    if (isText(wanted.name, bytes, start, end)) return wanted;
  }
  return undefined;
}

function isText(text: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text[i]) return false;
  return true;
}

/** The byte `{`; those of the other characters with a meaning in JSON follow. */
export const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const QUOTE = 34;
const BACKSLASH = 92;
const COLON = 58;
const COMMA = 44;
const MINUS = 45;

/** What bytes may be, as bits. */
const PLAIN = 1; // Stands for itself in a string.
const ESCAPED = 2; // May follow a backslash, `u` apart.
const DIGIT = 4;
const HEX = 8;
const classOf = new Uint8Array(256);
for (let byte = 0; byte < 256; byte++) {
  const char = String.fromCharCode(byte);
  if (byte >= 32 && byte !== QUOTE && byte !== BACKSLASH) classOf[byte] = PLAIN;
  if ('"\\/bfnrt'.includes(char)) classOf[byte] = (classOf[byte] as number) | ESCAPED;
  if (/[0-9]/.test(char)) classOf[byte] = (classOf[byte] as number) | DIGIT;
  if (/[0-9a-fA-F]/.test(char)) classOf[byte] = (classOf[byte] as number) | HEX;
}

function is(byteClass: number, byte: number | undefined): boolean {
  return ((classOf[byte as number] as number) & byteClass) !== 0;
}

function skipSpace(bytes: Uint8Array, start: number): number {
  let at = start;
  // Not the line feed: it ends the line and with it every loop.
  while (bytes[at] === 32 || bytes[at] === 9 || bytes[at] === 13) at += 1;
  return at;
}

// The functions below return where the value that begins at `start` ends, or -1 when it is malformed.

/** The first byte from `start` on that does not stand for itself. Four a turn: most of the time is spent here. */
function skipPlain(bytes: Uint8Array, start: number): number {
  for (let at = start; ; at += 4) {
    if (!is(PLAIN, bytes[at])) return at;
    if (!is(PLAIN, bytes[at + 1])) return at + 1;
    if (!is(PLAIN, bytes[at + 2])) return at + 2;
    if (!is(PLAIN, bytes[at + 3])) return at + 3;
  }
}

/** A string without escapes. */
function skipPlainString(bytes: Uint8Array, start: number): number {
  if (bytes[start] !== QUOTE) return -1;
  const at = skipPlain(bytes, start + 1);
  return bytes[at] === QUOTE ? at + 1 : -1;
}

function skipString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  for (;;) {
    at = skipPlain(bytes, at);
    if (bytes[at] === QUOTE) return at + 1;
    if (bytes[at] !== BACKSLASH) return -1;
    if (is(ESCAPED, bytes[at + 1])) at += 2;
    else if (bytes[at + 1] === 117) {
      for (let i = at + 2; i < at + 6; i++) if (!is(HEX, bytes[i])) return -1;
      at += 6;
    } else return -1;
  }
}

function skipValue(bytes: Uint8Array, start: number, depth: number): number {
  switch (bytes[start]) {
    case QUOTE:
      return skipString(bytes, start);
    case OPEN_BRACE:
      return skipObject(bytes, start, depth + 1);
    case OPEN_BRACKET:
      return skipList(bytes, start, depth + 1);
    case 116:
      return isText(TRUE, bytes, start, start + 4) ? start + 4 : -1;
    case 102:
      return isText(FALSE, bytes, start, start + 5) ? start + 5 : -1;
    case 110:
      return isText(NULL, bytes, start, start + 4) ? start + 4 : -1;
    default:
      return skipNumber(bytes, start);
  }
}

const TRUE = Buffer.from("true");
const FALSE = Buffer.from("false");
const NULL = Buffer.from("null");

function skipObject(bytes: Uint8Array, start: number, depth: number): number {
  if (depth > DEPTH_MAX) return -1;
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACE) return at + 1;
  for (;;) {
    if (bytes[at] !== QUOTE) return -1;
    at = skipString(bytes, at);
    if (at < 0) return -1;
    at = skipSpace(bytes, at);
    if (bytes[at] !== COLON) return -1;
    at = skipValue(bytes, skipSpace(bytes, at + 1), depth);
    if (at < 0) return -1;
    at = skipSpace(bytes, at);
    if (bytes[at] === CLOSE_BRACE) return at + 1;
    if (bytes[at] !== COMMA) return -1;
    at = skipSpace(bytes, at + 1);
  }
}

function skipList(bytes: Uint8Array, start: number, depth: number): number {
  if (depth > DEPTH_MAX) return -1;
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACKET) return at + 1;
  for (;;) {
    at = skipValue(bytes, at, depth);
    if (at < 0) return -1;
    at = skipSpace(bytes, at);
    if (bytes[at] === CLOSE_BRACKET) return at + 1;
    if (bytes[at] !== COMMA) return -1;
    at = skipSpace(bytes, at + 1);
  }
}

function skipNumber(bytes: Uint8Array, start: number): number {
  let at = bytes[start] === MINUS ? start + 1 : start;
  const whole = at;
  at = skipDigits(bytes, at);
  if (at < 0 || (bytes[whole] === 48 && at > whole + 1)) return -1;
  if (bytes[at] === 46) at = skipDigits(bytes, at + 1);
  if (at < 0) return -1;
  if (bytes[at] !== 101 && bytes[at] !== 69) return at;
  const sign = bytes[at + 1] === MINUS || bytes[at + 1] === 43;
  return skipDigits(bytes, sign ? at + 2 : at + 1);
}

/** One digit or more. */
function skipDigits(bytes: Uint8Array, start: number): number {
  let at = start;
  while (is(DIGIT, bytes[at])) at += 1;
  return at > start ? at : -1;
}
