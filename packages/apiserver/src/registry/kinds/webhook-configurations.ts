/**
 * MutatingWebhookConfiguration and ValidatingWebhookConfiguration (kubernetes pkg/apis/admissionregistration: v1/defaults.go,
 * validation/validation.go). What becomes of them is in `webhooks/`.
 */
import type { KubeObject } from "@longshore/kube";
import {
  duplicateValue,
  type FieldProblem,
  invalidValue,
  requiredValue,
  tooManyItems,
  unsupportedValue,
} from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { dns1035LabelProblems, qualifiedNameProblems, subdomainProblems } from "../../api/names.ts";
import { spendTime } from "../../api/work-time.ts";
import { compileExpression, conditionVariables } from "../../custom/compile-expression.ts";
import { labelSelectorProblems } from "./label-selector-problems.ts";
import { type Loose, type LooseObject, mapItems, withDefaults, withMember } from "./shaping.ts";
import { webhookServiceProblems, webhookUrlProblems } from "./webhook-client-problems.ts";
import { webhookRuleProblems } from "./webhook-rule-problems.ts";

const hookDefaults = {
  failurePolicy: "Fail",
  matchPolicy: "Equivalent",
  namespaceSelector: {},
  objectSelector: {},
  timeoutSeconds: 10,
};

function withHookDefaults(object: KubeObject, more: Loose): KubeObject {
  return withMember(object as LooseObject, "webhooks", (webhooks) =>
    mapItems(webhooks, (webhook) => {
      const filled = withDefaults(webhook, { ...hookDefaults, ...more });
      const withScopes = withMember(filled, "rules", (rules) =>
        mapItems(rules, (rule) => withDefaults(rule, { scope: "*" })),
      );
      return withMember(withScopes, "clientConfig", (config) =>
        withMember(config, "service", (service) => withDefaults(service, { port: 443 })),
      );
    }),
  );
}

/** Versions of AdmissionReview that the server speaks. */
export const reviewVersions: readonly string[] = ["v1", "v1beta1"];

/** Most conditions of a webhook. */
const conditionsMax = 64;

function configurationProblems(object: KubeObject, isMutating: boolean): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const names = new Set<string>();
  for (const [i, webhook] of (((object as LooseObject).webhooks ?? []) as readonly Loose[]).entries()) {
    spendTime();
    const at = `webhooks[${i}]`;
    problems.push(...webhookProblems(webhook, at, isMutating));
    problems.push(
      ...reviewVersionProblems(webhook.admissionReviewVersions ?? [], `${at}.admissionReviewVersions`),
    );
    const { name = "" } = webhook;
    if (name !== "" && names.has(name)) problems.push(duplicateValue(`${at}.name`, name));
    names.add(name);
  }
  return problems;
}

/** The member, where it is given, is one of these. */
function oneOf(webhook: Loose, member: string, known: readonly string[], at: string): FieldProblem[] {
  const value = webhook[member];
  if (value === undefined || known.includes(value)) return [];
  return [unsupportedValue(`${at}.${member}`, value, known)];
}

function webhookProblems(webhook: Loose, at: string, isMutating: boolean): FieldProblem[] {
  const problems = webhookNameProblems(webhook.name ?? "", `${at}.name`);
  for (const [i, rule] of ((webhook.rules ?? []) as readonly Loose[]).entries()) {
    problems.push(...webhookRuleProblems(rule, `${at}.rules[${i}]`));
  }
  problems.push(...oneOf(webhook, "failurePolicy", ["Fail", "Ignore"], at));
  problems.push(...oneOf(webhook, "matchPolicy", ["Equivalent", "Exact"], at));
  const sideEffects = ["None", "NoneOnDryRun"];
  if (webhook.sideEffects === undefined) {
    problems.push(requiredValue(`${at}.sideEffects`, `must specify one of ${sideEffects.join(", ")}`));
  } else problems.push(...oneOf(webhook, "sideEffects", sideEffects, at));
  const { timeoutSeconds } = webhook;
  if (timeoutSeconds !== undefined && (timeoutSeconds > 30 || timeoutSeconds < 1)) {
    const why = "the timeout value must be between 1 and 30 seconds";
    problems.push(invalidValue(`${at}.timeoutSeconds`, timeoutSeconds, why));
  }
  problems.push(...labelSelectorProblems(webhook.namespaceSelector, `${at}.namespaceSelector`));
  problems.push(...labelSelectorProblems(webhook.objectSelector, `${at}.objectSelector`));
  if (isMutating) problems.push(...oneOf(webhook, "reinvocationPolicy", ["IfNeeded", "Never"], at));
  const { url, service } = (webhook.clientConfig ?? {}) as Loose;
  const client = `${at}.clientConfig`;
  if ((url === undefined) === (service === undefined)) {
    problems.push(requiredValue(client, "exactly one of url or service is required"));
  } else if (url !== undefined) problems.push(...webhookUrlProblems(url, `${client}.url`));
  else problems.push(...webhookServiceProblems(service, `${client}.service`));
  problems.push(...conditionProblems(webhook.matchConditions ?? [], `${at}.matchConditions`));
  return problems;
}

/** A name with a domain: at least three segments (util/validation IsFullyQualifiedName). */
function webhookNameProblems(name: string, at: string): FieldProblem[] {
  if (name === "") return [requiredValue(at)];
  const why = subdomainProblems(name);
  if (why.length > 0) return [invalidValue(at, name, why.join(","))];
  if (name.split(".").length >= 3) return [];
  return [invalidValue(at, name, "should be a domain with at least three segments separated by dots")];
}

function reviewVersionProblems(versions: readonly string[], at: string): FieldProblem[] {
  const known = reviewVersions.join(", ");
  if (versions.length === 0) return [requiredValue(at, `must specify one of ${known}`)];
  const problems: FieldProblem[] = [];
  const seen = new Set<string>();
  for (const [i, version] of versions.entries()) {
    if (seen.has(version)) {
      problems.push(invalidValue(`${at}[${i}]`, version, "duplicate version"));
      continue;
    }
    seen.add(version);
    problems.push(...dns1035LabelProblems(version).map((why) => invalidValue(`${at}[${i}]`, version, why)));
  }
  if (!versions.some((version) => reviewVersions.includes(version))) {
    problems.push(invalidValue(at, versions, `must include at least one of ${known}`));
  }
  return problems;
}

function conditionProblems(conditions: readonly Loose[], at: string): FieldProblem[] {
  if (conditions.length > conditionsMax) return [tooManyItems(at, conditions.length, conditionsMax)];
  const problems: FieldProblem[] = [];
  const names = new Set<string>();
  for (const [i, { name = "", expression = "" }] of conditions.entries()) {
    const here = `${at}[${i}]`;
    if (expression.trim() === "") problems.push(requiredValue(`${here}.expression`));
    else {
      const compiled = compileExpression(expression, conditionVariables);
      if (compiled instanceof Error) {
        const why = `compilation failed: ${compiled.message}`;
        problems.push(invalidValue(`${here}.expression`, expression, why));
      } else if (compiled.type !== "bool" && compiled.type !== "dyn") {
        const why = "must evaluate to bool";
        problems.push(invalidValue(`${here}.expression`, expression, why));
      }
    }
    if (name === "") problems.push(requiredValue(`${here}.name`));
    else {
      problems.push(...qualifiedNameProblems(name).map((why) => invalidValue(`${here}.name`, name, why)));
      if (names.has(name)) problems.push(duplicateValue(`${here}.name`, name));
      names.add(name);
    }
  }
  return problems;
}

function configuration(kind: string, plural: string, isMutating: boolean, more: Loose): Kind {
  return {
    group: "admissionregistration.k8s.io",
    versions: ["v1"],
    kind,
    plural,
    namespaced: false,
    countsGenerations: true,
    updateNeedsVersion: true,
    anyFinalizers: true,
    defaults: (object) => withHookDefaults(object, more),
    validate: (object) => configurationProblems(object, isMutating),
  };
}

/** MutatingWebhookConfiguration. */
export const mutatingWebhookConfiguration: Kind = configuration(
  "MutatingWebhookConfiguration",
  "mutatingwebhookconfigurations",
  true,
  { reinvocationPolicy: "Never" },
);

/** ValidatingWebhookConfiguration. */
export const validatingWebhookConfiguration: Kind = configuration(
  "ValidatingWebhookConfiguration",
  "validatingwebhookconfigurations",
  false,
  {},
);
