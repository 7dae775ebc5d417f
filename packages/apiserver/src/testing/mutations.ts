/**
 * Makes many wrong (and some right) objects out of a sound one: every member taken away, emptied, or set to what it
 * should not be. Held against the real API server, they show where our rules differ from its own.
 */

/** One changed object. */
export interface Mutation {
  /** The path of the member, and what was done to it. */
  readonly name: string;
  readonly object: object;
}

/** A value of a member or an item. */
type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

const words = [
  "",
  "Bad_Value!",
  "-x",
  "x".repeat(64),
  "y".repeat(254),
  "a.b/c/d",
  "Example.com",
  "../etc",
  "a/../b",
  "1",
];
const numbers = [-1, 0, 1, 70_000, 2_000_000_000];
const quantities = ["0", "-1Gi", "1.5", "3m", "10Gi"];

const isQuantity = (text: string) => /^\d+(\.\d+)?([KMG]i?|m)?$/.test(text);

/** What stands in the place of a value. */
function replacements(value: Json): readonly Json[] {
  if (typeof value === "string") return isQuantity(value) ? quantities : words;
  if (typeof value === "number") return numbers.filter((n) => n !== value);
  if (typeof value === "boolean") return [!value];
  if (Array.isArray(value)) {
    const [first] = value;
    return first === undefined
      ? []
      : [[], [...value, first], ...(value.length > 1 ? [[...value].reverse()] : [])];
  }
  if (value === null) return [];
  const [key] = Object.keys(value);
  return key === undefined ? [] : [{}, { ...value, "bad key!": value[key] as Json }];
}

/** Every mutation of the object; identity and kind stay. */
export function* mutationsOf(object: object, extra: readonly Mutation[] = []): Iterable<Mutation> {
  yield* extra;
  for (const path of pathsOf(object as Json)) {
    const at = path.join(".");
    if (["apiVersion", "kind", "metadata"].includes(at)) continue;
    yield { name: `${at} taken away`, object: changed(object as Json, path, undefined) as object };
    if (at === "metadata.name" || at === "metadata.namespace") continue;
    for (const value of replacements(valueAt(object as Json, path))) {
      const name = `${at} = ${JSON.stringify(value).slice(0, 40)}`;
      yield { name, object: changed(object as Json, path, value) as object };
    }
  }
}

function* pathsOf(value: Json, at: readonly string[] = []): Iterable<readonly string[]> {
  if (at.length > 0) yield at;
  if (typeof value !== "object" || value === null) return;
  for (const [key, member] of Object.entries(value)) yield* pathsOf(member as Json, [...at, key]);
}

function valueAt(value: Json, path: readonly string[]): Json {
  return path.reduce((v, key) => (v as Record<string, Json>)[key] as Json, value);
}

function changed(value: Json, [key, ...rest]: readonly string[], next: Json | undefined): Json {
  if (key === undefined) return next as Json;
  const member = (value as Record<string, Json>)[key] as Json;
  if (Array.isArray(value)) {
    const items: Json[] = [...value];
    if (rest.length === 0 && next === undefined) items.splice(Number(key), 1);
    else items[Number(key)] = changed(member, rest, next);
    return items;
  }
  const { [key]: _, ...others } = value as Record<string, Json>;
  if (rest.length === 0 && next === undefined) return others;
  // The place of the member stays, so that messages that list members agree.
  return Object.fromEntries(
    Object.entries(value as object).map(([k, v]) => [k, k === key ? changed(member, rest, next) : v]),
  ) as Json;
}
