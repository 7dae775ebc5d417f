/** JSON patch (RFC 6902), with the failures of the API. */
import { applyPatch, type Operation } from "rfc6902";
import { apiError, badRequest } from "../api/errors.ts";

/** Most operations of one patch (apiserver handlers: maxJSONPatchOperations). */
const operationsMax = 10_000;

/**
 * The patched copy of `target`. Replacing a missing member of an object adds it, as the API does.
 * @throws KubeApiError 400 for what is no patch, 413 for too many operations, 422 for one that cannot be applied
 */
export function applyJsonPatch(target: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw badRequest("error decoding patch: a JSON patch is a list of operations");
  if (patch.length > operationsMax) {
    const message = `The allowed maximum operations in a JSON patch is ${operationsMax}, got ${patch.length}`;
    throw apiError(413, "RequestEntityTooLarge", message);
  }
  const copy = structuredClone(target);
  for (const [index, operation] of (patch as Operation[]).entries()) {
    let [failure] = applyPatch(copy, [operation]);
    if (failure?.name === "MissingError" && operation?.op === "replace") {
      [failure] = applyPatch(copy, [{ ...operation, op: "add" }]);
    }
    // A missing member passes a test for null, as the API has it; sidecars add their first finalizer that way.
    const isAbsent = failure?.name === "TestError" && (failure as { actual?: unknown }).actual === undefined;
    if (isAbsent && operation?.op === "test" && operation.value === null) continue;
    if (failure !== null && failure !== undefined) {
      const what = `operation ${index} of the JSON patch (${operation?.op} ${operation?.path})`;
      throw apiError(422, "Invalid", `${what} cannot be applied: ${failure.message}`, {});
    }
  }
  return copy;
}
