/** How much room an object takes in the store: as much as etcd takes in one request, and no more. */
import type { KubeObject } from "@longshore/kube";
import { apiError } from "../api/errors.ts";
import { messageBytes } from "../schema/encode.ts";
import { hasMessage } from "../schema/messages.ts";
import type { Kind } from "./kind.ts";

/** Most bytes of a stored object (etcd `--max-request-bytes`). */
export const storedBytesMax = 1.5 * 1024 * 1024;

/** Most bytes that a character of a text takes in JSON: one that is escaped. */
const bytesPerCharacter = 6;

/**
 * Refuses an object that the reference could not store. It stores built-in kinds in protobuf and custom resources in
 * JSON. Almost every object is so short that its size need not be known.
 * @throws KubeApiError 500, as the reference
 */
export function checkStoredSize(of: Kind, object: KubeObject): void {
  if (jsonLength(object) * bytesPerCharacter <= storedBytesMax) return;
  const bytes = storedBytes(of, object);
  if (bytes <= storedBytesMax) return;
  const name = `${of.plural} ${JSON.stringify(object.metadata?.name)}`;
  const why = `${name} with its managed fields takes ${bytes} bytes, and at most ${storedBytesMax} can be stored`;
  throw apiError(500, "", `etcdserver: request is too large: ${why}`);
}

function storedBytes(of: Kind, object: KubeObject): number {
  const json = Buffer.byteLength(JSON.stringify(object));
  // Protobuf is not longer than JSON, which has the names of all members.
  if (json <= storedBytesMax || of.custom !== undefined || !hasMessage(of.group, of.kind)) return json;
  return messageBytes(of.group, of.kind, object).length;
}

/** The length of the value's JSON, about: what is escaped in texts counts once. */
function jsonLength(value: unknown): number {
  if (typeof value === "string") return value.length + 3;
  if (typeof value !== "object" || value === null) return 6;
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
