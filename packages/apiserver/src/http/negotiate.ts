/** Which form of an answer the client asked for. */
import { apiError } from "../api/errors.ts";

/** The form of an answer. */
export interface AnswerForm {
  readonly encoding: "json" | "yaml";
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

/** The first form of `accept` that we can give. @throws KubeApiError 406 when there is none */
export function negotiate(accept: string | undefined): AnswerForm {
  if (accept === undefined || accept.trim() === "") return { encoding: "json", version: "v1" };
  const offers = accept.split(",").map(parseOffer);
  offers.sort((a, b) => b.quality - a.quality);
  for (const { type, parameters } of offers) {
    const encoding = encodingOf(type);
    if (encoding === undefined) continue;
    const { as, g, v = "v1" } = parameters;
    if (as === undefined) return { encoding, version: "v1" };
    if (g !== "meta.k8s.io" || !transformed.has(as) || (v !== "v1" && v !== "v1beta1")) continue;
    return { encoding, as: as as NonNullable<AnswerForm["as"]>, version: v };
  }
  throw apiError(406, "NotAcceptable", "406: Not Acceptable", {});
}

function encodingOf(type: string): "json" | "yaml" | undefined {
  if (type === "application/json" || type === "*/*" || type === "application/*") return "json";
  return type === "application/yaml" ? "yaml" : undefined;
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
