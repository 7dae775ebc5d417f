/**
 * The objects of RBAC, and what their rules mean: whether a rule allows something (rbac/v1 and component-helpers auth/rbac/validation). Pure.
 */
import type { KubeObject } from "@longshore/kube";
import type { Attributes } from "../authorizer.ts";

/** The API group of roles and bindings. */
export const rbacGroup = "rbac.authorization.k8s.io";

/** One rule of a role. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

/** A Role or a ClusterRole. */
export interface RoleObject extends KubeObject {
  readonly rules?: readonly PolicyRule[] | null;
  readonly aggregationRule?: { readonly clusterRoleSelectors?: readonly object[] };
}

/** The subject of a binding. */
export interface Subject {
  readonly kind: string;
  readonly name: string;
  readonly apiGroup?: string;
  readonly namespace?: string;
}

/** The role that a binding grants. */
export interface RoleRef {
  readonly apiGroup: string;
  readonly kind: string;
  readonly name: string;
}

/** A RoleBinding or a ClusterRoleBinding. */
export interface BindingObject extends KubeObject {
  readonly roleRef: RoleRef;
  readonly subjects?: readonly Subject[];
}

/** What stands for everything. */
const all = "*";

const allowsOne = (given: readonly string[] | undefined, wanted: string): boolean =>
  given !== undefined && (given.includes(all) || given.includes(wanted));

/** True when the rule allows it. */
export function ruleAllows(rule: PolicyRule, attributes: Attributes): boolean {
  if (!allowsOne(rule.verbs, attributes.verb)) return false;
  if (attributes.path !== undefined) return pathMatches(rule, attributes.path);
  const { group, resource, subresource = "", name = "" } = attributes;
  if (!allowsOne(rule.apiGroups, group)) return false;
  const whole = subresource === "" ? resource : `${resource}/${subresource}`;
  if (!resourceMatches(rule, whole, subresource)) return false;
  const names = rule.resourceNames ?? [];
  return names.length === 0 || names.includes(name);
}

function resourceMatches({ resources = [] }: PolicyRule, whole: string, subresource: string): boolean {
  return resources.some(
    (given) => given === all || given === whole || (subresource !== "" && given === `*/${subresource}`),
  );
}

function pathMatches({ nonResourceURLs = [] }: PolicyRule, path: string): boolean {
  return nonResourceURLs.some((given) => urlCovers(given, path));
}

function urlCovers(given: string, path: string): boolean {
  if (given === all || given === path) return true;
  const prefix = urlPrefix(given);
  return prefix !== undefined && path.startsWith(prefix);
}

/** How the paths begin that a path ending in `*` stands for; undefined for one that does not. */
export function urlPrefix(given: string): string | undefined {
  if (!given.endsWith(all)) return undefined;
  let end = given.length;
  // All of them, as the reference's strings.TrimRight.
  while (given[end - 1] === all) end--;
  return given.slice(0, end);
}

/** Puts rules of one verb each, of the same resource, together; others stay as they are. */
export function compacted(rules: readonly PolicyRule[]): readonly PolicyRule[] {
  const places = new Map<string, number>();
  const result: PolicyRule[] = [];
  for (const rule of rules) {
    const key = rule.nonResourceURLs === undefined ? JSON.stringify({ ...rule, verbs: [] }) : undefined;
    const place = key === undefined ? undefined : places.get(key);
    if (place === undefined) {
      if (key !== undefined) places.set(key, result.length);
      result.push(rule);
      continue;
    }
    const before = result[place] as PolicyRule;
    result[place] = { ...before, verbs: [...new Set([...before.verbs, ...rule.verbs])] };
  }
  return result;
}

/** The rule as messages show it: `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`. */
export function shownRule(rule: PolicyRule): string {
  const parts = [
    ["APIGroups", rule.apiGroups],
    ["Resources", rule.resources],
    ["NonResourceURLs", rule.nonResourceURLs],
    ["ResourceNames", rule.resourceNames],
    ["Verbs", rule.verbs],
  ] as const;
  const shown = parts.filter(([, list]) => (list ?? []).length > 0);
  return `{${shown.map(([label, list]) => `${label}:${shownList(list ?? [])}`).join(", ")}}`;
}

/** A list as messages show it: `["a" "b"]`. */
export function shownList(list: readonly string[]): string {
  return `[${list.map((item) => JSON.stringify(item)).join(" ")}]`;
}
