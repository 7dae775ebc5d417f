/**
 * Whether a webhook is asked about a write, and in which form: as its rules name the resource, or, where it takes
 * equivalents, in the version or the group that it names (apiserver plugin/webhook/generic ShouldCallHook).
 */
import type { KubeObject, Stored } from "@longshore/kube";
import type { Kind } from "../api/kind.ts";
import { type KindTable, kindInVersion } from "../api/kind-table.ts";
import { isDryRun, type WebhookWrite } from "../registry/registry-context.ts";
import { servedForm } from "../registry/served-form.ts";
import type { Store } from "../storage/store.ts";
import type { ReviewedResource, ReviewQuestion } from "./admission-review.ts";
import { equivalentsOf } from "./configured-webhooks.ts";
import type { Webhook } from "./webhook.ts";
import {
  isNamespaceKind,
  namespaceMatches,
  objectMatches,
  ruleMatches,
  scopeMatches,
} from "./webhook-matches.ts";

/** The kind and the version in which a webhook sees an object. */
export interface WebhookForm {
  readonly of: Kind;
  readonly version: string;
}

/**
 * The form in which the webhook is asked about the write; undefined where it is not. Its conditions are another question.
 * @throws KubeApiError 404 when its selector needs the labels of a namespace that is not there
 */
export function webhookForm(
  webhook: Webhook,
  write: WebhookWrite,
  kinds: KindTable,
  store: Store,
): WebhookForm | undefined {
  const form = formByRules(webhook, write, kinds);
  if (form === undefined || !objectMatches(webhook.objectSelector, write)) return undefined;
  return namespaceMatches(webhook.namespaceSelector, store, write) ? form : undefined;
}

function formByRules(webhook: Webhook, write: WebhookWrite, kinds: KindTable): WebhookForm | undefined {
  const { request, operation } = write;
  const { of, version, subresource = "", namespace = "" } = request;
  const isNamespaced = namespace !== "" && !isNamespaceKind(of);
  const matches = (rule: Webhook["rules"][number], form: WebhookForm) =>
    scopeMatches(rule, isNamespaced) &&
    ruleMatches(rule, {
      group: form.of.group,
      version: form.version,
      resource: form.of.plural,
      subresource,
      operation,
    });
  const exact = { of, version };
  if (webhook.rules.some((rule) => matches(rule, exact))) return exact;
  if (!webhook.matchesEquivalents || write.isBody === true) return undefined;
  const others = [of, ...equivalentsOf(kinds, of)].flatMap((kind) =>
    kind.versions.map((v) => ({ of: kindInVersion(kind, v), version: v })),
  );
  for (const rule of webhook.rules) {
    const form = others.find((other) => matches(rule, other));
    if (form !== undefined) return form;
  }
  return undefined;
}

/** What the webhook is asked. @param object in the place of the write's, as the webhooks before it have left it */
export function webhookQuestion(
  write: WebhookWrite,
  form: WebhookForm,
  object: KubeObject | undefined,
): ReviewQuestion {
  const { request, old, operation } = write;
  const { user, name = object?.metadata?.name ?? "" } = request;
  const namespace = request.namespace ?? (isNamespaceKind(request.of) ? name : "");
  return {
    operation,
    as: reviewedResource(write, form),
    requested: reviewedResource(write, request),
    namespace,
    name,
    user,
    isDryRun: isDry(write),
    options: optionsOf(write),
    object: object && inForm(write, form, object),
    old: old && inForm(write, form, old),
  };
}

/** The object as the webhook sees it. */
export function inForm(
  { isBody }: WebhookWrite,
  { of, version }: WebhookForm,
  object: KubeObject,
): KubeObject {
  return isBody === true ? object : servedForm(of, version, object as Stored);
}

function reviewedResource(
  { request, object, isBody }: WebhookWrite,
  { of, version }: WebhookForm,
): ReviewedResource {
  const { subresource = "" } = request;
  const resource = { group: of.group, version, resource: of.plural, subresource };
  const kind = { kindGroup: of.group, kindVersion: version, kind: of.kind };
  if (isBody !== true) return { ...resource, ...kind };
  const known = of.subresources?.[subresource];
  const [group = "", ofBody = ""] = splitVersion(object?.apiVersion ?? "");
  return {
    ...resource,
    kindGroup: ofBody === "" ? (known?.group ?? kind.kindGroup) : group,
    kindVersion: ofBody === "" ? (known?.version ?? version) : ofBody,
    kind: object?.kind ?? known?.kind ?? of.kind,
  };
}

function splitVersion(apiVersion: string): readonly [group: string, version: string] {
  const slash = apiVersion.indexOf("/");
  return slash < 0 ? ["", apiVersion] : [apiVersion.slice(0, slash), apiVersion.slice(slash + 1)];
}

function isDry({ request, options }: WebhookWrite): boolean {
  const { dryRun } = (options ?? {}) as { readonly dryRun?: readonly string[] };
  return isDryRun(request) || (dryRun?.includes("All") ?? false);
}

/** The options of the request, as an object; a connection has none (meta/v1 CreateOptions, UpdateOptions, DeleteOptions). */
function optionsOf({ operation, request, options }: WebhookWrite): KubeObject | undefined {
  if (operation === "CONNECT") return undefined;
  const { dryRun, fieldManager } = request.query;
  const apiVersion = "meta.k8s.io/v1";
  if (operation === "DELETE") return { ...options, kind: "DeleteOptions", apiVersion } as KubeObject;
  return {
    kind: operation === "CREATE" ? "CreateOptions" : "UpdateOptions",
    apiVersion,
    ...(dryRun === undefined || dryRun.length === 0 ? {} : { dryRun }),
    ...(fieldManager === undefined ? {} : { fieldManager }),
  } as KubeObject;
}
