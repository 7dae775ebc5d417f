/**
 * JSON patch (RFC 6902) as the API has it (evanphx/json-patch 4.9, apiserver endpoints/handlers/patch.go):
 * replacing a missing member adds it, and a missing member passes a test for null.
 */
import { apiError, badRequest } from "../api/errors.ts";
import { sameJson } from "../api/own.ts";

/** Most operations of one patch (apiserver handlers: maxJSONPatchOperations). */
const operationsMax = 10_000;

interface Operation {
  readonly op?: unknown;
  readonly path?: unknown;
  readonly from?: unknown;
  readonly value?: unknown;
}

type Container = Readonly<Record<string, unknown>> | readonly unknown[];

/** Why one operation cannot be applied. */
class Inapplicable extends Error {
  override readonly name = "Inapplicable";
}

/**
 * The patched copy of `target`; parts that the patch does not name are shared with it.
 * @throws KubeApiError 400 for what is no patch, 413 for too many operations, 422 for one that cannot be applied
 */
export function applyJsonPatch(target: unknown, patch: unknown): unknown {
  if (patch === null) return target;
  if (!Array.isArray(patch)) throw badRequest("error decoding patch: a JSON patch is a list of operations");
  if (patch.length > operationsMax) {
    const message = `The allowed maximum operations in a JSON patch is ${operationsMax}, got ${patch.length}`;
    throw apiError(413, "RequestEntityTooLarge", message);
  }
  return patch.reduce((result: unknown, operation: unknown, index) => {
    if (typeof operation !== "object" || operation === null || Array.isArray(operation)) {
      throw badRequest(`error decoding patch: operation ${index} is not an object`);
    }
    try {
      return applyOperation(result, operation);
    } catch (error) {
      if (!(error instanceof Inapplicable)) throw error;
      const { op, path } = operation as Operation;
      const what = `operation ${index} of the JSON patch (${JSON.stringify(op)} ${JSON.stringify(path)})`;
      throw apiError(422, "Invalid", `${what} cannot be applied: ${error.message}`, {});
    }
  }, target);
}

function applyOperation(target: unknown, operation: Operation): unknown {
  const path = pointer(operation.path, "path");
  const value = operation.value ?? null;
  switch (operation.op) {
    case "add":
      return edit(target, path, adding(value));
    case "remove":
      return edit(target, path, removing);
    case "replace":
      return edit(target, path, replacing(value));
    case "move": {
      const from = pointer(operation.from, "from");
      return edit(edit(target, from, removing), path, adding(present(target, from)));
    }
    case "copy":
      // A member that is not there is copied as null, which the API takes for nothing.
      return edit(target, path, adding(find(target, pointer(operation.from, "from")) ?? null));
    case "test":
      if (sameJson(find(target, path) ?? null, value)) return target;
      throw new Inapplicable("the value there is another one");
    default:
      throw new Inapplicable("there is no such operation: use add, remove, replace, move, copy or test");
  }
}

/** The names that a JSON pointer (RFC 6901) leads through; at least one. */
function pointer(text: unknown, member: string): readonly string[] {
  if (typeof text !== "string" || !text.startsWith("/")) {
    throw new Inapplicable(`its ${member} must begin with a slash`);
  }
  return text
    .slice(1)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

type Edit = (container: Container, key: string) => Container;

/** A copy of `target` in which the container at the end of the path is edited. */
function edit(target: unknown, [key = "", ...rest]: readonly string[], change: Edit): Container {
  const container = containerOf(target);
  if (rest.length === 0) return change(container, key);
  const inner = edit(member(container, key), rest, change);
  if (Array.isArray(container)) return container.with(indexOf(key, container.length - 1), inner);
  return { ...container, [key]: inner };
}

const adding =
  (value: unknown): Edit =>
  (container, key) => {
    if (!Array.isArray(container)) return { ...container, [key]: value };
    return container.toSpliced(key === "-" ? container.length : indexOf(key, container.length), 0, value);
  };

const removing: Edit = (container, key) => {
  if (Array.isArray(container)) return container.toSpliced(indexOf(key, container.length - 1), 1);
  if (!Object.hasOwn(container, key)) throw new Inapplicable("there is no such member");
  const { [key]: _, ...rest } = container as Readonly<Record<string, unknown>>;
  return rest;
};

const replacing =
  (value: unknown): Edit =>
  (container, key) => {
    if (Array.isArray(container)) return container.with(indexOf(key, container.length - 1), value);
    return { ...container, [key]: value };
  };

/** The value at the path, undefined when its last member is not there. */
function find(target: unknown, path: readonly string[]): unknown {
  return path.reduce((value, key) => member(containerOf(value), key), target);
}

function present(target: unknown, path: readonly string[]): unknown {
  const value = find(target, path);
  if (value === undefined) throw new Inapplicable("there is nothing at its from");
  return value;
}

function member(container: Container, key: string): unknown {
  if (Array.isArray(container)) return container[indexOf(key, container.length - 1)];
  return Object.hasOwn(container, key) ? (container as Readonly<Record<string, unknown>>)[key] : undefined;
}

function containerOf(value: unknown): Container {
  if (typeof value !== "object" || value === null) throw new Inapplicable("its path leads nowhere");
  return value as Container;
}

function indexOf(key: string, last: number): number {
  const index = /^-?\d{1,9}$/.test(key) ? Number(key) : Number.NaN;
  // A negative index counts from the end, which RFC 6901 does not know but the API does.
  const at = index < 0 ? last + 1 + index : index;
  if (!(at >= 0 && at <= last)) throw new Inapplicable(`the list has no place ${key}`);
  return at;
}
