/**
 * The types of the library of expressions, of which it keeps each that it meets for ever. It is of one exact version,
 * as this reaches into it.
 */

/** The evaluator of the library, as far as it is of interest here. */
interface Evaluator {
  debugType(value: unknown): unknown;
  debugTypeDeep(value: unknown): unknown;
  readonly registry: Registry;
}

interface Type {
  readonly kind: string;
}

/** The types that the library knows. */
interface Registry {
  getType(name: string): Type;
  getListType(of: Type): Type;
  getMapType(key: Type, of: Type): Type;
  getOptionalType(of: Type): Type;
}

/**
 * Limits the types that the library derives to a depth of `list<int>`, for values and for checked expressions.
 * The library caches each type forever, and nesting has no limit.
 */
export function flattenTypes(evaluator: unknown): void {
  const { debugType, debugTypeDeep, registry } = evaluator as Partial<Evaluator>;
  const { getListType, getMapType, getOptionalType } = registry ?? {};
  const parts = [debugType, debugTypeDeep, getListType, getMapType, getOptionalType, registry?.getType];
  if (registry === undefined || parts.some((part) => typeof part !== "function")) {
    throw new Error("the library of expressions is of another version than the one that can be metered");
  }
  const one = evaluator as Evaluator;
  one.debugTypeDeep = (value) => one.debugType(value);
  const any = registry.getType("dyn");
  const flat = (type: Type) => (nestingKinds.has(type.kind) ? any : type);
  registry.getListType = (of) => getListType?.call(registry, flat(of)) as Type;
  registry.getMapType = (key, of) => getMapType?.call(registry, flat(key), flat(of)) as Type;
  registry.getOptionalType = (of) => getOptionalType?.call(registry, flat(of)) as Type;
}

const nestingKinds: ReadonlySet<string> = new Set(["list", "map", "optional"]);
