/** Authorization: the attributes, the decision, and how several authorizers are combined. */
import { type FieldRequirement, parseFieldSelector, SelectorError } from "@longshore/kube/basics";
import type { ApiRequest, Target, UserInfo } from "../api/api-request.ts";
import { apiError, forbidden } from "../api/errors.ts";
import { pathSegmentProblems } from "../api/names.ts";

/** The attributes of a request for a resource. */
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
  /** What the field selector of a list, watch or deletion of many demands. */
  readonly fields?: readonly FieldRequirement[];
  readonly path?: undefined;
}

/** The attributes of a request for a non-resource path. */
export interface PathAttributes {
  readonly user: UserInfo;
  /** The method of the request, in lower case. */
  readonly verb: string;
  readonly path: string;
}

/** The input of an authorizer. */
export type Attributes = ResourceAttributes | PathAttributes;

/** The answer: allowed, or that this authorizer sees no ground for it. */
export interface Decision {
  readonly allowed: boolean;
  /** Why, for people; of a refusal it becomes part of the message. */
  readonly reason: string;
}

/**
 * Decides whether a request is allowed. Synchronous: it uses only data in memory, as of the last commit. It does not throw
 * for a request that it does not allow: the caller answers 403 with the reason ({@link assertAllowed}). Called once for each
 * request from outside, after authentication and before admission, and for access reviews.
 */
export interface Authorizer {
  authorize(attributes: Attributes): Decision;
}

/** The group whose members may do everything. */
export const mastersGroup = "system:masters";

/** Lets the members of {@link mastersGroup} do everything (apiserver's PrivilegedGroups). */
export const mastersAuthorizer: Authorizer = {
  authorize: ({ user }) => ({ allowed: user.groups.includes(mastersGroup), reason: "" }),
};

/** Allowed when one of `authorizers` allows it, in order; the reasons of refusals are joined. */
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

/** The attributes of a request from this process, which has no URL path. */
export function attributesOfRequest(request: ApiRequest): ResourceAttributes {
  return attributesOf(request.user, request, request.query.fieldSelector);
}

/** The attributes that a request for `asked` is authorized with (apiserver endpoints/request RequestInfo). */
export function attributesOf(
  user: UserInfo,
  asked: Omit<Target, "verb"> & { readonly verb: string },
  fieldSelector: string | undefined,
): ResourceAttributes {
  const { verb, group, version, resource, subresource } = asked;
  const isRead = verb === "list" || verb === "watch";
  const fields = isRead || verb === "deletecollection" ? selectedFields(fieldSelector) : undefined;
  // The right to list one object by name covers a list that selects that name; for deletecollection names do not count.
  const name = asked.name ?? (isRead ? nameSelected(fields) : undefined);
  // A namespace is itself in that namespace.
  const namespace = asked.namespace ?? (resource === "namespaces" ? asked.name : undefined);
  return {
    user,
    verb,
    group,
    version,
    resource,
    ...(subresource === undefined ? {} : { subresource }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(fields === undefined ? {} : { fields }),
  };
}

/** What a field selector demands, read as the one who selects reads it; nothing when it cannot be read. */
function selectedFields(text: string | undefined): readonly FieldRequirement[] | undefined {
  if (text === undefined || text === "") return undefined;
  try {
    return parseFieldSelector(text).requirements;
  } catch (error) {
    if (error instanceof SelectorError) return undefined;
    throw error;
  }
}

/** The one value that the selected objects have in the field, if the selector demands one. */
export function valueSelected(
  fields: readonly FieldRequirement[] | undefined,
  field: string,
): string | undefined {
  return fields?.find((one) => one.field === field && one.operator === "=")?.value;
}

function nameSelected(fields: readonly FieldRequirement[] | undefined): string | undefined {
  const name = valueSelected(fields, "metadata.name");
  return name === undefined || pathSegmentProblems(name).length > 0 ? undefined : name;
}
