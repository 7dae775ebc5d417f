/** Whether a webhook is called for a request (apiserver plugin/webhook: generic/webhook.go, predicates, matchconditions). */
import type { KubeObject, LabelMatcher } from "@longshore/kube";
import { notFound } from "../api/errors.ts";
import { type Kind, tableKey } from "../api/kind.ts";
import type { WebhookOperation, WebhookWrite } from "../registry/registry-context.ts";
import type { Store } from "../storage/store.ts";
import type { WebhookRule } from "./webhook.ts";

/** What a rule is about. */
export interface MatchedResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly operation: WebhookOperation;
}

const holds = (list: readonly string[], value: string) => list.includes("*") || list.includes(value);

/** Whether the rule names the resource and the operation (rules.Matcher), wherever the object is. */
export function ruleMatches(rule: WebhookRule, of: MatchedResource): boolean {
  return (
    holds(rule.operations, of.operation) &&
    holds(rule.apiGroups, of.group) &&
    holds(rule.apiVersions, of.version) &&
    rule.resources.some((named) => {
      const [resource = "", subresource = ""] = named.split("/", 2);
      return (
        (resource === "*" || resource === of.resource) &&
        (subresource === "*" || subresource === of.subresource)
      );
    })
  );
}

/** Whether the rule takes objects of a namespace, or of the cluster. A namespace is of the cluster. */
export function scopeMatches({ scope }: WebhookRule, isNamespaced: boolean): boolean {
  return scope === "*" || (scope === "Namespaced") === isNamespaced;
}

/**
 * Whether the selector takes the namespace of the object, or the object where it is a namespace; objects of the cluster are
 * always taken. @throws KubeApiError 404 when the namespace is not there
 */
export function namespaceMatches(selector: LabelMatcher, store: Store, write: WebhookWrite): boolean {
  if (selector.isEmpty) return true;
  const { of, namespace = "" } = write.request;
  if (isNamespaceKind(of)) return selector.matches((write.object ?? write.old)?.metadata?.labels);
  if (namespace === "") return true;
  const object = store.table("namespaces").get("", namespace);
  if (object === undefined) throw notFound({ group: "", resource: "namespaces" }, namespace);
  return selector.matches(object.metadata.labels);
}

/** Whether the selector takes the object as it is or as it was. */
export function objectMatches(selector: LabelMatcher, { object, old }: WebhookWrite): boolean {
  if (selector.isEmpty) return true;
  const takes = (one: KubeObject | undefined) => one !== undefined && selector.matches(one.metadata?.labels);
  return takes(object) || takes(old);
}

/** True for the kind Namespace. */
export function isNamespaceKind(of: Kind): boolean {
  return tableKey(of) === "namespaces";
}
