/** The protobuf messages of the API's types, ready to be walked: for reading and for writing them. */
import { wireTexts } from "./gen/wire.ts";
import { structNameOf, structOf } from "./schema.ts";

/** One field of a message. */
export interface MessageField {
  readonly number: number;
  /** Name of the member in JSON. */
  readonly name: string;
  /** A scalar, or the name of a message. */
  readonly type: string;
  readonly form: "one" | "list" | "map";
  /** The members of the message are members of its parent in JSON (an embedded struct of Go). */
  readonly inlined: boolean;
}

const messages = new Map<string, readonly MessageField[]>();

/** The fields of a message (`core.v1.Pod`) in the order of their numbers; none for an unknown message. */
export function messageFields(message: string): readonly MessageField[] {
  let fields = messages.get(message);
  if (fields === undefined) {
    fields = (wireTexts[message] ?? "")
      .split(" ")
      .filter(Boolean)
      .map((text) => parseField(message, text))
      .sort((a, b) => a.number - b.number);
    messages.set(message, fields);
  }
  return fields;
}

const scalars = new Map<string, ReadonlyMap<string, string>>();

/** The protobuf type of a struct's member (`int32`, `bytes`), which says more than JSON does; of a map that of its values. */
export function wireTypeOf(struct: string, member: string): string | undefined {
  let types = scalars.get(struct);
  if (types === undefined) {
    types = new Map(messageFields(struct).map(({ name, type }) => [name, type]));
    scalars.set(struct, types);
  }
  return types.get(member);
}

/** True when the kind has a form in protobuf: custom resources have none. */
export function hasMessage(group: string, kind: string): boolean {
  return Object.hasOwn(wireTexts, messageOfKind(group, kind));
}

/** The message of a kind's objects: that of v1 stands for those of other versions where they are alike. */
export function messageOfKind(group: string, kind: string, version = "v1"): string {
  return metaKinds.has(kind) && (group === "" || group === "meta.k8s.io")
    ? `meta.v1.${kind}`
    : structNameOf(group, kind, version);
}

/** Kinds of `meta.k8s.io`, some of which are spoken of as if of the core group. */
const metaKinds: ReadonlySet<string> = new Set([
  "Status",
  "DeleteOptions",
  "PartialObjectMetadata",
  "PartialObjectMetadataList",
]);

function parseField(message: string, text: string): MessageField {
  const [number = "0", name = "", type = ""] = text.split(":");
  const form = type.startsWith("[]") ? "list" : type.startsWith("{}") ? "map" : "one";
  const inner = form === "one" ? type : type.slice(2);
  const struct = structOf(message);
  const inlined =
    form === "one" && struct !== undefined && struct.size > 0 && !struct.has(name) && messageLike(inner);
  return { number: Number(number), name, form, type: inner, inlined };
}

function messageLike(type: string): boolean {
  return Object.hasOwn(wireTexts, type);
}
