/**
 * The text of a translated PersistentVolume made from the text it was read from: only the members that
 * changed are written anew, everything else stays as it was, to the byte.
 */

import { isObject, type KubeObject } from "./kube-object.ts";

/** A part of the text and what takes its place. */
interface Edit {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/**
 * The changed text in pieces, or `undefined` where the change is not one that can be spliced in with certainty.
 * Pieces rather than one string: joining them here would only make a copy more.
 */
export function splicedVolume(
  text: string,
  before: KubeObject,
  after: KubeObject,
): readonly string[] | undefined {
  const from = before.spec;
  const to = after.spec;
  if (before.metadata !== after.metadata || !isObject(from) || !isObject(to)) return undefined;
  let gone: string | undefined;
  for (const name in from) {
    if (name in to) continue;
    if (gone !== undefined) return undefined;
    gone = name;
  }
  if (gone === undefined) return undefined;
  let added = "";
  const edits: Edit[] = [];
  for (const name in to) {
    if (to[name] === from[name]) continue;
    const written = `"${name}":${JSON.stringify(to[name])}`;
    if (!(name in from)) {
      added = added === "" ? written : `${added},${written}`;
      continue;
    }
    const edit = editOfMember(text, name, written);
    if (edit === undefined) return undefined;
    edits.push(edit);
  }
  const edit = editOfMember(text, gone, added);
  if (edit === undefined) return undefined;
  edits.push(edit);
  return piecesOf(text, edits);
}

function piecesOf(text: string, edits: Edit[]): readonly string[] {
  if (edits.length > 1) edits.sort((a, b) => a.start - b.start);
  const pieces: string[] = [];
  let at = 0;
  for (const { start, end, replacement } of edits) {
    pieces.push(text.slice(at, start), replacement);
    at = end;
  }
  pieces.push(text.slice(at));
  return pieces;
}

/**
 * Replaces the one member `name`, an object or a list. In sound JSON an unescaped `"name":` behind a bracket or
 * comma is a member's name and nothing else; where there are several, nobody knows which is meant.
 */
function editOfMember(text: string, name: string, replacement: string): Edit | undefined {
  const key = `"${name}":`;
  const start = text.indexOf(key);
  if (start <= 0 || text.indexOf(key, start + key.length) >= 0) return undefined;
  const before = text.charCodeAt(start - 1);
  if (before !== 123 && before !== 44) return undefined;
  const end = endOfValue(text, start + key.length);
  return end === undefined ? undefined : { start, end, replacement };
}

const QUOTE = 34;
const BACKSLASH = 92;

/** The end of the object or list that begins at `start`. */
function endOfValue(text: string, start: number): number | undefined {
  const first = text.charCodeAt(start);
  if (first !== 123 && first !== 91) return undefined;
  let depth = 0;
  for (let i = start; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === QUOTE) {
      for (i += 1; text.charCodeAt(i) !== QUOTE; i++) {
        if (i >= text.length) return undefined;
        if (text.charCodeAt(i) === BACKSLASH) i += 1;
      }
    } else if (unit === 123 || unit === 91) depth += 1;
    else if (unit === 125 || unit === 93) {
      depth -= 1;
      if (depth === 0) return i + 1;
    }
  }
  return undefined;
}
