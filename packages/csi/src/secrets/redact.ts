/**
 * Messages for logs: what the protocol marks as secret (`csi_secret`, docs/behaviour/csi-spec-notes.md 2) is replaced, at any
 * depth, found by reflection over the descriptors. `mount_flags` may be sensitive too, though unmarked, and tokens in
 * `volume_context` are.
 */
import {
  type DescField,
  type DescMessage,
  type JsonValue,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import { strippedSecret } from "./mask-secrets.ts";
import { isSecretField, tokensAttribute } from "./request-secrets.ts";

/** The JSON form of a message with its secrets replaced by {@link strippedSecret}. */
export function redact<S extends DescMessage>(schema: S, message: MessageShape<S>): JsonValue {
  return redactJson(schema, toJson(schema, message));
}

function redactJson(schema: DescMessage, json: JsonValue): JsonValue {
  // Well-known types have a JSON form of their own and hold no secrets.
  if (json === null || typeof json !== "object" || Array.isArray(json)) return json;
  if (schema.typeName.startsWith("google.protobuf.")) return json;
  const clean: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(json)) {
    const field = schema.fields.find((f) => f.jsonName === name);
    // What the schema does not describe may be a secret.
    clean[name] = field === undefined ? strippedSecret : redactField(field, value);
  }
  return clean;
}

function redactField(field: DescField, value: JsonValue): JsonValue {
  if (isSecretField(field)) return strippedSecret;
  if (field.name === "mount_flags") return strippedSecret;
  if (field.name === "volume_context") return redactTokens(value);
  const nested = field.message;
  if (nested === undefined) return value;
  if (Array.isArray(value)) return value.map((item) => redactJson(nested, item));
  if (field.fieldKind === "map" && value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redactJson(nested, item)]));
  }
  return redactJson(nested, value);
}

function redactTokens(context: JsonValue): JsonValue {
  if (context === null || typeof context !== "object" || !(tokensAttribute in context)) return context;
  return { ...context, [tokensAttribute]: strippedSecret };
}
