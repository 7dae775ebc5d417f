/** Reads the events of a watch out of the bytes of its answer. */
import { KubeTransportError, type WatchEvent, type WatchEvents } from "../kube-client.ts";
import type { KubeObject, Stored } from "../kube-objects.ts";
import type { Resource } from "../resources.ts";
import { completed, type FreshForm } from "./parsing/fresh-object.ts";
import { type Line, LineSplitter } from "./parsing/line-splitter.ts";
import { parseWithoutManagedFields } from "./parsing/managed-fields-text.ts";
import { watchErrorOf } from "./status.ts";

interface RawEvent<T extends KubeObject> {
  readonly type: string;
  readonly object: Stored<T>;
}

/**
 * The events, until the stream ends.
 * @throws KubeApiError for an error inside the stream
 * @throws KubeTransportError when the stream is cut off inside an event, or carries something else
 */
export function readWatchEvents<T extends KubeObject>(
  body: AsyncIterable<Uint8Array>,
  resource: Resource<T>,
  form: FreshForm,
): WatchEvents<T> {
  const splitter = new LineSplitter();
  const chunks = body[Symbol.asyncIterator]();
  let lines: readonly Line[] = [];
  let taken = 0;
  const ready = (): WatchEvent<T> | undefined => {
    const line = lines[taken++];
    return line === undefined
      ? undefined
      : toEvent(parse<T>(line, resource, form.dropManagedFields), resource, form);
  };
  // Not a generator: what a chunk holds is given without waiting for anything, at a fraction of the cost.
  return {
    ready,
    async next() {
      while (taken >= lines.length) {
        const chunk = await chunks.next();
        if (chunk.done !== true) {
          lines = splitter.push(chunk.value);
          taken = 0;
        } else if (splitter.isInsideLine) {
          throw new KubeTransportError(`the watch of ${resource.plural} was cut off inside an event`);
        } else return { done: true, value: undefined };
      }
      return { done: false, value: ready() as WatchEvent<T> };
    },
    async return() {
      await chunks.return?.();
      return { done: true, value: undefined };
    },
  };
}

function parse<T extends KubeObject>(
  { bytes, start, end }: Line,
  resource: Resource<T>,
  dropManagedFields: boolean,
): RawEvent<T> {
  try {
    if (!dropManagedFields) return JSON.parse(bytes.toString("utf8", start, end)) as RawEvent<T>;
    const frame = frames.find(({ opening }) => isAt(bytes, start, opening));
    if (frame !== undefined) {
      try {
        const from = start + frame.opening.length;
        const object = parseWithoutManagedFields<Stored<T>>(bytes, from, end - 1, itself);
        if (bytes[end - 1] === CLOSING_BRACE) return { type: frame.type, object };
      } catch {
        // There is more to the event than a server writes.
      }
    }
    return parseWithoutManagedFields<RawEvent<T>>(bytes, start, end, objectOf);
  } catch (error) {
    throw new KubeTransportError(`the watch of ${resource.plural} carries a line that is not JSON`, {
      cause: error,
    });
  }
}

const objectOf = (event: RawEvent<KubeObject>) => event.object;
const itself = (object: KubeObject) => object;

const CLOSING_BRACE = 0x7d;

/**
 * The text before the object of an event. If the text between it and the last brace is valid JSON, that is the object,
 * and the rest of the event needs no parsing.
 */
const frames = ["MODIFIED", "ADDED", "DELETED"].map((type) => ({
  type,
  opening: Buffer.from(`{"type":"${type}","object":`),
}));

function isAt(bytes: Buffer, start: number, expected: Buffer): boolean {
  for (let i = 0; i < expected.length; i++) if (bytes[start + i] !== expected[i]) return false;
  return true;
}

function toEvent<T extends KubeObject>(
  event: RawEvent<T>,
  resource: Resource<T>,
  form: FreshForm,
): WatchEvent<T> {
  switch (event.type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      return { type: event.type, object: completed(event.object, form) };
    case "BOOKMARK":
      return bookmark(event.object.metadata);
    case "ERROR":
      throw watchErrorOf(event.object);
    default:
      throw new KubeTransportError(`the watch of ${resource.plural} carries an event "${event.type}"`);
  }
}

/** On a bookmark: all objects that existed when the watch began are delivered (meta/v1 InitialEventsAnnotationKey). */
const initialEventsEndAnnotation = "k8s.io/initial-events-end";

function bookmark({ resourceVersion, annotations }: Stored["metadata"]): WatchEvent<never> {
  const ends = annotations?.[initialEventsEndAnnotation] === "true";
  return { type: "BOOKMARK", resourceVersion, ...(ends ? { initialEventsEnd: true } : {}) };
}
