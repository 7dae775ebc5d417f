/**
 * Rules for every answer, whichever check made the call: size limits, status messages, no secrets. All calls of a run
 * are observed; the checks of the group `protocol` report violations.
 */
import type { DescMessage, MessageShape } from "@longshore/csi";
import {
  formsOfSecret,
  holdsSecret,
  type ReflectMessage,
  reflect,
  ScalarType,
  type SecretForms,
} from "@longshore/csi/transport";
import type { CallOutcome, CallWatcher } from "./conformance-clients.ts";
import { type DriverSecrets, secretValuesOf } from "./driver-secrets.ts";

/** The rules that are looked for. */
export const observedRules = [
  "statusMessage",
  "statusDetails",
  "secrets",
  "strings",
  "maps",
  "numbers",
] as const;
/** One of them. */
export type ObservedRule = (typeof observedRules)[number];

/** Bytes of any string, unless the specification says otherwise (docs/behaviour/csi-spec-notes.md 2). */
const stringBytesMax = 128;
/** Bytes of any map, keys and values together. */
const mapBytesMax = 4096;
/** Fields with a limit of their own. */
const stringLimits: Readonly<Record<string, number>> = {
  "csi.v1.NodeGetInfoResponse.node_id": 256,
  "csi.v1.ListVolumesResponse.VolumeStatus.published_node_ids": 256,
  "csi.v1.ControllerGetVolumeResponse.VolumeStatus.published_node_ids": 256,
};

/** The key of the parameter that is too long by our own doing: a driver that returns it is not at fault. */
export const overlongKey = "longshore.dev/long";

const encoder = new TextEncoder();
const bytesOf = (text: string) => encoder.encode(text).length;

/** Collects what is wrong with the answers of a run. */
export class Observations implements CallWatcher {
  readonly #secrets: readonly SecretForms[];
  readonly #problems = new Map<ObservedRule, Set<string>>();
  #answers = 0;
  #refusals = 0;

  constructor(secrets: DriverSecrets) {
    this.#secrets = secretValuesOf(secrets).map((value) => formsOfSecret(value));
  }

  /** Calls that were answered with OK. */
  get answers(): number {
    return this.#answers;
  }

  /** Calls that were answered with another status. */
  get refusals(): number {
    return this.#refusals;
  }

  /** What breaks the rule, each kind once. */
  problemsOf(rule: ObservedRule): readonly string[] {
    return [...(this.#problems.get(rule) ?? [])];
  }

  onEnd({ method, response, error }: CallOutcome): void {
    const found = (rule: ObservedRule, text: string) => {
      const known = this.#problems.get(rule) ?? new Set();
      this.#problems.set(rule, known.add(`${method.name}: ${text}`));
    };
    if (error?.answered === true) {
      this.#refusals++;
      if (error.detail.trim() === "") found("statusMessage", `status ${error.code} has no message`);
      if (error.hasDetails) found("statusDetails", `status ${error.code} has details`);
      if (this.#holdsSecret(error.detail))
        found("secrets", `the message of status ${error.code} holds a secret`);
    }
    if (response === undefined) return;
    this.#answers++;
    inspect(reflect(method.output, response as MessageShape<DescMessage>), "", {
      found,
      holdsSecret: (text) => this.#holdsSecret(text),
    });
  }

  #holdsSecret(text: string): boolean {
    return holdsSecret(text, this.#secrets);
  }
}

interface Inspector {
  found(rule: ObservedRule, text: string): void;
  holdsSecret(text: string): boolean;
}

/** Looks at every field that is set, at any depth. */
function inspect(message: ReflectMessage, path: string, to: Inspector): void {
  // A Timestamp before 1970 is negative, and no fault.
  if (message.desc.typeName.startsWith("google.protobuf.")) return;
  for (const field of message.sortedFields) {
    if (!message.isSet(field)) continue;
    const at = path === "" ? field.name : `${path}.${field.name}`;
    const limit = stringLimits[`${message.desc.typeName}.${field.name}`] ?? stringBytesMax;
    if (field.fieldKind === "map") inspectMap(message.get(field), at, to);
    else if (field.fieldKind === "list") {
      for (const item of message.get(field)) inspectValue(item, at, limit, field.scalar, to);
    } else inspectValue(message.get(field), at, limit, field.scalar, to);
  }
}

function inspectMap(entries: Iterable<readonly [unknown, unknown]>, at: string, to: Inspector): void {
  let bytes = 0;
  for (const [key, value] of entries) {
    if (key !== overlongKey) bytes += bytesOf(String(key)) + bytesOf(String(value));
    if (to.holdsSecret(String(value))) to.found("secrets", `${at} holds a secret`);
  }
  if (bytes > mapBytesMax) to.found("maps", `${at} has ${bytes} bytes, the limit is ${mapBytesMax}`);
}

function inspectValue(
  value: unknown,
  at: string,
  limit: number,
  scalar: ScalarType | undefined,
  to: Inspector,
): void {
  if (typeof value === "string") {
    const bytes = bytesOf(value);
    if (bytes > limit) to.found("strings", `${at} has ${bytes} bytes, the limit is ${limit}`);
    if (to.holdsSecret(value)) to.found("secrets", `${at} holds a secret`);
  } else if (typeof value === "bigint" || (typeof value === "number" && scalar === ScalarType.INT32)) {
    if (value < 0) to.found("numbers", `${at} is ${value}`);
  } else if (isReflected(value)) inspect(value, at, to);
}

function isReflected(value: unknown): value is ReflectMessage {
  return typeof value === "object" && value !== null && "sortedFields" in value;
}
