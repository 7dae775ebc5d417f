/**
 * The secret values of a request, found over the descriptors: fields that the protocol marks (`csi_secret`, docs/behaviour/csi-spec-notes.md 2),
 * options in `mount_flags` that are named like one (`password=…`), and tokens in `volume_context`, which has no mark.
 */
import {
  type DescField,
  type DescMessage,
  getOption,
  hasOption,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { csi_secret } from "../gen/csi_pb.ts";

/** One secret value. */
export interface RequestSecret {
  readonly value: string;
  /**
   * Whether its name says that it is a credential (`password`), not only an accompanying value (`user`, `endpoint`).
   */
  readonly isCredential: boolean;
  /**
   * Set when the value comes from a mount flag, which every reader of the class or volume sees: it is masked, but no
   * answer is refused for it.
   */
  readonly isOpen?: true;
}

/** Whether the protocol marks the field as secret. */
export function isSecretField(field: DescField): boolean {
  return hasOption(field, csi_secret) && getOption(field, csi_secret);
}

const credentialNames = /(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|key|credentials?)\d*$/;

/**
 * Whether a value of this name grants access: `password`, `userKey`, `secret-access-key`, not `publicKey` or `keyId`.
 */
export function isCredentialName(name: string): boolean {
  const plain = name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  return credentialNames.test(plain) && !plain.includes("public");
}

type Message = Readonly<Record<string, unknown>>;
type Collector = (message: Message, found: RequestSecret[]) => void;

/** The secrets of a request; undefined when it has none, which costs one look for those that cannot have any. */
export function secretsOfRequest(
  schema: DescMessage,
  request: MessageShape<DescMessage>,
): readonly RequestSecret[] | undefined {
  const collect = collectorOf(schema);
  if (collect === undefined) return undefined;
  const found: RequestSecret[] = [];
  collect(request as Message & MessageShape<DescMessage>, found);
  return found.length === 0 ? undefined : found;
}

const collectors = new WeakMap<DescMessage, { readonly collect: Collector | undefined }>();

/** Undefined: no message of this kind holds a secret. */
function collectorOf(schema: DescMessage): Collector | undefined {
  const known = collectors.get(schema);
  if (known !== undefined) return known.collect;
  // A kind that holds itself finds this.
  collectors.set(schema, { collect: undefined });
  const parts = schema.fields.flatMap((field) => fieldCollector(field) ?? []);
  const collect: Collector | undefined =
    parts.length === 0
      ? undefined
      : (message, found) => {
          for (const part of parts) part(message, found);
        };
  collectors.set(schema, { collect });
  return collect;
}

function fieldCollector(field: DescField): Collector | undefined {
  if (isSecretField(field)) {
    return (message, found) => addSecret(field.name, fieldValue(field, message), found);
  }
  if (field.name === "mount_flags") {
    return (message, found) => {
      for (const flag of (fieldValue(field, message) ?? []) as readonly string[]) addOptions(flag, found);
    };
  }
  if (field.name === "volume_context") {
    return (message, found) => addTokens(fieldValue(field, message), found);
  }
  const nested = field.message === undefined ? undefined : collectorOf(field.message);
  if (nested === undefined) return undefined;
  return (message, found) => {
    const value = fieldValue(field, message);
    if (value === undefined) return;
    if (field.fieldKind === "message") nested(value as Message, found);
    else for (const each of Object.values(value as object)) nested(each as Message, found);
  };
}

/** The value of a field, of a oneof only where it is the chosen one. */
export function fieldValue(field: DescField, message: Message): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const chosen = message[field.oneof.localName] as { readonly case?: string; readonly value?: unknown };
  return chosen.case === field.localName ? chosen.value : undefined;
}

/** What a marked field holds: a map of named values as today, or whatever a later version of the protocol has. */
function addSecret(name: string, value: unknown, found: RequestSecret[]): void {
  if (typeof value === "string") {
    if (value !== "") found.push({ value, isCredential: isCredentialName(name) });
  } else if (value instanceof Uint8Array) {
    addSecret(name, Buffer.from(value).toString("utf8"), found);
  } else if (Array.isArray(value)) {
    for (const each of value) addSecret(name, each, found);
  } else if (typeof value === "object" && value !== null) {
    // `$typeName` of a message is no field.
    for (const [key, each] of Object.entries(value)) if (!key.startsWith("$")) addSecret(key, each, found);
  }
}

/**
 * A flag may hold several options: `ro,password=…`. It comes from a class or a volume, and a driver that confirms a
 * capability repeats it.
 */
function addOptions(flag: string, found: RequestSecret[]): void {
  for (const option of flag.split(",")) {
    const [, name = "", value = ""] = /^\s*([^=]*)=(.*)$/s.exec(option) ?? [];
    if (value !== "" && isCredentialName(name)) found.push({ value, isCredential: true, isOpen: true });
  }
}

/** The attribute that holds tokens of service accounts, as JSON by audience (docs/behaviour/csi-plugin.md 9.5). */
export const tokensAttribute = "csi.storage.k8s.io/serviceAccount.tokens";

function addTokens(context: unknown, found: RequestSecret[]): void {
  const text = (context as Readonly<Record<string, string>> | undefined)?.[tokensAttribute];
  if (text === undefined || text === "") return;
  found.push({ value: text, isCredential: true });
  try {
    for (const { token } of Object.values(JSON.parse(text) as Record<string, { token?: unknown }>)) {
      if (typeof token === "string" && token !== "") found.push({ value: token, isCredential: true });
    }
  } catch {
    // Not of the form that is expected: the text as a whole is a secret.
  }
}

/** Whether a field holds text. */
export function isText(field: DescField): boolean {
  return field.scalar === ScalarType.STRING;
}
