/**
 * Strategic merge patch: a merge patch that knows, from the schema, which lists are sets and which
 * are merged by a key, with the directives `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/…`
 * and `$setElementOrder/…` (apimachinery util/strategicpatch; design proposal "strategic merge patch").
 */

import { ByJson } from "../api/by-json.ts";
import { apiError, badRequest } from "../api/errors.ts";
import { toJson } from "../api/json.ts";
import { ownMember, setMember } from "../api/set-member.ts";
import { spendTime } from "../api/work-time.ts";
import { mergeRules } from "../schema/merge-rules.ts";
import { structNameOf, structOf, type TypeRef } from "../schema/schema.ts";

type Json = Readonly<Record<string, unknown>>;

const deletePrefix = "$deleteFromPrimitiveList/";
const orderPrefix = "$setElementOrder/";

/** The patched object; parts that the patch does not name are shared with `target`. @throws KubeApiError 400 */
export function applyStrategicPatch(
  target: unknown,
  patch: Json,
  of: { readonly group: string; readonly kind: string },
): unknown {
  const type: TypeRef = { form: "struct", name: structNameOf(of.group, of.kind) };
  return mergeMap(asMap(target), patch, type, new Work());
}

/** Most members and items that the merges of one patch go through: more than a patch can name that names each once. */
const stepsMax = 2_000_000;

/** Counts what a patch costs: one that names the same item again and again goes through all of it each time. */
class Work {
  #left = stepsMax;
  readonly #opened = new WeakSet<object>();

  /** A copy that may be changed; one that this patch has made is changed itself. */
  openFor(original: Json): Record<string, unknown> {
    if (this.#opened.has(original)) return original as Record<string, unknown>;
    const copy = { ...original };
    this.#opened.add(copy);
    this.spend(Object.keys(copy).length);
    return copy;
  }

  /** @throws KubeApiError 413 */
  spend(steps: number): void {
    spendTime(1 + steps);
    this.#left -= steps;
    if (this.#left >= 0) return;
    const message = `Request entity too large: the patch merges more than ${stepsMax} members and items: name each item once, or split the patch`;
    throw apiError(413, "RequestEntityTooLarge", message);
  }
}

function isMap(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function asMap(value: unknown): Json {
  return isMap(value) ? value : {};
}

function mergeMap(original: Json, patch: Json, type: TypeRef, work: Work): Json {
  const directive = patch.$patch;
  if (directive === "replace") return withoutDirectives(patch);
  if (directive === "delete") return {};
  if (directive !== undefined && directive !== "merge") {
    const shown = typeof directive === "string" ? directive : JSON.stringify(directive);
    throw badRequest(`unknown patch type: ${shown}: use replace, merge or delete`);
  }
  const result = work.openFor(original);
  if (patch.$retainKeys !== undefined) retainKeys(result, patch);
  for (const [key, value] of Object.entries(patch)) {
    spendTime();
    if (key === "$patch" || key === "$retainKeys") continue;
    if (key.startsWith(deletePrefix)) {
      const field = key.slice(deletePrefix.length);
      const gone = listOf(value, key);
      const before = asList(ownMember(result, field));
      work.spend(before.length);
      // Where the patch has items as well, `mergeMember` takes these out.
      if (!Object.hasOwn(patch, field)) setMember(result, field, withoutItems(before, gone));
      continue;
    }
    if (key.startsWith(orderPrefix)) {
      const field = key.slice(orderPrefix.length);
      if (Object.hasOwn(patch, field) || !Object.hasOwn(result, field)) continue;
      const items = asList(result[field]);
      work.spend(items.length);
      result[field] = ordered(items, listOf(value, key), items, ruleOf(type, field).mergeKey);
      continue;
    }
    const merged = mergeMember(ownMember(result, key), value, key, patch, type, work);
    if (merged === undefined) delete result[key];
    else setMember(result, key, merged);
  }
  return result;
}

function mergeMember(
  before: unknown,
  value: unknown,
  key: string,
  patch: Json,
  type: TypeRef,
  work: Work,
): unknown {
  if (value === null) return undefined;
  const memberType = typeOfMember(type, key);
  if (Array.isArray(value)) {
    const rule = ruleOf(type, key);
    if (!(rule.strategy ?? "").split(",").includes("merge")) return value;
    const gone = asList(patch[`${deletePrefix}${key}`]);
    const order = patch[`${orderPrefix}${key}`];
    const itemType: TypeRef = memberType.form === "list" ? memberType.of : { form: "any" };
    if (order !== undefined) checkOrder(value, listOf(order, `${orderPrefix}${key}`), rule.mergeKey);
    work.spend(asList(before).length + value.length);
    const merged = mergeList(withoutItems(asList(before), gone), value, rule.mergeKey, itemType, work);
    return ordered(merged, order === undefined ? value : asList(order), asList(before), rule.mergeKey);
  }
  if (!isMap(value)) return value;
  // What is deleted whole leaves no empty object behind.
  if (value.$patch === "delete") return undefined;
  return mergeMap(asMap(before), value, memberType, work);
}

function mergeList(
  original: readonly unknown[],
  patch: readonly unknown[],
  mergeKey: string | undefined,
  itemType: TypeRef,
  work: Work,
): readonly unknown[] {
  if (patch.every((item) => !isMap(item))) {
    const there = new Set(original);
    const added = new Set(patch.filter((item) => !there.has(item)));
    return [...original, ...added];
  }
  // Without a key the objects of a list cannot be distinguished.
  if (mergeKey === undefined) return patch;
  if (patch.some((item) => isMap(item) && item.$patch === "replace")) {
    return patch
      .filter((item) => !(isMap(item) && item.$patch === "replace"))
      .map((i) => withoutDirectives(asMap(i)));
  }
  return mergeItems(original, patch, mergeKey, itemType, work);
}

/** Stands where an item was that has been deleted. */
const gone = Symbol("gone");

function mergeItems(
  original: readonly unknown[],
  patch: readonly unknown[],
  mergeKey: string,
  itemType: TypeRef,
  work: Work,
): readonly unknown[] {
  const result = [...original];
  const places = new ByJson<number[]>();
  for (let at = original.length - 1; at >= 0; at--) {
    const item = original[at];
    // The first place of a key is the last of its list, from which it is taken.
    if (isMap(item)) places.getOr(item[mergeKey], () => []).push(at);
  }
  const added: unknown[] = [];
  for (const item of patch) {
    spendTime();
    if (!isMap(item)) throw badRequest(`a list merged by ${mergeKey} holds objects only`);
    const key = item[mergeKey];
    if (key === undefined) {
      throw badRequest(`map: ${toJson(item)} does not contain declared merge key: ${mergeKey}`);
    }
    const at = places.get(key)?.at(-1);
    if (item.$patch === "delete") {
      if (at !== undefined) result[at] = gone;
      places.get(key)?.pop();
    } else if (at === undefined) added.push(mergeMap({}, item, itemType, work));
    else {
      result[at] = mergeMap(asMap(result[at]), item, itemType, work);
      // A key of null takes the key away: nothing finds the item any longer.
      if (key === null) places.get(key)?.pop();
    }
  }
  // What is new stands first for now: the caller puts all in order.
  return [...added, ...result.filter((item) => item !== gone)];
}

/** Everything that the patch sets must have its place in the order. @throws KubeApiError 400 */
function checkOrder(
  patch: readonly unknown[],
  order: readonly unknown[],
  mergeKey: string | undefined,
): void {
  const keyOf = (item: unknown) => (mergeKey !== undefined && isMap(item) ? item[mergeKey] : item);
  const named = new ByJson<true>();
  spendTime(order.length + patch.length);
  for (const item of order) named.set(keyOf(item), true);
  for (const item of patch) {
    if (isMap(item) && item.$patch !== undefined) continue;
    if (!named.has(keyOf(item))) {
      throw badRequest("the order in the patch list does not match its $setElementOrder list");
    }
  }
}

function listOf(value: unknown, directive: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw badRequest(`${directive} must be a list`);
}

/** Keeps of the original only the members that the patch names. */
function retainKeys(result: Record<string, unknown>, patch: Json): void {
  const keys = new Set(asList(patch.$retainKeys));
  spendTime(keys.size);
  for (const key of Object.keys(patch)) {
    if (key.startsWith("$") || patch[key] === null || keys.has(key)) continue;
    throw badRequest("the $retainKeys list must name every member that the patch sets");
  }
  for (const key of Object.keys(result)) if (!keys.has(key)) delete result[key];
}

/**
 * Merges the order of the patch with the one there was: what `order` names stands in its order;
 * the rest keeps its place before what it stood before, and otherwise comes last
 * (strategicpatch normalizeElementOrder).
 */
function ordered(
  items: readonly unknown[],
  order: readonly unknown[],
  original: readonly unknown[],
  mergeKey: string | undefined,
): unknown[] {
  const keyOf = (item: unknown) => (mergeKey !== undefined && isMap(item) ? item[mergeKey] : item);
  const placeIn = (list: readonly unknown[]) => {
    const places = new ByJson<number>();
    for (const [place, item] of list.entries()) places.getOr(keyOf(item), () => place);
    return (item: unknown) => places.get(keyOf(item)) ?? -1;
  };
  spendTime(items.length + order.length + original.length);
  const inOrder = placeIn(order);
  const before = placeIn(original);
  const placed = items.map((item) => ({ item, inOrder: inOrder(item), before: before(item) }));
  const named = placed.filter((item) => item.inOrder >= 0).sort((a, b) => a.inOrder - b.inOrder);
  const others = placed.filter((item) => item.inOrder < 0).sort((a, b) => a.before - b.before);
  const result: unknown[] = [];
  let next = 0;
  for (const { item, before: place } of named) {
    for (; next < others.length; next++) {
      const other = others[next] as (typeof others)[number];
      if (other.before < 0 || place < 0 || other.before >= place) break;
      result.push(other.item);
    }
    result.push(item);
  }
  for (const { item } of others.slice(next)) result.push(item);
  return result;
}

function withoutItems(items: readonly unknown[], gone: readonly unknown[]): readonly unknown[] {
  if (gone.length === 0) return items;
  const named = new ByJson<true>();
  spendTime(items.length + gone.length);
  for (const item of gone) named.set(item, true);
  return items.filter((item) => !named.has(item));
}

function withoutDirectives(value: Json): Json {
  const { $patch: _p, $retainKeys: _r, ...rest } = value;
  return rest;
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function typeOfMember(type: TypeRef, key: string): TypeRef {
  if (type.form === "map") return type.of;
  if (type.form !== "struct") return { form: "any" };
  return structOf(type.name)?.get(key)?.type ?? { form: "any" };
}

function ruleOf(type: TypeRef, key: string) {
  return (type.form === "struct" ? mergeRules[`${type.name}.${key}`] : undefined) ?? {};
}
