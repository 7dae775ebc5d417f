/**
 * Acting as another user: the `Impersonate-…` headers of a request, each of which must be allowed by the verb
 * `impersonate` (apiserver endpoints/filters/impersonation).
 */

import type { UserInfo } from "../api/api-request.ts";
import { apiError } from "../api/errors.ts";
import { labelProblems, subdomainProblems } from "../api/names.ts";
import { type Authorizer, assertAllowed, type ResourceAttributes } from "../authorization/authorizer.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import type { Request } from "./exchange.ts";

/** What the headers of a request name. */
interface ImpersonatedUser {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

const extraPrefix = "impersonate-extra-";
/** The namespace and name in the name of a service account's user; undefined where no account could have them. */
function accountOf(user: string): readonly [namespace: string, name: string] | undefined {
  const [, namespace = "", name = ""] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user) ?? [];
  if (labelProblems(namespace).length > 0 || subdomainProblems(name).length > 0) return undefined;
  return [namespace, name];
}

/** The user that the request acts as: `user` unless it asks for another. @throws KubeApiError 403, 500 */
export function impersonated(
  authorizer: Authorizer,
  version: EmulatedVersion,
  user: UserInfo,
  request: Request,
): UserInfo {
  const requested = impersonatedUser(request, version);
  if (requested === undefined) return user;
  if (requested.user === "") {
    throw apiError(500, "", "groups, a uid or extra values are to be impersonated, but no user is");
  }
  for (const attributes of attributesOf(user, requested)) assertAllowed(authorizer, attributes);
  const account = accountOf(requested.user);
  const groups = [...requested.groups];
  // As the reference: groups that are named take the place of those that the account has.
  if (account !== undefined && groups.length === 0) {
    groups.push("system:serviceaccounts", `system:serviceaccounts:${account[0]}`);
  }
  const isAnonymous = requested.user === "system:anonymous";
  const everyone = isAnonymous ? "system:unauthenticated" : "system:authenticated";
  if (!groups.includes("system:authenticated") && !groups.includes("system:unauthenticated")) {
    groups.push(everyone);
  }
  return {
    name: requested.user,
    groups,
    ...(requested.uid === "" ? {} : { uid: requested.uid }),
    ...(Object.keys(requested.extra).length === 0 ? {} : { extra: requested.extra }),
  };
}

/** The headers as received: in a joined list, commas in names would look like separators. */
function impersonatedUser(
  { headers, rawHeaders }: Request,
  version: EmulatedVersion,
): ImpersonatedUser | undefined {
  let isImpersonation = false;
  for (const name in headers) if (name.startsWith("impersonate-")) isImpersonation = true;
  if (!isImpersonation) return undefined;
  let user = "";
  let uid = "";
  const groups: string[] = [];
  const extra: Record<string, string[]> = Object.create(null) as Record<string, string[]>;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase();
    const value = rawHeaders[i + 1] as string;
    // Of several values the first one counts (Go's Header.Get).
    if (name === "impersonate-user") user ||= value;
    else if (name === "impersonate-group") groups.push(value);
    else if (name === "impersonate-uid" && version.has("impersonatedUid")) uid ||= value;
    else if (name.startsWith(extraPrefix)) {
      const key = unescaped(name.slice(extraPrefix.length));
      extra[key] = [...(extra[key] ?? []), value];
    }
  }
  if (user === "" && uid === "" && groups.length === 0 && Object.keys(extra).length === 0) return undefined;
  return { user, uid, groups, extra: { ...extra } };
}

function unescaped(key: string): string {
  try {
    return decodeURIComponent(key).toLowerCase();
  } catch {
    return key;
  }
}

function* attributesOf(user: UserInfo, requested: ImpersonatedUser): Iterable<ResourceAttributes> {
  const base = { user, verb: "impersonate", group: "" };
  const account = accountOf(requested.user);
  if (account !== undefined) {
    yield { ...base, resource: "serviceaccounts", namespace: account[0], name: account[1] };
  } else {
    yield { ...base, resource: "users", name: requested.user };
  }
  for (const name of requested.groups) yield { ...base, resource: "groups", name };
  const group = "authentication.k8s.io";
  for (const [key, values] of Object.entries(requested.extra)) {
    for (const name of values) yield { ...base, group, resource: "userextras", subresource: key, name };
  }
  if (requested.uid !== "") yield { ...base, group, resource: "uids", name: requested.uid };
}
