/**
 * The JSON paths of definitions: columns, selectable fields and the scale (k8s.io/client-go util/jsonpath, as far as
 * definitions use it): members, indexes, slices, `*`, `..` and filters that compare with a constant.
 */

type Step =
  | { readonly kind: "member"; readonly name: string }
  | { readonly kind: "slice"; readonly from: number | undefined; readonly to: number | undefined }
  | { readonly kind: "all" | "descend" }
  | {
      readonly kind: "filter";
      readonly path: readonly Step[];
      readonly operator: string;
      readonly value: unknown;
    };

/** A path that can be followed. */
export type JsonPath = readonly Step[];

class JsonPathError extends Error {
  override readonly name = "JsonPathError";
}

const known = new Map<string, JsonPath | JsonPathError>();

/** Most paths that are kept. */
const pathsMax = 1000;

/** Longest path, in characters. */
const lengthMax = 1000;

function parsed(text: string): JsonPath | JsonPathError {
  if (text.length > lengthMax)
    return new JsonPathError(`is invalid: it is longer than ${lengthMax} characters`);
  let path = known.get(text);
  if (path === undefined) {
    try {
      path = parse(text);
    } catch (error) {
      if (!(error instanceof JsonPathError)) throw error;
      path = error;
    }
    if (known.size >= pathsMax) known.clear();
    known.set(text, path);
  }
  return path;
}

/** Why the text is no path, or undefined. @param form `simple`: members only */
export function jsonPathProblem(text: string, form?: "simple"): string | undefined {
  const path = parsed(text);
  if (path instanceof JsonPathError) return path.message;
  return form === "simple" && path.some((step) => step.kind !== "member")
    ? "is invalid: only members can be named here"
    : undefined;
}

/** Maximum number of values that one lookup visits: `..` leads to each part of an object, and `....` to each of each. */
const looksMax = 10_000;

/**
 * The first value that the path leads to; undefined when there is none, when the text is no path, or when too much of
 * the value would have to be looked at. @param looks counts each value that is looked at
 */
export function firstValueAt(value: unknown, text: string, looks = () => {}): unknown {
  const path = parsed(text);
  if (path instanceof JsonPathError) return undefined;
  let left = looksMax;
  const look = () => {
    looks();
    return left-- > 0;
  };
  for (const found of follow(value, path, 0, look)) return found;
  return undefined;
}

/** The names of the members that a simple path (`.spec.replicas`) goes through. */
export function membersOf(text: string): readonly string[] {
  const path = parsed(text);
  if (path instanceof JsonPathError) return [];
  return path.flatMap((step) => (step.kind === "member" ? [step.name] : []));
}

/** The object with the value at a simple path. Pure. */
export function withValueAt(object: unknown, members: readonly string[], value: unknown): unknown {
  const [first, ...rest] = members;
  if (first === undefined) return value;
  const of = typeof object === "object" && object !== null ? (object as Record<string, unknown>) : {};
  return { ...of, [first]: withValueAt(of[first], rest, value) };
}

/** Depth first, so that the first value is there before the others are looked for. */
function* follow(value: unknown, path: JsonPath, from: number, look: () => boolean): Iterable<unknown> {
  const step = path[from];
  if (step === undefined) {
    yield value;
    return;
  }
  for (const next of take(value, step, look)) {
    if (!look()) return;
    yield* follow(next, path, from + 1, look);
  }
}

function* take(value: unknown, step: Step, look: () => boolean): Iterable<unknown> {
  if (typeof value !== "object" || value === null) return;
  switch (step.kind) {
    case "member":
      if (Object.hasOwn(value, step.name)) yield (value as Record<string, unknown>)[step.name];
      return;
    case "slice":
      if (Array.isArray(value)) yield* sliceOf(value, step.from, step.to);
      return;
    case "all":
      yield* membersIn(value);
      return;
    case "descend":
      yield* descendants(value, look);
      return;
    case "filter":
      for (const item of membersIn(value)) {
        if (!look()) return;
        if (passes(item, step, look)) yield item;
      }
  }
}

function* membersIn(value: object): Iterable<unknown> {
  if (Array.isArray(value)) yield* value;
  else for (const key in value) yield (value as Record<string, unknown>)[key];
}

function* sliceOf(list: readonly unknown[], from = 0, to = list.length): Iterable<unknown> {
  const end = to < 0 ? list.length + to : Math.min(to, list.length);
  for (let i = from < 0 ? Math.max(0, list.length + from) : from; i < end; i++) yield list[i];
}

function* descendants(value: object, look: () => boolean): Iterable<unknown> {
  yield value;
  for (const member of membersIn(value)) {
    if (!look()) return;
    if (typeof member === "object" && member !== null) yield* descendants(member, look);
  }
}

function passes(
  item: unknown,
  { path, operator, value }: Step & { readonly kind: "filter" },
  look: () => boolean,
): boolean {
  const [found] = follow(item, path, 0, look);
  if (operator === "") return found !== undefined;
  if (found === undefined) return false;
  switch (operator) {
    case "==":
      return found === value;
    case "!=":
      return found !== value;
    case "<":
      return (found as number) < (value as number);
    case "<=":
      return (found as number) <= (value as number);
    case ">":
      return (found as number) > (value as number);
    default:
      return (found as number) >= (value as number);
  }
}

const member = /^\.((?:[A-Za-z0-9_/$-]|\\.)+)/;
const quoted = /^\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]/;
const index = /^\[\s*(-?\d+)\s*\]/;
const slice = /^\[\s*(-?\d*)\s*:\s*(-?\d*)\s*\]/;
const filter = /^\[\?\(\s*@((?:\['[^']*'\]|[^\]=!<>()[])*)(?:(==|!=|<=|>=|<|>)([^\]]*))?\)\]/;

/** A path may stand in braces, and begins with a dot otherwise. */
function parse(text: string): JsonPath {
  let rest = /^\{(.*)\}$/s.exec(text)?.[1] ?? text;
  if (!rest.startsWith(".") && !rest.startsWith("[") && !rest.startsWith("$")) {
    throw new JsonPathError("is invalid: it must begin with a dot");
  }
  rest = rest.replace(/^\$/, "");
  if (rest === ".") return [];
  const steps: Step[] = [];
  while (rest !== "") {
    const eaten = readers
      .map(([pattern, read]) => [pattern.exec(rest), read] as const)
      .find(([m]) => m !== null);
    if (eaten === undefined || eaten[0] === null) {
      throw new JsonPathError(`is invalid: ${JSON.stringify(rest)} cannot be read`);
    }
    const [match, read] = eaten;
    rest = rest.slice(match[0].length);
    steps.push(read(match));
  }
  return steps;
}

/** What a step looks like, in the order in which to look, and the step that it is. */
const readers: readonly (readonly [RegExp, (match: RegExpExecArray) => Step])[] = [
  [/^\.(?=\.)/, () => ({ kind: "descend" })],
  [/^(\.\*|\[\s*\*\s*\])/, () => ({ kind: "all" })],
  [quoted, (match) => ({ kind: "member", name: unescaped(match[1] ?? match[2] ?? "") })],
  [index, (match) => indexStep(Number(match[1]))],
  [slice, (match) => ({ kind: "slice", from: numberOf(match[1]), to: numberOf(match[2]) })],
  [filter, filterStep],
  [member, (match) => ({ kind: "member", name: unescaped(match[1] ?? "") })],
];

function indexStep(at: number): Step {
  // Behind the last one is the end: -1 + 1 would be the beginning.
  return { kind: "slice", from: at, to: at === -1 ? undefined : at + 1 };
}

function filterStep([, given = "", operator = "", value = ""]: RegExpExecArray): Step {
  const path = given.trim();
  return { kind: "filter", path: path === "" ? [] : parse(path), operator, value: constant(value.trim()) };
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, "$1");
}

function numberOf(text: string | undefined): number | undefined {
  return text === undefined || text === "" ? undefined : Number(text);
}

function constant(text: string): unknown {
  const string = /^(?:'(.*)'|"(.*)")$/s.exec(text);
  if (string !== null) return unescaped(string[1] ?? string[2] ?? "");
  if (text === "true" || text === "false") return text === "true";
  return text === "" ? undefined : Number(text);
}
