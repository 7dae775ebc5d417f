/** The simplest implementations of patches, at any cost: the reference for the fast ones. */

import { sameJson } from "../api/own.ts";

type Json = Record<string, unknown>;

/** One operation of a JSON patch. */
export interface JsonOperation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** The patched document; "refused" where an operation cannot be applied. */
export function naiveJsonPatch(target: unknown, patch: readonly JsonOperation[]): unknown {
  const root = clone(target);
  try {
    for (const operation of patch) operate(root, operation);
    return root;
  } catch (error) {
    if (error instanceof RangeError) return "refused";
    throw error;
  }
}

/** A copy whose parts are all distinct objects. */
const clone = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

const namesIn = (path: string) =>
  path
    .slice(1)
    .split("/")
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));

function step(container: unknown, name: string): unknown {
  if (typeof container !== "object" || container === null) throw new RangeError("nothing there");
  if (Array.isArray(container)) return container[place(container.length - 1, name)];
  return Object.hasOwn(container, name) ? (container as Json)[name] : undefined;
}

function place(last: number, name: string): number {
  if (!/^-?\d{1,9}$/.test(name)) throw new RangeError("no place");
  const index = Number(name) < 0 ? last + 1 + Number(name) : Number(name);
  if (index < 0 || index > last) throw new RangeError("no place");
  return index;
}

function operate(root: unknown, { op, path, from = "", value = null }: JsonOperation): void {
  const names = namesIn(path);
  const holder = () => {
    const found = names.slice(0, -1).reduce(step, root);
    if (typeof found !== "object" || found === null) throw new RangeError("nothing there");
    return found as Json | unknown[];
  };
  const last = names.at(-1) ?? "";
  const add = (added: unknown) => {
    const container = holder();
    if (!Array.isArray(container)) container[last] = added;
    else container.splice(last === "-" ? container.length : place(container.length, last), 0, added);
  };
  const remove = (at: readonly string[]) => {
    const container = at.slice(0, -1).reduce(step, root) as Json | unknown[];
    const name = at.at(-1) ?? "";
    if (step(container, name) === undefined) throw new RangeError("nothing there");
    if (Array.isArray(container)) container.splice(place(container.length - 1, name), 1);
    else delete container[name];
  };
  if (op === "add") add(clone(value));
  else if (op === "remove") remove(names);
  else if (op === "copy") add(clone(namesIn(from).reduce(step, root) ?? null));
  else if (op === "move") {
    const moved = namesIn(from).reduce(step, root);
    remove(namesIn(from));
    add(moved);
  } else if (op === "replace") {
    const container = holder();
    if (Array.isArray(container)) container[place(container.length - 1, last)] = clone(value);
    else container[last] = clone(value);
  } else if (!sameJson(names.reduce(step, root) ?? null, value)) throw new RangeError("another value");
}

/** What a strategic merge patch makes of one list. */
export interface ListPatch {
  readonly before: readonly unknown[];
  readonly value: readonly unknown[];
  readonly order: readonly unknown[] | undefined;
  readonly gone: readonly unknown[];
  readonly mergeKey: string | undefined;
}

/** The merged list; "refused" where the order does not name all that is set. */
export function naiveListMerge({ before, value, order, gone, mergeKey }: ListPatch): unknown {
  const keyOf = (item: unknown) => (mergeKey === undefined ? item : (item as Json)[mergeKey]);
  const isDirective = (item: unknown) => mergeKey !== undefined && (item as Json).$patch !== undefined;
  const indexIn = (list: readonly unknown[], item: unknown) =>
    list.findIndex((other) => sameJson(keyOf(other), keyOf(item)));
  if (order !== undefined && value.some((item) => !isDirective(item) && indexIn(order, item) < 0))
    return "refused";
  const kept = before.filter((item) => !gone.some((other) => sameJson(other, item)));
  const added: unknown[] = [];
  for (const item of value) {
    const at = indexIn(kept, item);
    if (isDirective(item)) {
      if (at >= 0) kept.splice(at, 1);
    } else if (at < 0) {
      if (mergeKey !== undefined || !added.includes(item)) added.push(item);
    } else if (mergeKey !== undefined) kept[at] = { ...(kept[at] as Json), ...(item as Json) };
  }
  const merged = mergeKey === undefined ? [...kept, ...added] : [...added, ...kept];
  const wanted = order ?? value;
  const named = merged.filter((item) => indexIn(wanted, item) >= 0);
  const others = merged.filter((item) => indexIn(wanted, item) < 0);
  named.sort((a, b) => indexIn(wanted, a) - indexIn(wanted, b));
  others.sort((a, b) => indexIn(before, a) - indexIn(before, b));
  const result: unknown[] = [];
  while (named.length > 0 && others.length > 0) {
    const [other, item] = [indexIn(before, others[0]), indexIn(before, named[0])];
    result.push(other >= 0 && item >= 0 && other < item ? others.shift() : named.shift());
  }
  return [...result, ...others, ...named];
}
