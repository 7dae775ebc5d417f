/**
 * Strategic merge patch: a merge patch that knows, from the schema, which lists are sets and which
 * are merged by a key, with the directives `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/…`
 * and `$setElementOrder/…` (apimachinery util/strategicpatch; design proposal "strategic merge patch").
 */
import { badRequest } from "../api/errors.ts";
import { sameJson } from "../api/own.ts";
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
  return mergeMap(asMap(target), patch, { form: "struct", name: structNameOf(of.group, of.kind) });
}

function isMap(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function asMap(value: unknown): Json {
  return isMap(value) ? value : {};
}

function mergeMap(original: Json, patch: Json, type: TypeRef): Json {
  const directive = patch.$patch;
  if (directive === "replace") return withoutDirectives(patch);
  if (directive === "delete") return {};
  if (directive !== undefined && directive !== "merge") {
    const shown = typeof directive === "string" ? directive : JSON.stringify(directive);
    throw badRequest(`unknown patch type: ${shown}: use replace, merge or delete`);
  }
  const result: Record<string, unknown> = { ...original };
  if (patch.$retainKeys !== undefined) retainKeys(result, patch);
  for (const [key, value] of Object.entries(patch)) {
    if (key === "$patch" || key === "$retainKeys") continue;
    if (key.startsWith(deletePrefix)) {
      const field = key.slice(deletePrefix.length);
      const gone = listOf(value, key);
      if (!Object.hasOwn(patch, field)) result[field] = withoutItems(asList(result[field]), gone);
      continue;
    }
    if (key.startsWith(orderPrefix)) {
      const field = key.slice(orderPrefix.length);
      if (Object.hasOwn(patch, field) || result[field] === undefined) continue;
      const items = asList(result[field]);
      result[field] = ordered(items, listOf(value, key), items, ruleOf(type, field).mergeKey);
      continue;
    }
    const merged = mergeMember(result[key], value, key, patch, type);
    if (merged === undefined) delete result[key];
    else result[key] = merged;
  }
  return result;
}

function mergeMember(before: unknown, value: unknown, key: string, patch: Json, type: TypeRef): unknown {
  if (value === null) return undefined;
  const memberType = typeOfMember(type, key);
  if (Array.isArray(value)) {
    const rule = ruleOf(type, key);
    if (!(rule.strategy ?? "").split(",").includes("merge")) return value;
    const gone = asList(patch[`${deletePrefix}${key}`]);
    const order = patch[`${orderPrefix}${key}`];
    const itemType: TypeRef = memberType.form === "list" ? memberType.of : { form: "any" };
    if (order !== undefined) checkOrder(value, listOf(order, `${orderPrefix}${key}`), rule.mergeKey);
    const merged = mergeList(withoutItems(asList(before), gone), value, rule.mergeKey, itemType);
    return ordered(merged, order === undefined ? value : asList(order), asList(before), rule.mergeKey);
  }
  if (!isMap(value)) return value;
  // What is deleted whole leaves no empty object behind.
  if (value.$patch === "delete") return undefined;
  return mergeMap(asMap(before), value, memberType);
}

function mergeList(
  original: readonly unknown[],
  patch: readonly unknown[],
  mergeKey: string | undefined,
  itemType: TypeRef,
): readonly unknown[] {
  if (patch.every((item) => !isMap(item))) {
    const added = patch.filter((item, i) => !original.includes(item) && patch.indexOf(item) === i);
    return [...original, ...added];
  }
  if (mergeKey === undefined) return patch;
  if (patch.some((item) => isMap(item) && item.$patch === "replace")) {
    return patch
      .filter((item) => !(isMap(item) && item.$patch === "replace"))
      .map((i) => withoutDirectives(asMap(i)));
  }
  const result = [...original];
  const added: unknown[] = [];
  for (const item of patch) {
    if (!isMap(item)) throw badRequest(`a list merged by ${mergeKey} holds objects only`);
    const key = item[mergeKey];
    if (key === undefined) {
      throw badRequest(`map: ${JSON.stringify(item)} does not contain declared merge key: ${mergeKey}`);
    }
    const at = result.findIndex((other) => isMap(other) && sameJson(other[mergeKey], key));
    if (item.$patch === "delete") {
      if (at >= 0) result.splice(at, 1);
    } else if (at >= 0) {
      result[at] = mergeMap(asMap(result[at]), item, itemType);
    } else {
      added.push(mergeMap({}, item, itemType));
    }
  }
  return [...added, ...result];
}

/** Everything that the patch sets must have its place in the order. @throws KubeApiError 400 */
function checkOrder(
  patch: readonly unknown[],
  order: readonly unknown[],
  mergeKey: string | undefined,
): void {
  const keyOf = (item: unknown) => (mergeKey !== undefined && isMap(item) ? item[mergeKey] : item);
  const named = order.map(keyOf);
  for (const item of patch) {
    if (isMap(item) && item.$patch !== undefined) continue;
    if (!named.some((key) => sameJson(key, keyOf(item)))) {
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
  const keys = asList(patch.$retainKeys);
  for (const key of Object.keys(patch)) {
    if (key.startsWith("$") || patch[key] === null || keys.includes(key)) continue;
    throw badRequest("the $retainKeys list must name every member that the patch sets");
  }
  for (const key of Object.keys(result)) if (!keys.includes(key)) delete result[key];
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
    const keys = list.map(keyOf);
    return (item: unknown) => keys.findIndex((key) => sameJson(key, keyOf(item)));
  };
  const inOrder = placeIn(order);
  const before = placeIn(original);
  const named = items.filter((item) => inOrder(item) >= 0).sort((a, b) => inOrder(a) - inOrder(b));
  const others = items.filter((item) => inOrder(item) < 0).sort((a, b) => before(a) - before(b));
  const result: unknown[] = [];
  while (named.length > 0 && others.length > 0) {
    const [other, item] = [before(others[0]), before(named[0])];
    result.push(other >= 0 && item >= 0 && other < item ? others.shift() : named.shift());
  }
  return [...result, ...others, ...named];
}

function withoutItems(items: readonly unknown[], gone: readonly unknown[]): readonly unknown[] {
  return gone.length === 0 ? items : items.filter((item) => !gone.some((g) => sameJson(g, item)));
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
