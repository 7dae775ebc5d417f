/**
 * The text of a translated PersistentVolume, made from the text it was read from: only the members that
 * changed are written again, everything else stays as it was, to the byte.
 */

import { isObject, type KubeObject } from "./kube-object.ts";
import { specSlots, volumeScanner } from "./volume-scanner.ts";

/** A part of the text, in bytes, and what takes its place. */
export interface Edit {
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
  if (before.metadata !== after.metadata || !isObject(before.spec) || !isObject(after.spec)) return undefined;
  const bytes = Buffer.from(`${text}\n`);
  if (volumeScanner.scan(bytes, 0) !== bytes.length - 1) return undefined;
  const edits = specEdits(before.spec, after.spec, JSON.stringify);
  if (edits === undefined) return undefined;
  const pieces: string[] = [];
  let at = 0;
  for (const { start, end, replacement } of edits) {
    pieces.push(bytes.toString("utf8", at, start), replacement);
    at = end;
  }
  pieces.push(bytes.toString("utf8", at, bytes.length - 1));
  return pieces;
}

/**
 * The differences of two specs as edits of the line that was scanned last, in the order of its text. A new member
 * takes the place of the removed one. `undefined`: the line alone does not show where something stands.
 */
export function specEdits(
  from: KubeObject,
  to: KubeObject,
  writtenAffinity: (affinity: unknown) => string,
): readonly Edit[] | undefined {
  const edits: Edit[] = [];
  let added = "";
  for (const name in to) {
    const value = to[name];
    // By reference: a translation returns what it leaves alone as the same object.
    if (value === from[name]) continue;
    if (!(name in from)) {
      added += `${added === "" ? "" : ","}"${name}":${JSON.stringify(value)}`;
      continue;
    }
    const slot = foundSlot(name);
    if (slot === undefined) return undefined;
    const replacement = name === "nodeAffinity" ? writtenAffinity(value) : JSON.stringify(value);
    insertEdit(edits, {
      start: volumeScanner.valueStartOf(slot),
      end: volumeScanner.endOf(slot),
      replacement,
    });
  }
  let gone: string | undefined;
  for (const name in from) {
    if (name in to) continue;
    if (gone !== undefined) return undefined;
    gone = name;
  }
  const slot = gone === undefined ? undefined : foundSlot(gone);
  if (slot === undefined || added === "") return undefined;
  insertEdit(edits, {
    start: volumeScanner.startOf(slot),
    end: volumeScanner.endOf(slot),
    replacement: added,
  });
  return edits;
}

function foundSlot(name: string): number | undefined {
  const slot = specSlots.get(name);
  return slot !== undefined && volumeScanner.isFound(slot) ? slot : undefined;
}

/** Keeps `edits`, which are two or three, in the order of the text. */
function insertEdit(edits: Edit[], edit: Edit): void {
  let at = edits.length;
  while (at > 0 && (edits[at - 1] as Edit).start > edit.start) at -= 1;
  if (at === edits.length) edits.push(edit);
  else edits.splice(at, 0, edit);
}
