/** Bodies of requests to sub-resources that have a separate type. */
import type { KubeObject } from "@longshore/kube";
import { badRequest } from "../api/errors.ts";
import type { KindRequest } from "./registry-context.ts";

/** The body; its kind may be missing, but not wrong. @throws KubeApiError 400 */
export function bodyOfKind({ body }: KindRequest, expected: string): KubeObject {
  const object = body ?? {};
  if (typeof object !== "object" || Array.isArray(object)) {
    throw badRequest("the body of the request is not an object");
  }
  const { kind = expected } = object as KubeObject;
  if (kind !== expected) throw badRequest(`${String(kind)} cannot be handled as a ${expected}`);
  return object as KubeObject;
}
