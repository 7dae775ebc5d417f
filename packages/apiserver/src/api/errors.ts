/**
 * The failures that clients see: meta/v1 Status bodies with the texts of Kubernetes 1.20
 * (apimachinery api/errors), thrown as {@link KubeApiError}.
 */

import {
  isDeleting,
  KubeApiError,
  type KubeObject,
  type Status,
  type StatusCause,
} from "@longshore/kube/basics";
import { problemLengthMax, problemsMax, shownLengthMax } from "./bounded.ts";
import { toJson } from "./json.ts";

/** Names a resource in a message: `statefulsets.apps`, or `pods` for the core group. */
export interface GroupResource {
  readonly group: string;
  readonly resource: string;
}

type Details = NonNullable<Status["details"]>;

/** Any failure: code, reason, message and, if need be, details. */
export function apiError(code: number, reason: string, message: string, details?: Details): KubeApiError {
  return new KubeApiError({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message,
    ...(reason === "" ? {} : { reason }),
    ...(details === undefined ? {} : { details }),
    code,
  });
}

/** `plural.group`, or the plural alone for the core group. */
export function qualified(of: GroupResource): string {
  return of.group === "" ? of.resource : `${of.resource}.${of.group}`;
}

function detailsOf(of: GroupResource, name: string): Details {
  return {
    ...(name === "" ? {} : { name }),
    ...(of.group === "" ? {} : { group: of.group }),
    kind: of.resource,
  };
}

/** 404: no object of that name. */
export function notFound(of: GroupResource, name: string): KubeApiError {
  return apiError(404, "NotFound", `${qualified(of)} "${name}" not found`, detailsOf(of, name));
}

/** 404: the path names no resource that is served. */
export function unknownResource(): KubeApiError {
  return apiError(404, "NotFound", "the server could not find the requested resource", {});
}

/** 409: an object of that name exists, perhaps not for long. */
export function alreadyExists(of: GroupResource, name: string, there: KubeObject): KubeApiError {
  const going = isDeleting(there) ? "object is being deleted: " : "";
  const message = `${going}${qualified(of)} "${name}" already exists`;
  return apiError(409, "AlreadyExists", message, detailsOf(of, name));
}

/** The reason of a conflict that comes from an old `resourceVersion`. */
export const staleObject =
  "the object has been modified; please apply your changes to the latest version and try again";

/** 409: the object is not what the writer thought. */
export function conflict(of: GroupResource, name: string, why: string = staleObject): KubeApiError {
  const message = `Operation cannot be fulfilled on ${qualified(of)} "${name}": ${why}`;
  return apiError(409, "Conflict", message, detailsOf(of, name));
}

/** 403. */
export function forbidden(of: GroupResource, name: string, why: string, causes?: readonly StatusCause[]) {
  const what = name === "" ? `${qualified(of)} is forbidden` : `${qualified(of)} "${name}" is forbidden`;
  const details = { ...detailsOf(of, name), ...(causes === undefined ? {} : { causes }) };
  return apiError(403, "Forbidden", `${what}: ${why}`, details);
}

/** 400. */
export function badRequest(message: string): KubeApiError {
  return apiError(400, "BadRequest", message);
}

/** 410: that version is no longer there. */
export function expired(message: string): KubeApiError {
  return apiError(410, "Expired", message);
}

/** 405. */
export function methodNotSupported(of: GroupResource, verb: string): KubeApiError {
  return apiError(
    405,
    "MethodNotAllowed",
    `${verb} is not supported on resources of kind "${qualified(of)}"`,
    detailsOf(of, ""),
  );
}

/** 415. */
export function unsupportedMediaType(accepted: readonly string[]): KubeApiError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`;
  return apiError(415, "UnsupportedMediaType", message);
}

/** 500, of the server's own making. */
export function internalError(why: string): KubeApiError {
  return apiError(500, "InternalError", `Internal error occurred: ${why}`, { causes: [{ message: why }] });
}

/** 422: the object breaks the rules of its kind. */
export function invalid(
  group: string,
  kind: string,
  name: string,
  problems: readonly FieldProblem[],
): KubeApiError {
  const what = group === "" ? kind : `${kind}.${group}`;
  const reported = reportedProblems(problems);
  const texts = [...new Set(reported.map((problem) => `${problem.field}: ${problem.message}`))];
  if (reported.length < problems.length) texts.push("and more problems");
  const message = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  return apiError(422, "Invalid", `${what} "${name}" is invalid: ${message}`, {
    ...(name === "" ? {} : { name }),
    ...(group === "" ? {} : { group }),
    ...(kind === "" ? {} : { kind }),
    causes: reported.map(({ reason, message, field }) => ({ reason, message, field })),
  });
}

/** The first problems, as many as an answer reports: an object can have millions. */
function reportedProblems(problems: readonly FieldProblem[]): readonly FieldProblem[] {
  let length = 0;
  for (const [i, { field, message }] of problems.entries()) {
    length += field.length + message.length;
    if (i >= problemsMax || (i > 0 && length > problemLengthMax)) return problems.slice(0, i);
  }
  return problems;
}

/** One broken rule of validation. */
export interface FieldProblem {
  readonly reason: string;
  readonly message: string;
  readonly field: string;
}

/** Shows a value as the messages do: strings quoted (that there is none, too), objects as JSON; of long ones the beginning. */
function shown(value: unknown): string {
  const text = toJson(value ?? "null");
  return text.length <= shownLengthMax ? text : `${text.slice(0, shownLengthMax)}…`;
}

/** The value of the field cannot be. */
export function invalidValue(field: string, value: unknown, why: string): FieldProblem {
  const message = `Invalid value: ${shown(value)}${why === "" ? "" : `: ${why}`}`;
  return { reason: "FieldValueInvalid", message, field };
}

/** The field must be given. */
export function requiredValue(field: string, why = ""): FieldProblem {
  return {
    reason: "FieldValueRequired",
    message: why === "" ? "Required value" : `Required value: ${why}`,
    field,
  };
}

/** The field must not be given, or not be changed. */
export function forbiddenValue(field: string, why: string): FieldProblem {
  return { reason: "FieldValueForbidden", message: `Forbidden: ${why}`, field };
}

/** The value is not one of the supported values. */
export function unsupportedValue(field: string, value: unknown, known: readonly string[]): FieldProblem {
  const list = known.map((k) => JSON.stringify(k)).join(", ");
  return {
    reason: "FieldValueNotSupported",
    message: `Unsupported value: ${shown(value)}: supported values: ${list}`,
    field,
  };
}

/** The text, or the map, is too long. */
export function tooLong(field: string, bytesMax: number): FieldProblem {
  return { reason: "FieldValueTooLong", message: `Too long: must have at most ${bytesMax} bytes`, field };
}

/** The list is too long. */
export function tooManyItems(field: string, count: number, most: number): FieldProblem {
  return {
    reason: "FieldValueTooMany",
    message: `Too many: ${count}: must have at most ${most} items`,
    field,
  };
}

/** What is referred to is not there. */
export function notFoundValue(field: string, value: unknown): FieldProblem {
  return { reason: "FieldValueNotFound", message: `Not found: ${shown(value)}`, field };
}

/** The value is there twice. */
export function duplicateValue(field: string, value: unknown): FieldProblem {
  return { reason: "FieldValueDuplicate", message: `Duplicate value: ${shown(value)}`, field };
}

/** 405, wherever the method of a request does not go with its path. */
export function methodNotAllowed(): Error {
  const message = "the server does not allow this method on the requested resource";
  return apiError(405, "MethodNotAllowed", message, {});
}
