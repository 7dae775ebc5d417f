/**
 * The patterns of schemas and rules: RE2, as in the reference, which matches in time that grows with the text and
 * never with the pattern's cleverness. A client's pattern cannot hold up the server.
 */
import { createRequire } from "node:module";
import type { RE2JS } from "re2js";

const require = createRequire(import.meta.url);

/** Loaded with the first pattern: a server without definitions has none, and is there the sooner. */
const library = (): typeof import("re2js") => require("re2js");

const known = new Map<string, RE2JS | Error>();

/** Most patterns that are kept. */
const patternsMax = 1000;

function compiled(pattern: string): RE2JS | Error {
  let made = known.get(pattern);
  if (made === undefined) {
    try {
      made = library().RE2JS.compile(pattern);
    } catch (error) {
      made = error as Error;
    }
    if (known.size >= patternsMax) known.clear();
    known.set(pattern, made);
  }
  return made;
}

/** Why the text is no pattern, or undefined. */
export function patternProblem(pattern: string): string | undefined {
  const made = compiled(pattern);
  return made instanceof Error ? made.message : undefined;
}

/** True when the pattern is found in the text; false for what is no pattern. */
export function patternMatches(pattern: string, text: string): boolean {
  const made = compiled(pattern);
  return !(made instanceof Error) && made.matcher(text).find();
}

/** What the pattern finds in the text, one after the other. @throws Error when it is no pattern */
export function* patternFinds(pattern: string, text: string): Iterable<string> {
  const made = compiled(pattern);
  if (made instanceof Error) throw made;
  const matcher = made.matcher(text);
  while (matcher.find()) yield matcher.group() ?? "";
}

/** As {@link patternFinds}, at most `most` of them. */
export function patternGroups(pattern: string, text: string, most: number): readonly string[] {
  const found: string[] = [];
  for (const match of patternFinds(pattern, text)) {
    if (found.length >= most) break;
    found.push(match);
  }
  return found;
}
