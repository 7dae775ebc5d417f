/** Which form of an answer the client requested. */
import { apiError } from "../api/errors.ts";
import { protobufType } from "../schema/object-to-protobuf.ts";

/** The form of an answer. */
export interface AnswerForm {
  readonly encoding: "json" | "yaml" | "protobuf";
  /** What objects are turned into: a table, or their metadata alone. */
  readonly as?: "Table" | "PartialObjectMetadata" | "PartialObjectMetadataList";
  /** `v1` or `v1beta1` of meta.k8s.io, for `as`. */
  readonly version: string;
}

const transformed: ReadonlySet<string> = new Set([
  "Table",
  "PartialObjectMetadata",
  "PartialObjectMetadataList",
]);

/** What the answer to a request could be. */
export interface Offered {
  /** The kind has a form in protobuf; custom resources have none. */
  readonly protobuf: boolean;
  /** The answer is a stream of events, for which YAML has no form. */
  readonly stream?: boolean;
}

const anything: Offered = { protobuf: true };

/** The first form of `accept` that we support. @throws KubeApiError 406 when there is none */
export function negotiate(accept: string | undefined, offered = anything): AnswerForm {
  if (accept === undefined || accept.trim() === "") return { encoding: "json", version: "v1" };
  const wanted = accept.split(",").map(parseOffer);
  // A stable sort: among equals the order of the client counts.
  wanted.sort((a, b) => b.quality - a.quality);
  for (const { type, quality, parameters } of wanted) {
    const encoding = encodingOf(type, offered);
    if (encoding === undefined || quality === 0) continue;
    const { as, g, v = "v1" } = parameters;
    if (as === undefined) return { encoding, version: "v1" };
    if (g !== "meta.k8s.io" || !transformed.has(as) || (v !== "v1" && v !== "v1beta1")) continue;
    // Tables hold values of any type, for which there is no message.
    if (encoding === "protobuf" && as === "Table") continue;
    return { encoding, as: as as NonNullable<AnswerForm["as"]>, version: v };
  }
  throw apiError(406, "NotAcceptable", "406: Not Acceptable", {});
}

function encodingOf(type: string, offered: Offered): AnswerForm["encoding"] | undefined {
  if (type === "application/json" || type === "*/*" || type === "application/*") return "json";
  if (type === "application/yaml") return offered.stream === true ? undefined : "yaml";
  return type === protobufType && offered.protobuf ? "protobuf" : undefined;
}

function parseOffer(text: string): {
  readonly type: string;
  readonly quality: number;
  readonly parameters: Readonly<Record<string, string>>;
} {
  const [type = "", ...rest] = text.split(";").map((part) => part.trim());
  const parameters = Object.fromEntries(rest.map((part) => part.split("=", 2) as [string, string]));
  const quality = Number(parameters.q ?? 1);
  return { type: type.toLowerCase(), quality: Number.isNaN(quality) ? 0 : quality, parameters };
}
