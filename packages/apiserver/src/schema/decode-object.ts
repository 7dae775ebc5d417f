/**
 * Reads JSON as an object of a kind: what has another type than the API's is refused, members
 * that the API does not know are dropped, as the real server's decoder does.
 */

import { parseQuantity } from "@longshore/kube/basics";
import { badRequest } from "../api/errors.ts";
import { isNumber, WholeFraction, withoutFractions } from "../api/json.ts";
import { ownWithNulls } from "../api/own.ts";
import { setMember } from "../api/set-member.ts";
import { spendTime } from "../api/work-time.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { isEmptyList, isOmitted } from "./go-forms.ts";
import { wireTypeOf } from "./message-fields.ts";
import { structNameOf, structOf, type TypeRef } from "./schema.ts";

/** @throws KubeApiError 400 naming the member and what was expected there */
export function decodeObject(
  group: string,
  kind: string,
  value: unknown,
  version?: EmulatedVersion,
  servedVersion = "v1",
): unknown {
  try {
    return decode({ form: "struct", name: structNameOf(group, kind, servedVersion) }, value, kind, version);
  } catch (error) {
    if (!(error instanceof Mismatch)) throw error;
    throw badRequest(`${kind} in version "v1" cannot be handled as a ${kind}: ${error.message}`);
  }
}

/** Like {@link decodeObject}, with the failure as text; undefined when the value can be read. */
export function decodeProblem(group: string, kind: string, value: unknown): string | undefined {
  try {
    decode({ form: "struct", name: structNameOf(group, kind) }, value, kind);
    return undefined;
  } catch (error) {
    if (error instanceof Mismatch) return error.message;
    throw error;
  }
}

/** The value as the metadata of any object, or why it is none. @param at names the member in the problem */
export function decodeMetadata(
  value: unknown,
  at: string,
): { readonly metadata?: unknown; readonly problem?: string } {
  try {
    return { metadata: decode({ form: "struct", name: "meta.v1.ObjectMeta" }, value, at) ?? {} };
  } catch (error) {
    if (error instanceof Mismatch) return { problem: error.message };
    throw error;
  }
}

class Mismatch extends Error {
  override readonly name = "Mismatch";
}

const quantityPattern = /^[+-]?(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$/;
const timePattern = /^(\d{4}-\d\d-\d\d)T(\d\d):([0-5]\d):([0-5]\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):([0-5]\d))$/;

/**
 * The time as the API writes it: in UTC, in whole seconds or in microseconds, which must all be given (apimachinery meta/v1
 * Time, MicroTime). Undefined when the text is none.
 */
function normalTime(text: string, micro: boolean): string | undefined {
  const match = timePattern.exec(text);
  if (match === null) return undefined;
  const [, day = "", hour = "", minute = "", second = "", fraction = "", sign, hours = "0", minutes = "0"] =
    match;
  if (Number(hour) > 23 || (micro && fraction.length !== 6)) return undefined;
  const local = new Date(`${day}T${hour}:${minute}:${second}Z`);
  // A day that the month does not have would be one of the next month.
  if (Number.isNaN(local.getTime()) || local.toISOString().slice(0, 10) !== day) return undefined;
  const offset = (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
  const utc = new Date(local.getTime() - offset).toISOString().slice(0, 19);
  return `${utc}${micro ? `.${fraction}` : ""}Z`;
}

/** The base64 text as the API writes it; line ends in it are no part of it (Go encoding/base64). Undefined when it is none. */
function normalBase64(text: string): string | undefined {
  const compact = text.replaceAll(/[\r\n]/g, "");
  if (compact.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(compact)) return undefined;
  // The last bits of the last character may say something that no byte has.
  return Buffer.from(compact, "base64").toString("base64");
}

const int32Max = 2 ** 31 - 1;
const int64Limit = 2 ** 63;

/** @param wire the type in protobuf of a member, which may say more */
function decode(
  type: TypeRef,
  value: unknown,
  at: string,
  version?: EmulatedVersion,
  wire?: string,
): unknown {
  spendTime();
  if (value === null || value === undefined) return undefined;
  const given = Array.isArray(value) ? "list" : typeof value;
  const expect = (what: string): never => {
    const got = value instanceof WholeFraction ? value.text : given === "object" ? "an object" : `a ${given}`;
    throw new Mismatch(`${at}: expected ${what}, got ${got}`);
  };
  switch (type.form) {
    case "any":
      // A null in it may mean something.
      return ownWithNulls(withoutFractions(value));
    case "string":
      if (given !== "string") return expect("a string");
      if (wire !== "bytes") return value;
      return normalBase64(value as string) ?? fail(at, "the text is no base64");
    case "boolean":
      return given === "boolean" ? value : expect("true or false");
    case "integer":
      return integerOf(value, wire === "int32", at) ?? expect("an integer");
    case "intOrString":
      return given === "string" ? value : (integerOf(value, true, at) ?? expect("an integer or a string"));
    case "time":
    case "microTime":
      if (given !== "string") return expect("a time");
      return (
        normalTime(value as string, type.form === "microTime") ??
        fail(at, timeProblem(value as string, type.form))
      );
    case "quantity": {
      // Manifests leave the quotes off (`cpu: 2`), and the reference reads the bare number too.
      const text = isNumber(value) ? String(value) : value instanceof WholeFraction ? value.text : value;
      if (typeof text !== "string" || !quantityPattern.test(text)) {
        throw new Mismatch(
          `${at}: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
        );
      }
      try {
        return parseQuantity(text).toString();
      } catch (error) {
        throw new Mismatch(`${at}: ${(error as Error).message}`);
      }
    }
    case "list":
      if (!Array.isArray(value)) return expect("a list");
      return value.map((item, i) => decode(type.of, item, `${at}[${i}]`, version, wire) ?? emptyOf(type.of));
    case "map": {
      if (given !== "object") return expect("an object");
      const result: Record<string, unknown> = {};
      for (const [key, member] of Object.entries(value)) {
        setMember(result, key, decode(type.of, member, `${at}.${key}`, version, wire) ?? emptyOf(type.of));
      }
      return result;
    }
    case "struct": {
      if (given !== "object") return expect("an object");
      const struct = structOf(type.name, version);
      if (struct === undefined) return value;
      const result: Record<string, unknown> = {};
      for (const [key, member] of Object.entries(value)) {
        const known = struct.get(key);
        if (known === undefined) continue;
        const decoded = decode(known.type, member, `${at}.${key}`, version, wireTypeOf(type.name, key));
        if (decoded === undefined || (!known.required && isOmitted(type.name, key, decoded))) continue;
        if (known.required && isEmptyList(type.name, decoded)) continue;
        if (known.type.form === "map" && !known.required && Object.keys(decoded as object).length === 0)
          continue;
        result[key] = decoded;
      }
      return result;
    }
  }
}

function fail(at: string, why: string): never {
  throw new Mismatch(`${at}: ${why}`);
}

function timeProblem(text: string, form: "time" | "microTime"): string {
  const layout = form === "time" ? "2006-01-02T15:04:05Z" : "2006-01-02T15:04:05.000000Z";
  return `${JSON.stringify(text)} is no time of RFC 3339 as ${layout}`;
}

/** The integer, if it is one. @throws Mismatch when its type does not hold it */
function integerOf(value: unknown, short: boolean, at: string): number | undefined {
  if (typeof value !== "bigint" && !Number.isInteger(value)) return undefined;
  const number = Number(value);
  // A `bigint` is one of 64 bits.
  const isHeld = short
    ? number <= int32Max && number >= -int32Max - 1
    : typeof value === "bigint" || Math.abs(number) < int64Limit;
  return isHeld ? number : fail(at, `${value} is too large for an integer of ${short ? 32 : 64} bits`);
}

/** What a null stands for where there must be something. */
function emptyOf(type: TypeRef): unknown {
  switch (type.form) {
    case "string":
    case "time":
    case "microTime":
      return "";
    case "quantity":
      return "0";
    case "integer":
    case "intOrString":
      return 0;
    case "boolean":
      return false;
    case "list":
      return [];
    default:
      return {};
  }
}
