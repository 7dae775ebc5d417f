/**
 * The text of a translated PersistentVolume made from the text it was read from: only the members that
 * changed are written anew, everything else stays as it was, to the byte.
 */

import { isObject, type KubeObject } from "./kube-object.ts";

/** Changed text, or `undefined` where the change is not one that can be spliced in with certainty. */
export function splicedVolume(text: string, before: KubeObject, after: KubeObject): string | undefined {
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
  let result = text;
  for (const name in to) {
    if (to[name] === from[name]) continue;
    if (name in from) {
      const replaced = replaceMember(result, name, `"${name}":${JSON.stringify(to[name])}`);
      if (replaced === undefined) return undefined;
      result = replaced;
    } else {
      added += `${added === "" ? "" : ","}"${name}":${JSON.stringify(to[name])}`;
    }
  }
  return replaceMember(result, gone, added);
}

/**
 * `text` with the one member `name`, an object or a list, replaced. In sound JSON an unescaped `"name":` behind a
 * bracket or comma is a member's name and nothing else; where there are several, nobody knows which is meant.
 */
function replaceMember(text: string, name: string, replacement: string): string | undefined {
  const key = `"${name}":`;
  const start = text.indexOf(key);
  if (start <= 0 || text.indexOf(key, start + key.length) >= 0) return undefined;
  const before = text.charCodeAt(start - 1);
  if (before !== 123 && before !== 44) return undefined;
  const end = endOfValue(text, start + key.length);
  return end === undefined ? undefined : text.slice(0, start) + replacement + text.slice(end);
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
