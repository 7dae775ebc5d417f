/**
 * The problems that a strict decoder finds: members that the type does not have, and duplicate members. They are
 * reported as an error or as a warning, as the client asks (`fieldValidation`; apimachinery's strict decoding errors).
 */
import type { KubeObject } from "@longshore/kube";
import type { FieldChecks } from "../api/field-checks.ts";
import type { Kind } from "../api/kind.ts";
import { spendTime } from "../api/work-time.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { structNameOf, structOf, type TypeRef } from "./schema.ts";

/** The error's text for all problems together. */
export function strictProblem(problems: readonly string[]): string {
  return `strict decoding error: ${problems.join(", ")}`;
}

/**
 * Warns of the problems, or returns the text of the error; undefined when the request goes on.
 * @param unknown computes the problems of the fields; called only when they are needed
 */
export function fieldProblem(
  checks: FieldChecks | undefined,
  unknown: () => readonly string[],
): string | undefined {
  if (checks === undefined || checks.validation === "Ignore") return undefined;
  const problems = [...new Set([...checks.inText, ...unknown()])];
  if (problems.length === 0) return undefined;
  if (checks.validation === "Strict") return strictProblem(problems);
  for (const problem of problems) checks.warn(problem);
  return undefined;
}

/** Maximum number of problems reported: a body may hold any number. */
const problemsMax = 100;

/** `unknown field "spec.foo"` for each member of the object that its kind does not have in that version of its group. */
export function unknownFields(
  of: Pick<Kind, "group" | "kind" | "custom">,
  version: string,
  value: unknown,
  emulated: EmulatedVersion,
): readonly string[] {
  const paths: string[] = [];
  if (of.custom !== undefined) paths.push(...of.custom.unknownFields(value as KubeObject, version));
  else {
    const name = structNameOf(of.group, of.kind, version);
    lookAt({ form: "struct", name }, value, "", emulated, paths);
  }
  return paths.map((path) => `unknown field ${JSON.stringify(path)}`);
}

function lookAt(type: TypeRef, value: unknown, at: string, emulated: EmulatedVersion, found: string[]): void {
  spendTime();
  if (typeof value !== "object" || value === null || found.length >= problemsMax) return;
  switch (type.form) {
    case "list":
      if (!Array.isArray(value)) return;
      for (const [i, item] of value.entries()) lookAt(type.of, item, `${at}[${i}]`, emulated, found);
      return;
    case "map":
      // Plain values have no members: a map can have a hundred thousand of them.
      if (!["any", "list", "map", "struct"].includes(type.of.form)) return;
      for (const [key, member] of Object.entries(value)) {
        lookAt(type.of, member, pathTo(at, key), emulated, found);
      }
      return;
    case "struct": {
      const struct = structOf(type.name, emulated);
      if (struct === undefined) return;
      for (const [key, member] of Object.entries(value)) {
        const known = struct.get(key);
        if (known === undefined) found.push(pathTo(at, key));
        else lookAt(known.type, member, pathTo(at, key), emulated, found);
      }
    }
  }
}

const pathTo = (at: string, key: string): string => (at === "" ? key : `${at}.${key}`);

/**
 * `duplicate field "spec.foo"` for each member of an object in the JSON text that is there a second time.
 * @param text valid JSON
 * @param value what it was parsed to: where its members are as many as the text's, none is there twice
 */
export function duplicateFields(text: string, value: unknown): readonly string[] {
  if (membersIn(value) === membersOfText(text)) return [];
  const found: string[] = [];
  new Scanner(text, found).value("");
  return found.map((path) => `duplicate field ${JSON.stringify(path)}`);
}

function membersIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const members = Object.values(value);
  spendTime(1 + members.length);
  let count = Array.isArray(value) ? 0 : members.length;
  for (const member of members) if (typeof member === "object") count += membersIn(member);
  return count;
}

const quote = 34;
const backslash = 92;
const colon = 58;
const space = 32;

/** How many members there are in the text: strings that a colon follows. */
function membersOfText(text: string): number {
  let count = 0;
  for (let at = text.indexOf('"'); at >= 0; ) {
    spendTime();
    let end = endOfString(text, at);
    // Ends at the end of the text as well: the code there is NaN.
    while (text.charCodeAt(end) <= space) end++;
    if (text.charCodeAt(end) === colon) count++;
    at = text.indexOf('"', end);
  }
  return count;
}

/** The place behind the string that begins at `at`. */
function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === backslash) slashes++;
    if (slashes % 2 === 0) return end + 1;
  }
  return text.length;
}

/** Goes through a valid JSON text with the path of each member. */
class Scanner {
  readonly #text: string;
  readonly #found: string[];
  #at = 0;

  constructor(text: string, found: string[]) {
    this.#text = text;
    this.#found = found;
  }

  value(path: string): void {
    spendTime();
    const first = this.#next();
    if (first === quote) this.#string();
    else if (first === 123) this.#object(path);
    else if (first === 91) this.#list(path);
    else while (this.#at < this.#text.length && !/[,\]}\s]/.test(this.#text[this.#at] as string)) this.#at++;
  }

  #object(path: string): void {
    const seen = new Set<string>();
    this.#at++;
    while (this.#next() === quote) {
      // Parsed: two spellings of a key (`a` and `\u0061`) are one member.
      const key = JSON.parse(this.#string()) as string;
      const member = pathTo(path, key);
      if (seen.has(key) && this.#found.length < problemsMax) this.#found.push(member);
      seen.add(key);
      this.#next();
      this.#at++; // The colon.
      this.value(member);
      if (this.#next() === 44) this.#at++;
    }
    this.#at++;
  }

  #list(path: string): void {
    this.#at++;
    for (let i = 0; this.#next() !== 93 && this.#at < this.#text.length; i++) {
      this.value(`${path}[${i}]`);
      if (this.#next() === 44) this.#at++;
    }
    this.#at++;
  }

  /** The next character that is no space, at which the scanner then is. */
  #next(): number {
    while (this.#text.charCodeAt(this.#at) <= space) this.#at++;
    return this.#text.charCodeAt(this.#at);
  }

  #string(): string {
    const begin = this.#at;
    this.#at = endOfString(this.#text, begin);
    return this.#text.slice(begin, this.#at);
  }
}
