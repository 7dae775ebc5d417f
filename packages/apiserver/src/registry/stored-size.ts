/** How much room an object takes in the store: as much as etcd takes in one request, and no more. */

import type { KubeObject } from "@longshore/kube";
import type { ApiRequest } from "../api/api-request.ts";
import { apiError } from "../api/errors.ts";
import { toJson } from "../api/json.ts";
import type { Kind } from "../api/kind.ts";
import { spendTime } from "../api/work-time.ts";
import { hasMessage } from "../schema/message-fields.ts";
import { messageBytes } from "../schema/object-to-protobuf.ts";

/** Most bytes of a stored object (etcd `--max-request-bytes`). */
const storedBytesMax = 1.5 * 1024 * 1024;

/** Most bytes that a character of a text takes in JSON: one that is escaped. */
const bytesPerCharacter = 6;

/**
 * The object as it can be stored: where it is too large with its managed fields, it is stored without them, but for an
 * apply, which is about them (apiserver endpoints/handlers: isTooLargeError). Almost every object is so short that its
 * size need not be known.
 * @throws KubeApiError 500, as the reference, for an object that is too large
 */
export function storable(
  { of, patchType }: Pick<ApiRequest, "patchType"> & { readonly of: Kind },
  object: KubeObject,
): KubeObject {
  const bytes = excessiveBytes(of, object);
  if (bytes === undefined) return object;
  if (patchType !== "apply" && object.metadata?.managedFields !== undefined) {
    const { managedFields: _, ...metadata } = object.metadata;
    const rest = { ...object, metadata };
    if (excessiveBytes(of, rest) === undefined) return rest;
  }
  const name = `${of.plural} ${JSON.stringify(object.metadata?.name)}`;
  const why = `${name} takes ${bytes} bytes, and at most ${storedBytesMax} can be stored`;
  throw apiError(500, "", `etcdserver: request is too large: ${why}`);
}

/** How many bytes the object takes where that is too many; undefined for all others. */
export function excessiveBytes(of: Kind, object: KubeObject): number | undefined {
  if (jsonLength(object) * bytesPerCharacter <= storedBytesMax) return undefined;
  const bytes = storedBytes(of, object);
  return bytes > storedBytesMax ? bytes : undefined;
}

/** How many bytes the reference stores: of built-in kinds in protobuf, of custom resources in JSON. */
function storedBytes(of: Kind, object: KubeObject): number {
  const json = Buffer.byteLength(toJson(object));
  // Protobuf is not longer than JSON, which has the names of all members.
  if (json <= storedBytesMax || of.custom !== undefined || !hasMessage(of.group, of.kind)) return json;
  return messageBytes(of.group, of.kind, object).length;
}

/** The length of the value's JSON, about: what is escaped in texts counts once. */
function jsonLength(value: unknown): number {
  if (typeof value === "string") return value.length + 3;
  if (typeof value !== "object" || value === null) return 6;
  spendTime();
  let length = 2;
  if (Array.isArray(value)) {
    for (const item of value) length += jsonLength(item);
    return length;
  }
  for (const name in value) {
    length += name.length + 4 + jsonLength((value as Readonly<Record<string, unknown>>)[name]);
  }
  return length;
}
