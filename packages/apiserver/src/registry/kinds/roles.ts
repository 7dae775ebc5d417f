/** The kinds of access: roles and their bindings, which are stored, and reviews, which are answered at once. */
import type { KubeObject, Stored } from "@longshore/kube";
import { type FieldProblem, invalidValue, requiredValue, unsupportedValue } from "../../api/errors.ts";
import type { Conversion, Kind } from "../../api/kind.ts";
import { subdomainProblems } from "../../api/names.ts";
import { sameJson } from "../../api/own.ts";
import { spendTime } from "../../api/work-time.ts";
import {
  type BindingObject,
  type PolicyRule,
  type RoleObject,
  rbacGroup,
  type Subject,
} from "../../authorization/rbac/policy-rule.ts";
import { type LooseObject, mapItems, withDefaults, withMember } from "./shaping.ts";

function rbac(kind: string, plural: string, rest: Partial<Kind>): Kind {
  return {
    group: rbacGroup,
    versions: ["v1", "v1beta1"],
    kind,
    plural,
    namespaced: true,
    createsOnUpdate: true,
    names: "path-segment",
    ...rest,
  };
}

/** Role. */
export const role: Kind = rbac("Role", "roles", { validate: (o) => roleProblems(o, true) });

/** ClusterRole. */
export const clusterRole: Kind = rbac("ClusterRole", "clusterroles", {
  namespaced: false,
  validate: (o) => roleProblems(o, false),
});

/** RoleBinding. */
export const roleBinding: Kind = rbac("RoleBinding", "rolebindings", {
  defaults: bindingDefaults,
  validate: (o) => bindingProblems(o, ["Role", "ClusterRole"]),
  validateUpdate: roleRefProblems,
});

/** ClusterRoleBinding. */
export const clusterRoleBinding: Kind = rbac("ClusterRoleBinding", "clusterrolebindings", {
  namespaced: false,
  defaults: bindingDefaults,
  validate: (o) => bindingProblems(o, ["ClusterRole"]),
  validateUpdate: roleRefProblems,
});

/** The texts of pkg/apis/rbac/validation. */
function ruleProblems(rule: PolicyRule, at: string, isNamespaced: boolean): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const lacks = (list: readonly string[] | undefined) => (list ?? []).length === 0;
  if (lacks(rule.verbs)) problems.push(requiredValue(`${at}.verbs`, "verbs must contain at least one value"));
  if (!lacks(rule.nonResourceURLs)) {
    const urls = rule.nonResourceURLs ?? [];
    if (isNamespaced) {
      problems.push(
        invalidValue(`${at}.nonResourceURLs`, urls, "namespaced rules cannot apply to non-resource URLs"),
      );
    }
    if (!lacks(rule.apiGroups) || !lacks(rule.resources) || !lacks(rule.resourceNames)) {
      const why = "rules cannot apply to both regular resources and non-resource URLs";
      problems.push(invalidValue(`${at}.nonResourceURLs`, urls, why));
    }
    return problems;
  }
  if (lacks(rule.apiGroups)) {
    problems.push(requiredValue(`${at}.apiGroups`, "resource rules must supply at least one api group"));
  }
  if (lacks(rule.resources)) {
    problems.push(requiredValue(`${at}.resources`, "resource rules must supply at least one resource"));
  }
  return problems;
}

function roleProblems(object: KubeObject, isNamespaced: boolean): FieldProblem[] {
  const rules = (object as RoleObject).rules ?? [];
  return rules.flatMap((rule, i) => ruleProblems(rule, `rules[${i}]`, isNamespaced));
}

/** Groups of subjects and roles that are left out. */
function bindingDefaults(object: KubeObject): KubeObject {
  const filled = withMember(object as LooseObject, "roleRef", (ref) =>
    withDefaults(ref, { apiGroup: rbacGroup }),
  );
  return withMember(filled, "subjects", (subjects) =>
    mapItems(subjects, (subject) =>
      subject.kind === "User" || subject.kind === "Group"
        ? withDefaults(subject, { apiGroup: rbacGroup })
        : subject,
    ),
  );
}

function bindingProblems(object: KubeObject, roleKinds: readonly string[]): FieldProblem[] {
  const { roleRef, subjects = [] } = object as BindingObject;
  const problems: FieldProblem[] = [];
  if ((roleRef?.apiGroup ?? rbacGroup) !== rbacGroup) {
    problems.push(unsupportedValue("roleRef.apiGroup", roleRef.apiGroup, [rbacGroup]));
  }
  if (!roleKinds.includes(roleRef?.kind ?? "")) {
    problems.push(unsupportedValue("roleRef.kind", roleRef?.kind ?? "", roleKinds));
  }
  if ((roleRef?.name ?? "") === "") problems.push(requiredValue("roleRef.name"));
  const isNamespaced = (object.metadata?.namespace ?? "") !== "";
  return [...problems, ...subjects.flatMap((s, i) => subjectProblems(s, `subjects[${i}]`, isNamespaced))];
}

const subjectKinds = ["ServiceAccount", "User", "Group"] as const;

function subjectProblems(subject: Subject, at: string, isNamespaced: boolean): FieldProblem[] {
  spendTime();
  const problems: FieldProblem[] = [];
  const { kind, name = "", apiGroup = "", namespace = "" } = subject;
  if (name === "") problems.push(requiredValue(`${at}.name`));
  if (kind === "ServiceAccount") {
    if (name !== "")
      problems.push(...subdomainProblems(name).map((why) => invalidValue(`${at}.name`, name, why)));
    if (apiGroup !== "") problems.push(unsupportedValue(`${at}.apiGroup`, apiGroup, [""]));
    if (!isNamespaced && namespace === "") problems.push(requiredValue(`${at}.namespace`));
  } else if (kind === "User" || kind === "Group") {
    if (apiGroup !== rbacGroup) problems.push(unsupportedValue(`${at}.apiGroup`, apiGroup, [rbacGroup]));
  } else {
    problems.push(unsupportedValue(`${at}.kind`, kind ?? "", subjectKinds));
  }
  return problems;
}

function roleRefProblems(next: KubeObject, old: Stored): FieldProblem[] {
  const [now, before] = [next as BindingObject, old as Stored as BindingObject];
  return sameJson(now.roleRef, before.roleRef)
    ? []
    : [invalidValue("roleRef", now.roleRef, "cannot change roleRef")];
}

function review(group: string, kind: string, plural: string, rest: Partial<Kind> = {}): Kind {
  return { group, versions: ["v1", "v1beta1"], kind, plural, namespaced: false, virtual: true, ...rest };
}

const authorization = "authorization.k8s.io";

/** v1beta1 has `group` where v1 has `groups`. */
const subjectConversion: Conversion = {
  toStored: (object, version) => (version === "v1beta1" ? withSpecMember(object, "group", "groups") : object),
  fromStored: (object, version) =>
    version === "v1beta1" ? (withSpecMember(object, "groups", "group") as Stored) : object,
};

/** The member of the spec under its other name; what the other version does not know is dropped. */
function withSpecMember(object: KubeObject, from: string, to: string): KubeObject {
  const { spec } = object as LooseObject;
  if (spec === undefined) return object;
  const { [from]: value, [to]: _, ...rest } = spec;
  return { ...object, spec: { ...rest, ...(value !== undefined && { [to]: value }) } } as KubeObject;
}

/** The review kinds: what a user may do, and who the user is. */
export const reviews: readonly Kind[] = [
  review("authentication.k8s.io", "TokenReview", "tokenreviews"),
  review("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", { versions: ["v1"] }),
  review(authorization, "LocalSubjectAccessReview", "localsubjectaccessreviews", {
    namespaced: true,
    conversion: subjectConversion,
  }),
  review(authorization, "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
  review(authorization, "SelfSubjectRulesReview", "selfsubjectrulesreviews"),
  review(authorization, "SubjectAccessReview", "subjectaccessreviews", { conversion: subjectConversion }),
];
