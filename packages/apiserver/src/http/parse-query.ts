/** Query parameters as the registry takes them. Unknown parameters are ignored. */

import type { ApiQuery } from "../api/api-request.ts";
import { apiError, badRequest, invalid } from "../api/errors.ts";
import { type FieldValidation, fieldValidations } from "../api/field-checks.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";

const strings = [
  "labelSelector",
  "fieldSelector",
  "continue",
  "resourceVersion",
  "resourceVersionMatch",
  "fieldManager",
  "propagationPolicy",
] as const;
const numbers = ["limit", "timeoutSeconds", "gracePeriodSeconds"] as const;
const booleans = ["allowWatchBookmarks", "sendInitialEvents", "force", "orphanDependents"] as const;

/** Longest name of a field manager. */
const fieldManagerMax = 128;

/** @throws KubeApiError 400 or 422 for a value that cannot be */
export function parseQuery(params: URLSearchParams): ApiQuery {
  const query: Record<string, unknown> = {};
  for (const key of strings) {
    const value = params.get(key);
    if (value !== null && value !== "") query[key] = value;
  }
  for (const key of numbers) {
    const value = params.get(key);
    if (value === null || value === "") continue;
    if (!/^-?\d{1,15}$/.test(value)) {
      throw badRequest(
        `strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax (parameter ${key})`,
      );
    }
    query[key] = Number(value);
  }
  for (const key of booleans) {
    const value = params.get(key);
    if (value !== null) query[key] = isTrue(value);
  }
  const dryRun = params.getAll("dryRun");
  if (dryRun.some((value) => value !== "All")) throw unknownDryRun(dryRun);
  if (dryRun.length > 0) query.dryRun = dryRun;
  if (((query.fieldManager as string | undefined) ?? "").length > fieldManagerMax) throw longManager();
  return query as ApiQuery;
}

/**
 * What a write's unknown members are to lead to: a warning unless the client says otherwise, and nothing in versions
 * that do not look at them. @throws KubeApiError 422
 */
export function fieldValidationOf(params: URLSearchParams, emulated: EmulatedVersion): FieldValidation {
  if (!emulated.has("fieldValidation")) return "Ignore";
  const given = params.get("fieldValidation") ?? "";
  if (given === "") return "Warn";
  const known = fieldValidations.find((validation) => validation === given);
  if (known === undefined) throw unknownValidation(given);
  return known;
}

/** The reading of a flag in a query: present without a value, or anything but `false` (in any case) and `0`. */
export function isTrue(value: string): boolean {
  return value !== "0" && value.toLowerCase() !== "false";
}

function unknownDryRun(given: readonly string[]): Error {
  const shown = `[]string{${given.map((value) => JSON.stringify(value)).join(", ")}}`;
  const message = `Unsupported value: ${shown}: supported values: "All"`;
  return invalid("meta.k8s.io", "CreateOptions", "", [
    { reason: "FieldValueNotSupported", message, field: "dryRun" },
  ]);
}

function unknownValidation(given: string): Error {
  const values = ["", ...fieldValidations].sort().map((value) => JSON.stringify(value));
  const message = `Unsupported value: ${JSON.stringify(given)}: supported values: ${values.join(", ")}`;
  return invalid("meta.k8s.io", "CreateOptions", "", [
    { reason: "FieldValueNotSupported", message, field: "fieldValidation" },
  ]);
}

function longManager(): Error {
  const message = `Too long: must have at most ${fieldManagerMax} bytes`;
  return apiError(422, "Invalid", `CreateOptions.meta.k8s.io "" is invalid: fieldManager: ${message}`, {
    group: "meta.k8s.io",
    kind: "CreateOptions",
    causes: [{ reason: "FieldValueTooLong", message, field: "fieldManager" }],
  });
}
