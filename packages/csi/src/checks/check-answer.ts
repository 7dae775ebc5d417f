/**
 * What a caller may rely on in every answer: nothing is larger than it can keep, texts for people are fit to be shown, and what
 * is used as it is (ids, contexts, topology) holds no credential of the request. The sizes of the specification (128 bytes,
 * 4 KiB: spec.md, "Size Limits") are what `driver check` asks for; well-known drivers exceed them, so more is taken here.
 */
import type { DescField, DescMessage, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { hasUnfitCharacters } from "@longshore/runtime";
import {
  formsOfSecret,
  holdsSecret,
  maskSecrets,
  type SecretForms,
  strippedSecret,
} from "../secrets/mask-secrets.ts";
import { redact } from "../secrets/redact.ts";
import { fieldValue, isText, type RequestSecret } from "../secrets/request-secrets.ts";

/** Maximum characters of a string in an answer; texts for people are truncated instead. */
const stringMax = 4096;
/** Characters that keys and values of a map may have together. */
const mapMax = 65_536;
/** A shorter value may be in an id by chance. */
const refusedLength = 8;

/** Texts for people: of conditions, of a validation, the version of the driver. */
const texts: ReadonlySet<string> = new Set(["message", "vendor_version"]);
/** Strings that only the driver reads. */
const opaque: ReadonlySet<string> = new Set(["next_token"]);

/** An answer that cannot be used. Names the field and never its value. */
export class AnswerError extends Error {
  override readonly name = "AnswerError";
}

/** Looks at the parts of an answer. */
interface Inspector {
  /** What stands in the place of a text for people. */
  text(text: string): string;
  /** A string, or all of a map, that is used as it is. */
  value(value: string, at: string): void;
}

type Message = Record<string, unknown>;
type Step = (message: Message, at: string, to: Inspector) => void;

/**
 * Checks an answer and cleans its texts in place.
 * @param clean cleans a text for people
 * @param isRefused whether to refuse a string that is used unchanged
 * @throws AnswerError when it cannot be used
 */
export function checkAnswer(
  schema: DescMessage,
  answer: MessageShape<DescMessage>,
  clean: (text: string) => string,
  isRefused: (value: string) => boolean,
): void {
  stepOf(schema)?.(answer as Message & MessageShape<DescMessage>, "", {
    text: clean,
    value(value, at) {
      if (!isRefused(value)) return;
      throw new AnswerError(`${at} holds a secret of the request: it would be stored unencrypted`);
    },
  });
}

/**
 * Returns a function that finds a credential of the request in a string. The credential must be long enough to exclude
 * a match by chance, and must not also stand outside the secrets of the request. The search forms are computed at the
 * first string: most answers to calls with secrets have none.
 */
export function credentialFinder(
  schema: DescMessage,
  request: MessageShape<DescMessage>,
  secrets: readonly RequestSecret[],
): (value: string) => boolean {
  let forms: readonly SecretForms[] | undefined;
  return (value) => {
    forms ??= secrets
      .filter(({ isCredential, isOpen }) => isCredential && isOpen !== true)
      .map((secret) => formsOfSecret(secret.value, refusedLength));
    if (!holdsSecret(value, forms)) return false;
    const open = JSON.stringify(redact(schema, request));
    return forms.some((each) => holdsSecret(value, [each]) && !holdsSecret(open, [each]));
  };
}

/** Names of the fields, used as they are, that hold one of the values, credential or not. */
export function fieldsWithSecrets(
  schema: DescMessage,
  answer: MessageShape<DescMessage>,
  secrets: readonly RequestSecret[],
): readonly string[] {
  let forms: readonly SecretForms[] | undefined;
  const found = new Set<string>();
  stepOf(schema)?.(answer as Message & MessageShape<DescMessage>, "", {
    text: (text) => text,
    value(value, at) {
      forms ??= secrets.map((secret) => formsOfSecret(secret.value, refusedLength));
      if (holdsSecret(value, forms)) found.add(at);
    },
  });
  return [...found];
}

/** The JSON form of a request or an answer for a log, without the secrets of the request, wherever in it they are. */
export function redactWith(
  schema: DescMessage,
  message: MessageShape<DescMessage>,
  secrets: readonly RequestSecret[] | undefined,
): JsonValue {
  const json = redact(schema, message);
  if (secrets === undefined) return json;
  const forms = secrets.map(({ value }) => formsOfSecret(value));
  const clean = (value: JsonValue): JsonValue => {
    if (typeof value === "string") return value === strippedSecret ? value : maskSecrets(value, forms);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(clean);
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [maskSecrets(key, forms), clean(each)]),
    );
  };
  return clean(json);
}

const steps = new WeakMap<DescMessage, { step: Step | undefined }>();

/** Undefined: no message of this kind holds a string. */
function stepOf(schema: DescMessage): Step | undefined {
  const known = steps.get(schema);
  if (known !== undefined) return known.step;
  const entry: { step: Step | undefined } = { step: undefined };
  // A kind that holds itself finds this.
  steps.set(schema, entry);
  const parts = schema.fields.flatMap((field) => fieldStep(field) ?? []);
  if (parts.length > 0) {
    entry.step = (message, at, to) => {
      for (const part of parts) part(message, at, to);
    };
  }
  return entry.step;
}

function fieldStep(field: DescField): Step | undefined {
  const at = (above: string) => (above === "" ? field.name : `${above}.${field.name}`);
  if (field.fieldKind === "map" && field.mapKind === "scalar") {
    return (message, above, to) => inspectMap(field, fieldValue(field, message) as Message, at(above), to);
  }
  if (field.fieldKind === "scalar" && isText(field)) {
    if (texts.has(field.name) && field.oneof === undefined) {
      return (message, _, to) => {
        const text = message[field.localName] as string | undefined;
        if (text) message[field.localName] = to.text(text);
      };
    }
    return (message, above, to) => {
      const value = fieldValue(field, message) as string | undefined;
      if (value) inspectString(field, value, at(above), to);
    };
  }
  if (field.fieldKind === "list" && isText(field)) {
    return (message, above, to) => {
      for (const value of message[field.localName] as readonly string[]) {
        inspectString(field, value, at(above), to);
      }
    };
  }
  const nested = field.message === undefined ? undefined : stepOf(field.message);
  if (nested === undefined) return undefined;
  return (message, above, to) => {
    const value = fieldValue(field, message);
    if (value === undefined) return;
    if (field.fieldKind === "message") nested(value as Message, at(above), to);
    else for (const each of Object.values(value as object)) nested(each as Message, at(above), to);
  };
}

function inspectString(field: DescField, value: string, at: string, to: Inspector): void {
  if (value.length > stringMax) {
    throw new AnswerError(`${at} has ${value.length} characters, the limit is ${stringMax}`);
  }
  if (!opaque.has(field.name) && hasUnfitCharacters(value)) {
    throw new AnswerError(`${at} holds control characters`);
  }
  to.value(value, at);
}

function inspectMap(field: DescField, map: Message, at: string, to: Inspector): void {
  let length = 0;
  for (const key in map) {
    const value = String(map[key]);
    length += key.length + value.length;
    if (length > mapMax) {
      throw new AnswerError(`${at} has more than ${mapMax} characters, which is the limit`);
    }
    // Of the maps only topology, which becomes labels of nodes (docs/decisions/0018).
    if (field.name === "segments" && (hasUnfitCharacters(key) || hasUnfitCharacters(value))) {
      throw new AnswerError(`${at} holds control characters`);
    }
    to.value(key, at);
    to.value(value, at);
  }
}
