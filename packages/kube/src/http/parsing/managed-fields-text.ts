/**
 * Parses JSON without `managedFields`, which can be a third of the text: they are cut out before parsing.
 *
 *     {"metadata":{"name":"a","managedFields":[{…}]},"spec":…   ──►   {"metadata":{"name":"a","managedFields":0},"spec":…
 *
 * Invariant: the result equals parsing everything and then deleting `metadata.managedFields`. The cut is a guess: from
 * the first place where the member stands to the first `]`, since its entries hold no arrays. After parsing, the mark
 * left in its place shows whether the guess was right; if it was wrong, the whole text is parsed. A string in an entry
 * may contain a `]` as well, but the text after such a cut is not valid JSON: names in fieldsV1 begin with a letter or
 * a dot, and the other members of an entry have fixed names.
 */

/** An opening quote in the bytes of JSON is never part of a string, so that this is a member's name. */
const memberStart = Buffer.from('"managedFields":[');

const CLOSING_BRACKET = 0x5d;

/** Replaces the text that was cut; no array of managed fields equals it. */
const MARK = "0";

interface Unread {
  readonly metadata?: { readonly managedFields?: unknown };
}

/**
 * Parses the JSON of `bytes` from `start` to `end`; the object that `objectOf` finds in it has no array of managed
 * fields if that could be left out, and has it otherwise.
 * @throws SyntaxError when it is not JSON
 */
export function parseWithoutManagedFields<R>(
  bytes: Buffer,
  start: number,
  end: number,
  objectOf: (parsed: R) => Unread | undefined,
): R {
  const from = bytes.indexOf(memberStart, start);
  if (from < 0 || from >= end) return JSON.parse(bytes.toString("utf8", start, end)) as R;
  const array = from + memberStart.length - 1;
  const last = bytes.indexOf(CLOSING_BRACKET, array);
  if (last > 0 && last < end) {
    try {
      const text = bytes.toString("utf8", start, array) + MARK + bytes.toString("utf8", last + 1, end);
      const parsed = JSON.parse(text) as R;
      if (objectOf(parsed)?.metadata?.managedFields === 0) return parsed;
    } catch {
      // The guess was wrong.
    }
  }
  return JSON.parse(bytes.toString("utf8", start, end)) as R;
}

/**
 * The same for the items of a page of a list.
 * @throws SyntaxError when it is not JSON
 */
export function parsePageWithoutManagedFields<R extends { readonly items?: readonly Unread[] | null }>(
  bytes: Buffer,
): R {
  // Large enough: a cut removes two bytes or more and writes one.
  const text = Buffer.allocUnsafe(bytes.length);
  let length = 0;
  let taken = 0;
  let cuts = 0;
  for (let from = bytes.indexOf(memberStart); from >= 0; from = bytes.indexOf(memberStart, taken)) {
    const array = from + memberStart.length - 1;
    const last = bytes.indexOf(CLOSING_BRACKET, array);
    if (last < 0) break;
    length += bytes.copy(text, length, taken, array);
    length += text.write(MARK, length);
    taken = last + 1;
    cuts++;
  }
  if (cuts > 0) {
    length += bytes.copy(text, length, taken);
    try {
      const page = JSON.parse(text.toString("utf8", 0, length)) as R;
      let marks = 0;
      for (const item of page.items ?? []) if (item.metadata?.managedFields === 0) marks++;
      // With fewer marks, a cut hit a member of that name elsewhere in an item, and changed it.
      if (marks === cuts) return page;
    } catch {
      // A guess was wrong.
    }
  }
  return JSON.parse(bytes.toString("utf8")) as R;
}
