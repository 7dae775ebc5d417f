/** Custom resources as clients send them: looked at by the schema of their version, and brought into its shape. */

import type { KubeObject } from "@longshore/kube";
import { apiError, badRequest, invalid, invalidValue } from "../api/errors.ts";
import { toJson } from "../api/json.ts";
import { storedApiVersion } from "../api/kind.ts";
import { ownWithNulls } from "../api/own.ts";
import { fieldProblem } from "../schema/unknown-fields.ts";
import type { KindRequest } from "./registry-context.ts";
import { apiVersionOf } from "./served-form.ts";

/** Custom resources have no merge keys: a strategic patch has no meaning for them. */
export const customPatchTypes: readonly string[] = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/apply-patch+yaml",
];

/** The body of a create or an update in the form in which it is stored. @throws KubeApiError 400, 422 */
export function customBody(request: KindRequest, body: KubeObject): KubeObject {
  const { of, version } = request;
  const expected = apiVersionOf(of, version);
  for (const key of ["kind", "apiVersion"] as const) {
    const given = body[key] ?? (request.fromWire === true ? undefined : key === "kind" ? of.kind : expected);
    if (typeof given !== "string" || given === "") {
      const name = key === "kind" ? "Kind" : "apiVersion";
      throw badRequest(`Object '${name}' is missing in '${toJson(body)}'`);
    }
  }
  const { apiVersion = expected, kind = of.kind } = body;
  if (kind !== of.kind) {
    throw invalid(of.group, kind, body.metadata?.name ?? "", [
      invalidValue("kind", kind, `must be ${of.kind}`),
    ]);
  }
  if (apiVersion !== expected && (request.fromWire === true || apiVersion !== storedApiVersion(of))) {
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${expected})`,
    );
  }
  return read(request, body, (problem) =>
    badRequest(
      `${of.kind} in version ${JSON.stringify(version)} cannot be handled as a ${of.kind}: ${problem}`,
    ),
  );
}

/** The result of a patch, in the shape that its schema has. @throws KubeApiError 400, 422 */
export function customPatched(request: KindRequest, patched: unknown): unknown {
  if (typeof patched !== "object" || patched === null || Array.isArray(patched)) return patched;
  const { apiVersion, kind } = patched as KubeObject;
  const object = read(request, patched as KubeObject, (problem) => badRequest(problem));
  // The caller looks whether the patch has changed them.
  return { ...object, apiVersion, kind };
}

function read(request: KindRequest, object: KubeObject, refused: (problem: string) => Error): KubeObject {
  const { of, version } = request;
  const custom = of.custom as NonNullable<typeof of.custom>;
  const strict = fieldProblem(request.fields, () =>
    custom.unknownFields(object, version).map((path) => `unknown field ${JSON.stringify(path)}`),
  );
  if (strict !== undefined) throw refused(strict);
  return ownWithNulls({ ...custom.read(object, version), apiVersion: storedApiVersion(of), kind: of.kind });
}

/** 405: no new objects of a kind whose definition is being deleted. */
export function definitionTerminating({ of }: KindRequest): Error {
  const message = "create not allowed while custom resource definition is terminating";
  return apiError(405, "MethodNotAllowed", message, { group: of.group, kind: of.plural });
}
