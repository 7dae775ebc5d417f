/** Who may do what: the question, the answer, and how several authorizers answer as one. */
import { apiError, forbidden } from "../api/errors.ts";
import type { ApiRequest, UserInfo } from "../registry/request.ts";

/** Somebody wants to do something to a resource. */
export interface ResourceAttributes {
  readonly user: UserInfo;
  /** A verb of the API, or any other word (`use`, `bind`, `impersonate`). */
  readonly verb: string;
  readonly group: string;
  readonly version?: string;
  readonly resource: string;
  readonly subresource?: string;
  /** Left out (or empty) at the cluster scope and across all namespaces. */
  readonly namespace?: string;
  readonly name?: string;
  /** Of a list or watch, as given. */
  readonly fieldSelector?: string;
  readonly path?: undefined;
}

/** Somebody wants to do something to a path that is no resource. */
export interface PathAttributes {
  readonly user: UserInfo;
  /** The method of the request, in lower case. */
  readonly verb: string;
  readonly path: string;
}

/** What an authorizer is asked. */
export type Attributes = ResourceAttributes | PathAttributes;

/** The answer: allowed, or that this authorizer sees no ground for it. */
export interface Decision {
  readonly allowed: boolean;
  /** Why, for people; of a refusal it becomes part of the message. */
  readonly reason: string;
}

/** Answers whether somebody may do something. Synchronous: it works from what is in memory. */
export interface Authorizer {
  authorize(attributes: Attributes): Decision;
}

/** The group whose members may do everything. */
export const mastersGroup = "system:masters";

/** Lets the members of {@link mastersGroup} do everything (apiserver's PrivilegedGroups). */
export const mastersAuthorizer: Authorizer = {
  authorize: ({ user }) => ({ allowed: user.groups.includes(mastersGroup), reason: "" }),
};

/** Allowed where one of `authorizers` allows it, in order; the reasons of refusals are put together. */
export function anyOf(authorizers: readonly Authorizer[]): Authorizer {
  return {
    authorize(attributes) {
      const reasons: string[] = [];
      for (const authorizer of authorizers) {
        const decision = authorizer.authorize(attributes);
        if (decision.allowed) return decision;
        if (decision.reason !== "") reasons.push(decision.reason);
      }
      return { allowed: false, reason: reasons.join("\n") };
    },
  };
}

/** @throws KubeApiError 403 when the user may not */
export function assertAllowed(authorizer: Authorizer, attributes: Attributes): void {
  const { allowed, reason } = authorizer.authorize(attributes);
  if (!allowed) throw refusal(attributes, reason);
}

/** The 403 for what an authorizer has refused (apiserver endpoints/handlers/responsewriters). */
export function refusal(attributes: Attributes, reason: string): Error {
  const why = reason === "" ? "" : `: ${reason}`;
  const { user, verb } = attributes;
  if (attributes.path !== undefined) {
    const message = `forbidden: User "${user.name}" cannot ${verb} path "${attributes.path}"${why}`;
    return apiError(403, "Forbidden", message, {});
  }
  const { group, resource, subresource = "", namespace = "", name = "" } = attributes;
  const what = subresource === "" ? resource : `${resource}/${subresource}`;
  const where = namespace === "" ? "at the cluster scope" : `in the namespace "${namespace}"`;
  return forbidden(
    { group, resource },
    name,
    `User "${user.name}" cannot ${verb} resource "${what}" in API group "${group}" ${where}${why}`,
  );
}

/** The attributes of a request that is made in this process, where no path tells them. */
export function attributesOfRequest(request: ApiRequest): ResourceAttributes {
  const { user, verb, group, version, resource, subresource, namespace, query } = request;
  const isOfMany = verb === "list" || verb === "watch" || verb === "deletecollection";
  const name = request.name ?? (isOfMany ? nameSelected(query.fieldSelector) : undefined);
  // A namespace is itself in that namespace.
  const where = namespace ?? (group === "" && resource === "namespaces" ? request.name : undefined);
  return {
    user,
    verb,
    group,
    version,
    resource,
    ...(subresource === undefined ? {} : { subresource }),
    ...(where === undefined ? {} : { namespace: where }),
    ...(name === undefined ? {} : { name }),
    ...(query.fieldSelector === undefined ? {} : { fieldSelector: query.fieldSelector }),
  };
}

/** The name that a field selector asks for: a list of one object is allowed to who may list that object. */
export function nameSelected(fieldSelector: string | null | undefined): string | undefined {
  for (const part of (fieldSelector ?? "").split(",")) {
    const name = /^metadata\.name==?([^=!].*)$/.exec(part.trim())?.[1];
    if (name !== undefined) return name;
  }
  return undefined;
}
