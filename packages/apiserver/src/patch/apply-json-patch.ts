/**
 * JSON patch (RFC 6902) as the API has it (evanphx/json-patch 4.9, apiserver endpoints/handlers/patch.go):
 * replacing a missing member adds it, and a missing member passes a test for null.
 *
 * A patch costs time in proportion to the document and to itself, not to the one times the other: see
 * working-container.ts. What it copies is bounded in sum.
 */

import { apiError, badRequest } from "../api/errors.ts";
import { toJson } from "../api/json.ts";
import { spendTime } from "../api/work-time.ts";
import {
  type Container,
  isOpen,
  MemberCounts,
  memberOf,
  opened,
  plain,
  sameValue,
  type WorkingContainer,
} from "./working-container.ts";
import { WorkingList } from "./working-list.ts";

/** Most operations of one patch (apiserver handlers: maxJSONPatchOperations). */
const operationsMax = 10_000;

/** Most bytes of JSON that the copy operations of one patch make (apiserver server: JSONPatchMaxCopyBytes). */
const copiedBytesMax = 3 * 1024 * 1024;

interface Operation {
  readonly op?: unknown;
  readonly path?: unknown;
  readonly from?: unknown;
  readonly value?: unknown;
}

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
    const message = `Request entity too large: The allowed maximum operations in a JSON patch is ${operationsMax}, got ${patch.length}`;
    throw apiError(413, "RequestEntityTooLarge", message);
  }
  for (const [index, operation] of patch.entries()) {
    if (typeof operation !== "object" || operation === null || Array.isArray(operation)) {
      throw badRequest(`error decoding patch: operation ${index} is not an object`);
    }
  }
  const document = new Document(target);
  for (const [index, operation] of patch.entries()) {
    try {
      spendTime();
      document.apply(operation);
    } catch (error) {
      if (!(error instanceof Inapplicable)) throw error;
      const { op, path } = operation as Operation;
      const what = `operation ${index} of the JSON patch (${JSON.stringify(op)} ${JSON.stringify(path)})`;
      throw apiError(422, "Invalid", `${what} cannot be applied: ${error.message}`, {});
    }
  }
  return document.result();
}

/** The names that a JSON pointer (RFC 6901) leads through; at least one. */
function pointer(text: unknown, member: string): readonly string[] {
  if (typeof text !== "string" || !text.startsWith("/")) {
    throw new Inapplicable(`its ${member} must begin with a slash`);
  }
  // In this order: `~01` stands for `~1`, and not for a slash (RFC 6901, section 4).
  return text
    .slice(1)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** The document while operations change it. */
class Document {
  #root: unknown;
  readonly #counts = new MemberCounts();
  #copiedBytes = 0;

  constructor(target: unknown) {
    this.#root = target;
  }

  /** @throws KubeApiError 422 */
  result(): unknown {
    try {
      return plain(this.#root);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw apiError(422, "Invalid", `the result of the JSON patch is too large: ${error.message}`, {});
    }
  }

  apply(operation: Operation): void {
    const path = pointer(operation.path, "path");
    const value = operation.value ?? null;
    switch (operation.op) {
      case "add":
        this.#add(path, value);
        break;
      case "remove":
        this.#remove(path);
        break;
      case "replace":
        this.#replace(path, value);
        break;
      case "move": {
        const from = pointer(operation.from, "from");
        const moved = this.#find(from);
        this.#remove(from);
        if (moved === undefined) throw new Inapplicable("there is nothing at its from");
        this.#add(path, moved);
        break;
      }
      case "copy":
        // A member that is not there is copied as null, which the API takes for nothing.
        this.#add(path, this.#copyOf(this.#find(pointer(operation.from, "from")) ?? null));
        break;
      case "test":
        if (sameValue(this.#find(path) ?? null, value, this.#counts)) break;
        throw new Inapplicable("the value there is another one");
      default:
        throw new Inapplicable("there is no such operation: use add, remove, replace, move, copy or test");
    }
  }

  /** A value for a second place: what is open in the first is not open in it. */
  #copyOf(value: unknown): unknown {
    const copy = shallowEnough(value);
    if (copy === null) return copy;
    this.#copiedBytes += Buffer.byteLength(toJson(copy));
    if (this.#copiedBytes <= copiedBytesMax) return copy;
    throw new Inapplicable(
      `Unable to complete the copy, the accumulated size increase of copy is ${this.#copiedBytes}, exceeding the limit ${copiedBytesMax}`,
    );
  }

  #add(path: readonly string[], value: unknown): void {
    const { container, key } = this.#open(path);
    if (container instanceof Map) container.set(key, value);
    else container.insert(key === "-" ? container.length : indexOf(key, container.length), value);
  }

  #remove(path: readonly string[]): void {
    const { container, key } = this.#open(path);
    if (container instanceof WorkingList) container.remove(indexOf(key, container.length - 1));
    else if (!container.delete(key)) throw new Inapplicable("there is no such member");
  }

  #replace(path: readonly string[], value: unknown): void {
    const { container, key } = this.#open(path);
    put(container, key, value);
  }

  /** Opens the containers on the path. Returns the last one, and the key in it. */
  #open(path: readonly string[]): { readonly container: WorkingContainer; readonly key: string } {
    let container = opened(containerOf(this.#root));
    this.#root = container;
    for (const key of path.slice(0, -1)) {
      const inner = containerOf(member(container, key));
      if (isOpen(inner)) container = inner;
      else {
        const open = opened(inner);
        put(container, key, open);
        container = open;
      }
    }
    return { container, key: path.at(-1) ?? "" };
  }

  /** The value at the path, undefined when its last member is not there. */
  #find(path: readonly string[]): unknown {
    return path.reduce((value, key) => member(containerOf(value), key), this.#root);
  }
}

/** The value as plain JSON. */
function shallowEnough(value: unknown): unknown {
  try {
    return plain(value);
  } catch (error) {
    if (error instanceof RangeError) throw new Inapplicable(error.message);
    throw error;
  }
}

function put(container: WorkingContainer, key: string, value: unknown): void {
  if (container instanceof Map) container.set(key, value);
  else container.set(indexOf(key, container.length - 1), value);
}

function member(container: Container, key: string): unknown {
  if (container instanceof WorkingList || Array.isArray(container)) {
    return container.at(indexOf(key, container.length - 1));
  }
  return memberOf(container as Readonly<Record<string, unknown>>, key).value;
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
