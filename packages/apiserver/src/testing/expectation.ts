/**
 * Compares JSON with what a recording expects: placeholders such as `<uid>`, and the special objects
 * `$subset`, `$contains` and `$unordered`. Everything else is compared exactly, messages word for word.
 */

/** What expectations may refer to. */
export interface Known {
  /** Values that earlier steps have kept. */
  readonly saved: ReadonlyMap<string, string>;
  /** The highest resource version seen so far. */
  readonly newest: bigint;
}

type Json = Readonly<Record<string, unknown>>;

const patterns: Readonly<Record<string, RegExp>> = {
  uid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  rv: /^\d+$/,
  time: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/,
  microtime: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/,
  age: /^(<invalid>|<unknown>|(\d+[smhdy])+)$/,
  string: /./s,
};

/** Members that are passed over unless the expectation names them. */
const passedOver: ReadonlySet<string> = new Set(["managedFields", "selfLink"]);

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A member that is null counts as absent. */
const isAbsent = (value: unknown): boolean => value === undefined || value === null;

/** `${name}` becomes the value kept under that name, `$${` a plain `${`; in texts at any depth. */
export function fillIn<T>(value: T, saved: ReadonlyMap<string, string>): T {
  if (typeof value === "string") {
    return value.replace(/\$?\$\{(\w+)\}/g, (found, name: string) => {
      if (found.startsWith("$$")) return found.slice(1);
      const kept = saved.get(name);
      if (kept === undefined) throw new Error(`no step has kept a value as ${name}`);
      return kept;
    }) as T;
  }
  if (Array.isArray(value)) return value.map((item) => fillIn(item, saved)) as T;
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([key, member]) => [fillIn(key, saved), fillIn(member, saved)]);
  return Object.fromEntries(entries) as T;
}

/** What differs, one line each, beginning with where. Expectations are to be filled in before. */
export function differences(expected: unknown, actual: unknown, at: string, known: Known): readonly string[] {
  if (typeof expected === "string") return ofText(expected, actual, at, known);
  if (Array.isArray(expected)) return ofList(expected, actual, at, known);
  if (isObject(expected)) return ofObject(expected, actual, at, known);
  if (expected === actual || (isAbsent(expected) && isAbsent(actual))) return [];
  return [wrong(at, expected, actual)];
}

function wrong(at: string, expected: unknown, actual: unknown): string {
  const shown = (value: unknown) => (JSON.stringify(value) ?? "nothing").slice(0, 200);
  return `${at}: expected ${shown(expected)}, got ${shown(actual)}`;
}

function ofText(expected: string, actual: unknown, at: string, known: Known): readonly string[] {
  const [, name = "", argument = ""] = /^<([a-z]+)(?::(.*))?>$/s.exec(expected) ?? [];
  return holds(name, argument) ? [] : [wrong(at, expected, actual)];

  function holds(placeholder: string, text: string): boolean {
    const pattern = patterns[placeholder];
    if (pattern !== undefined) return typeof actual === "string" && pattern.test(actual);
    switch (placeholder) {
      case "newrv":
        return typeof actual === "string" && /^\d+$/.test(actual) && BigInt(actual) > known.newest;
      case "number":
        return typeof actual === "number";
      case "any":
        return actual !== undefined;
      case "absent":
        return actual === undefined || actual === null;
      case "match":
        return typeof actual === "string" && new RegExp(text).test(actual);
      case "json":
        return (
          typeof actual === "string" &&
          differences(JSON.parse(text), JSON.parse(actual), at, known).length === 0
        );
      default:
        return expected === actual || (expected === "" && /(^|\.)continue$/.test(at) && isAbsent(actual));
    }
  }
}

function ofList(expected: readonly unknown[], actual: unknown, at: string, known: Known): readonly string[] {
  if (isAbsent(expected) && isAbsent(actual)) return [];
  if (!Array.isArray(actual) || actual.length !== expected.length) return [wrong(at, expected, actual)];
  return expected.flatMap((item, i) => differences(item, actual[i], `${at}[${i}]`, known));
}

function ofObject(expected: Json, actual: unknown, at: string, known: Known): readonly string[] {
  const list = expected.$contains ?? expected.$unordered;
  if (list !== undefined) {
    return inAnyOrder(list as readonly unknown[], expected.$unordered !== undefined, actual, at, known);
  }
  const members = isObject(expected.$subset) ? expected.$subset : expected;
  if (!isObject(actual)) return isAbsent(members) && isAbsent(actual) ? [] : [wrong(at, expected, actual)];
  const path = (key: string) => (at === "" ? key : `${at}.${key}`);
  const named = Object.entries(members).flatMap(([key, member]) =>
    isAbsent(member) && isAbsent(actual[key]) ? [] : differences(member, actual[key], path(key), known),
  );
  if (members !== expected) return named;
  const others = Object.keys(actual).filter(
    (key) =>
      !Object.hasOwn(members, key) &&
      !passedOver.has(key) &&
      !isAbsent(actual[key]) &&
      !(key === "continue" && actual[key] === ""),
  );
  return [...named, ...others.map((key) => wrong(path(key), undefined, actual[key]))];
}

function inAnyOrder(
  expected: readonly unknown[],
  exactly: boolean,
  actual: unknown,
  at: string,
  known: Known,
): readonly string[] {
  if (!Array.isArray(actual)) return [wrong(at, expected, actual)];
  if (exactly && actual.length !== expected.length) return [wrong(at, expected, actual)];
  const left = [...actual];
  return expected.flatMap((item) => {
    const found = left.findIndex((candidate) => differences(item, candidate, at, known).length === 0);
    if (found < 0) return [`${at}: nothing there is like ${JSON.stringify(item).slice(0, 200)}`];
    left.splice(found, 1);
    return [];
  });
}
