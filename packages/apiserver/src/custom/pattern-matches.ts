/**
 * The patterns of schemas and rules: RE2, as in the reference, which matches in time that grows with the text and the
 * pattern and never with the pattern's cleverness. How large a pattern may become is bounded before it is compiled,
 * and what it takes to match is counted in steps: a client's pattern cannot hold up the server.
 */
import { createRequire } from "node:module";
import type { RE2JS } from "re2js";

const require = createRequire(import.meta.url);

/** Loaded with the first pattern: a server without definitions has none, and is there the sooner. */
const library = (): typeof import("re2js") => require("re2js");

/** Longest pattern, in characters. */
const lengthMax = 10_000;

/** Most parts that a pattern may have when its repetitions are written out. */
export const patternMax = 20_000;

/** Most parts of all patterns that are kept. */
const keptMax = 400_000;

interface Known {
  readonly made: RE2JS | Error;
  readonly size: number;
}

/** The patterns that were used last, the oldest first. */
const known = new Map<string, Known>();
let keptSize = 0;

/** @param pay called before compiling, with the number of parts to compile */
function compiled(pattern: string, pay?: (size: number) => void): RE2JS | Error {
  const there = known.get(pattern);
  if (there !== undefined) return there.made;
  if (pattern.length > lengthMax) return new Error(`it is longer than ${lengthMax} characters`);
  const size = writtenOutSize(pattern);
  if (size > patternMax)
    return new Error(`it has more than ${patternMax} parts with its repetitions written out`);
  pay?.(size);
  const made = compile(pattern);
  known.set(pattern, { made, size });
  keptSize += size;
  for (const [oldest, { size: freed }] of known) {
    if (keptSize <= keptMax) break;
    known.delete(oldest);
    keptSize -= freed;
  }
  return made;
}

function compile(pattern: string): RE2JS | Error {
  try {
    return library().RE2JS.compile(pattern);
  } catch (error) {
    return error as Error;
  }
}

const repetition = /\{(\d{1,4})(?:,(\d{0,4}))?\}/y;

/** How many parts the pattern has when each repetition is written out; no less than that. */
export function writtenOutSize(pattern: string): number {
  const outer: number[] = [];
  let total = 1;
  let last = 0;
  const part = () => {
    last = 1;
    total++;
  };
  for (let i = 0; i < pattern.length; i++) {
    switch (pattern[i]) {
      case "\\":
        i++;
        part();
        break;
      case "[":
        i = endOfClass(pattern, i);
        part();
        break;
      case "(":
        outer.push(total);
        total = 1;
        last = 0;
        break;
      case ")":
        last = total + 1;
        total = (outer.pop() ?? 0) + last;
        break;
      case "{": {
        repetition.lastIndex = i;
        const match = repetition.exec(pattern);
        if (match === null) {
          part();
          break;
        }
        const times = Math.max(Number(match[1]) + 1, Number(match[2] ?? 0));
        total += last * (times - 1);
        last *= times;
        i += match[0].length - 1;
        break;
      }
      default:
        part();
    }
    if (total > patternMax || last > patternMax) return Number.POSITIVE_INFINITY;
  }
  return total + outer.reduce((sum, size) => sum + size, 0);
}

/** Where the class of characters ends that begins there. */
function endOfClass(pattern: string, start: number): number {
  let i = start + 1;
  if (pattern[i] === "^") i++;
  // A bracket that comes first is a character of the class.
  if (pattern[i] === "]") i++;
  while (i < pattern.length && pattern[i] !== "]") {
    if (pattern[i] === "\\") i++;
    else if (pattern.startsWith("[:", i)) {
      const end = pattern.indexOf(":]", i + 2);
      if (end >= 0) i = end + 1;
    }
    i++;
  }
  return i;
}

/** Why the text is not a pattern, or undefined. @param pay called before compiling, with the number of parts */
export function patternProblem(pattern: string, pay?: (size: number) => void): string | undefined {
  const made = compiled(pattern, pay);
  return made instanceof Error ? made.message : undefined;
}

/** Most steps that matching a text of so many characters takes; one is a dozen nanoseconds at most. */
export function patternSteps(pattern: string, length: number): number {
  const made = compiled(pattern);
  return made instanceof Error ? 1 : (length + 1) * made.programSize();
}

/** True when the pattern is found in the text; false for what is no pattern. */
export function patternMatches(pattern: string, text: string): boolean {
  const made = compiled(pattern);
  return !(made instanceof Error) && made.matcher(text).find();
}

/**
 * The matches of the pattern in the text, one after the other. The search for each may scan to the end of the text:
 * `before` is called with that number of characters. @throws Error when it is not a pattern
 */
export function* patternFinds(
  pattern: string,
  text: string,
  before: (length: number) => void,
): Iterable<string> {
  const made = compiled(pattern);
  if (made instanceof Error) throw made;
  const matcher = made.matcher(text);
  for (let end = 0; ; end = matcher.end()) {
    before(text.length - end);
    if (!matcher.find()) return;
    yield matcher.group() ?? "";
  }
}
