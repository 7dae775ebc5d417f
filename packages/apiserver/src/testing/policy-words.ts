/** Rules and requests of access in a few words, for tests. */
import type { Attributes } from "../authorization/authorizer.ts";
import type { PolicyRule } from "../authorization/rbac/policy-rule.ts";

/** The user of a request. */
export const user = { name: "u", groups: [] };
/** A rule about resources; lists are separated by commas. */
export const rule = (verbs: string, resources: string, groups = "", names?: string): PolicyRule => ({
  verbs: verbs.split(","),
  apiGroups: groups.split(","),
  resources: resources.split(","),
  ...(names === undefined ? {} : { resourceNames: names.split(",") }),
});
/** A rule about paths that are no resources. */
export const paths = (verbs: string, urls: string): PolicyRule => ({
  verbs: verbs.split(","),
  nonResourceURLs: urls.split(","),
});
/** What a request asks for; `pods/log` is a sub-resource. */
export const ask = (verb: string, what: string, name?: string, group = ""): Attributes => {
  const [resource = "", subresource] = what.split("/");
  return {
    user,
    verb,
    group,
    resource,
    ...(subresource === undefined ? {} : { subresource }),
    ...(name === undefined ? {} : { name }),
  };
};
