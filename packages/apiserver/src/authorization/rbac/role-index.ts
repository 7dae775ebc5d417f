/** An index of the rules of a role: a request needs only a few look-ups, for any number of rules. */
import type { Attributes } from "../authorizer.ts";
import { type PolicyRule, type RoleObject, ruleAllows } from "./policy-rule.ts";

interface IndexedRules {
  /** Rules by `group/resource`, either of which may be `*`. */
  readonly byResource: ReadonlyMap<string, readonly PolicyRule[]>;
  /** Rules of so many groups and resources that all their pairs would be far more than the rule is long. */
  readonly wide: readonly PolicyRule[];
  readonly ofPaths: readonly PolicyRule[];
}

/** By the list of rules: versions of a role share it, and so do servers with the default roles. */
const indexed = new WeakMap<readonly PolicyRule[], IndexedRules>();
const noRules: readonly PolicyRule[] = Object.freeze([]);

/** True when a rule of the role allows it. */
export function roleAllows(role: RoleObject, attributes: Attributes): boolean {
  const { byResource, wide, ofPaths } = indexOf(role);
  if (attributes.path !== undefined) return ofPaths.some((rule) => ruleAllows(rule, attributes));
  if (wide.some((rule) => ruleAllows(rule, attributes))) return true;
  const { group, resource, subresource = "" } = attributes;
  const whole = subresource === "" ? resource : `${resource}/${subresource}`;
  const names = subresource === "" ? [whole, "*"] : [whole, `*/${subresource}`, "*"];
  for (const name of names) {
    for (const either of [group, "*"]) {
      const rules = byResource.get(`${either} ${name}`);
      if (rules?.some((rule) => ruleAllows(rule, attributes)) === true) return true;
    }
  }
  return false;
}

/** The index of a role, kept as long as its rules are. */
function indexOf(role: RoleObject): IndexedRules {
  const rules = role.rules ?? noRules;
  let index = indexed.get(rules);
  if (index === undefined) {
    index = makeIndex(rules);
    indexed.set(rules, index);
  }
  return index;
}

/** Most pairs of a group and a resource that a rule has in the index. */
const pairsMax = 1000;

function makeIndex(rules: readonly PolicyRule[]): IndexedRules {
  const byResource = new Map<string, PolicyRule[]>();
  const wide: PolicyRule[] = [];
  for (const rule of rules) {
    if ((rule.apiGroups ?? []).length * (rule.resources ?? []).length > pairsMax) {
      wide.push(rule);
      continue;
    }
    for (const group of rule.apiGroups ?? []) {
      for (const resource of rule.resources ?? []) {
        const key = `${group} ${resource}`;
        const list = byResource.get(key);
        if (list === undefined) byResource.set(key, [rule]);
        // A rule that names a resource twice is the last one.
        else if (list.at(-1) !== rule) list.push(rule);
      }
    }
  }
  return { byResource, wide, ofPaths: rules.filter((rule) => (rule.nonResourceURLs ?? []).length > 0) };
}
