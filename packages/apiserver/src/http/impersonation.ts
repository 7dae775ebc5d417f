/**
 * Acting as another user: the `Impersonate-…` headers of a request, each of which must be allowed by the verb
 * `impersonate` (apiserver endpoints/filters/impersonation).
 */
import { apiError } from "../api/errors.ts";
import { type Authorizer, assertAllowed, type ResourceAttributes } from "../authorization/authorizer.ts";
import { labelProblems, subdomainProblems } from "../registry/names.ts";
import type { UserInfo } from "../registry/request.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import type { Request } from "./exchange.ts";

interface Wish {
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
  const wish = wishOf(request, version);
  if (wish === undefined) return user;
  if (wish.user === "") {
    throw apiError(500, "", "groups, a uid or extra values are to be impersonated, but no user is");
  }
  for (const attributes of attributesOf(user, wish)) assertAllowed(authorizer, attributes);
  const account = accountOf(wish.user);
  const groups = [...wish.groups];
  if (account !== undefined && groups.length === 0) {
    groups.push("system:serviceaccounts", `system:serviceaccounts:${account[0]}`);
  }
  const isAnonymous = wish.user === "system:anonymous";
  const everyone = isAnonymous ? "system:unauthenticated" : "system:authenticated";
  if (!groups.includes("system:authenticated") && !groups.includes("system:unauthenticated")) {
    groups.push(everyone);
  }
  return {
    name: wish.user,
    groups,
    ...(wish.uid === "" ? {} : { uid: wish.uid }),
    ...(Object.keys(wish.extra).length === 0 ? {} : { extra: wish.extra }),
  };
}

/** The headers as received: in a joined list, commas in names would look like separators. */
function wishOf({ headers, rawHeaders }: Request, version: EmulatedVersion): Wish | undefined {
  let isWish = false;
  for (const name in headers) if (name.startsWith("impersonate-")) isWish = true;
  if (!isWish) return undefined;
  let user = "";
  let uid = "";
  const groups: string[] = [];
  const extra: Record<string, string[]> = Object.create(null) as Record<string, string[]>;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase();
    const value = rawHeaders[i + 1] as string;
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

function* attributesOf(user: UserInfo, wish: Wish): Iterable<ResourceAttributes> {
  const base = { user, verb: "impersonate", group: "" };
  const account = accountOf(wish.user);
  if (account !== undefined) {
    yield { ...base, resource: "serviceaccounts", namespace: account[0], name: account[1] };
  } else {
    yield { ...base, resource: "users", name: wish.user };
  }
  for (const name of wish.groups) yield { ...base, resource: "groups", name };
  const group = "authentication.k8s.io";
  for (const [key, values] of Object.entries(wish.extra)) {
    for (const name of values) yield { ...base, group, resource: "userextras", subresource: key, name };
  }
  if (wish.uid !== "") yield { ...base, group, resource: "uids", name: wish.uid };
}
