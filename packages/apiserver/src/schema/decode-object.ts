/**
 * Reads JSON as an object of a kind: what has another type than the API's is refused, members
 * that the API does not know are dropped, as the real server's decoder does.
 */

import { parseQuantity } from "@longshore/kube/basics";
import { badRequest } from "../api/errors.ts";
import { isNumber } from "../api/json.ts";
import { ownWithNulls } from "../api/own.ts";
import { setMember } from "../api/set-member.ts";
import { spendTime } from "../api/work-time.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { isEmptyList, isOmitted } from "./go-forms.ts";
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
const timePattern = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

function decode(type: TypeRef, value: unknown, at: string, version?: EmulatedVersion): unknown {
  spendTime();
  if (value === null || value === undefined) return undefined;
  const given = Array.isArray(value) ? "list" : typeof value;
  const expect = (what: string): never => {
    throw new Mismatch(`${at}: expected ${what}, got ${given === "object" ? "an object" : `a ${given}`}`);
  };
  switch (type.form) {
    case "any":
      // A null in it may mean something.
      return ownWithNulls(value);
    case "string":
      return given === "string" ? value : expect("a string");
    case "boolean":
      return given === "boolean" ? value : expect("true or false");
    case "integer":
      return typeof value === "bigint"
        ? Number(value)
        : Number.isInteger(value)
          ? value
          : expect("an integer");
    case "intOrString":
      return given === "string" || Number.isInteger(value) ? value : expect("an integer or a string");
    case "time":
    case "microTime":
      if (given !== "string") return expect("a time");
      if (value === "") return undefined;
      return timePattern.test(value as string) ? value : expect("a time (RFC 3339)");
    case "quantity": {
      // Manifests leave the quotes off (`cpu: 2`), and the reference reads the bare number too.
      const text = isNumber(value) ? String(value) : value;
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
      return value.map((item, i) => decode(type.of, item, `${at}[${i}]`, version) ?? emptyOf(type.of));
    case "map": {
      if (given !== "object") return expect("an object");
      const result: Record<string, unknown> = {};
      for (const [key, member] of Object.entries(value)) {
        setMember(result, key, decode(type.of, member, `${at}.${key}`, version) ?? emptyOf(type.of));
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
        const decoded = decode(known.type, member, `${at}.${key}`, version);
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
