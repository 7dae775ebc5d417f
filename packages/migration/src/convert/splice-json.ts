/**
 * The text of a translated PersistentVolume made from the text it was read from: only the members that
 * changed are written anew, everything else stays as it was, to the byte.
 */

import { isObject, type KubeObject, member } from "./kube-object.ts";

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
    if (name === "nodeAffinity" && name in from) {
      const renames = editsOfRenamedKey(text, renamedKey(from[name], to[name]));
      if (renames !== undefined) {
        edits.push(...renames);
        continue;
      }
    }
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

/** One key under another name in so many requirements of a node affinity. */
interface RenamedKey {
  readonly from: string;
  readonly to: string;
  readonly count: number;
}

/** The rename that is all the difference between two node affinities; shared parts are known to be equal. */
function renamedKey(before: unknown, after: unknown): RenamedKey | undefined {
  const [termsBefore, termsAfter] = [before, after].map((affinity) =>
    member(affinity, "required", "nodeSelectorTerms"),
  );
  if (!Array.isArray(termsBefore) || !Array.isArray(termsAfter) || termsBefore.length !== termsAfter.length) {
    return undefined;
  }
  let rename: { from: string; to: string; count: number } | undefined;
  for (let i = 0; i < termsBefore.length; i++) {
    if (termsBefore[i] === termsAfter[i]) continue;
    const [expressions, changed] = [termsBefore[i]?.matchExpressions, termsAfter[i]?.matchExpressions];
    if (!Array.isArray(expressions) || expressions.length !== changed?.length) return undefined;
    for (let j = 0; j < expressions.length; j++) {
      if (expressions[j] === changed[j]) continue;
      const { key: from, values } = expressions[j];
      const { key: to } = changed[j];
      rename ??= { from, to, count: 0 };
      if (values !== changed[j].values || from !== rename.from || to !== rename.to) return undefined;
      rename.count += 1;
    }
  }
  return rename;
}

/** Writes the new name wherever the text has the old one, if that is nowhere else than where it was renamed. */
function editsOfRenamedKey(text: string, rename: RenamedKey | undefined): readonly Edit[] | undefined {
  if (rename === undefined) return undefined;
  const old = `"key":${JSON.stringify(rename.from)}`;
  const replacement = `"key":${JSON.stringify(rename.to)}`;
  const edits: Edit[] = [];
  for (let start = text.indexOf(old); start >= 0; start = text.indexOf(old, start + old.length)) {
    if (text.charCodeAt(start - 1) === BACKSLASH) return undefined;
    edits.push({ start, end: start + old.length, replacement });
  }
  return edits.length === rename.count ? edits : undefined;
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
