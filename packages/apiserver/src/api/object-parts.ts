/**
 * The JSON of stored objects, made once. Stored objects never change, so every reader gets the same bytes,
 * and lists and events are built from them. Kind and version are not part of the bytes: a list omits
 * them, and another API version has another value.
 */

import type { KubeObject } from "@longshore/kube";
import { toJson } from "./json.ts";

const bodies = new WeakMap<object, Buffer>();

/** The object in JSON without its kind and apiVersion, as lists have it. */
export function bodyBytes(object: KubeObject): Buffer {
  let bytes = bodies.get(object);
  if (bytes === undefined) {
    const { kind: _k, apiVersion: _a, ...rest } = object;
    bytes = Buffer.from(toJson(rest));
    // What is not frozen may still change.
    if (Object.isFrozen(object)) bodies.set(object, bytes);
  }
  return bytes;
}

const heads = new Map<string, Buffer>();

/** How many heads are kept; there are as many as kinds and versions. */
const headsMax = 1000;

/** What makes a body whole: it takes the place of the body's first byte. */
export function headBytes(kind: string, apiVersion: string): Buffer {
  const key = `${kind}\n${apiVersion}`;
  let head = heads.get(key);
  if (head === undefined) {
    head = Buffer.from(`${JSON.stringify({ kind, apiVersion }).slice(0, -1)},`);
    if (heads.size < headsMax) heads.set(key, head);
  }
  return head;
}

/** The pieces of a whole object in that version. */
export function objectParts(object: KubeObject, apiVersion: string): readonly Buffer[] {
  const body = bodyBytes(object);
  // An object of nothing but its kind has no body that a comma could stand before.
  if (body.length <= 2) return [Buffer.from(JSON.stringify({ kind: object.kind, apiVersion }))];
  return [headBytes(object.kind ?? "", apiVersion), body.subarray(1)];
}
