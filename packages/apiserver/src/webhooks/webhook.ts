/** Admission webhooks as the server calls them, made from the objects that configure them. */
import {
  type KubeObject,
  type LabelMatcher,
  labelSelectorMatcher,
  type Stored,
} from "@longshore/kube/basics";
import { compileExpression, conditionVariables, type Expression } from "../custom/compile-expression.ts";

/** To which requests a webhook applies (admissionregistration.k8s.io/v1 RuleWithOperations). */
export interface WebhookRule {
  readonly operations: readonly string[];
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  readonly resources: readonly string[];
  readonly scope: string;
}

/** Where a webhook is called (WebhookClientConfig). */
export interface WebhookClientConfig {
  readonly url?: string;
  readonly service?: {
    readonly namespace: string;
    readonly name: string;
    readonly path?: string;
    readonly port?: number;
  };
  /** PEM, in base64; without it the authorities of the system are trusted. */
  readonly caBundle?: string;
}

/** A condition of a webhook, to be evaluated for a request that its rules match. */
export interface WebhookCondition {
  readonly name: string;
  readonly expression: Expression | Error;
}

/** One webhook. */
export interface Webhook {
  /** Its configuration's name, its own, and how often that has occurred before in the configuration. */
  readonly id: string;
  readonly name: string;
  readonly isMutating: boolean;
  readonly clientConfig: WebhookClientConfig;
  readonly rules: readonly WebhookRule[];
  readonly ignoresFailures: boolean;
  readonly matchesEquivalents: boolean;
  readonly namespaceSelector: LabelMatcher;
  readonly objectSelector: LabelMatcher;
  readonly hasNoEffectsOnDryRun: boolean;
  /** Seconds. */
  readonly timeoutSeconds: number;
  /** The version of AdmissionReview: the first of its list that the server speaks. */
  readonly reviewVersion: "v1" | "v1beta1";
  readonly isReinvoked: boolean;
  readonly conditions: readonly WebhookCondition[];
}

interface StoredWebhook {
  readonly name: string;
  readonly clientConfig: WebhookClientConfig;
  readonly rules?: readonly WebhookRule[];
  readonly failurePolicy?: string;
  readonly matchPolicy?: string;
  readonly namespaceSelector?: object;
  readonly objectSelector?: object;
  readonly sideEffects?: string;
  readonly timeoutSeconds?: number;
  readonly admissionReviewVersions?: readonly string[];
  readonly reinvocationPolicy?: string;
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
}

/** The webhooks of a stored configuration, in its order. */
export function webhooksOf(configuration: Stored): readonly Webhook[] {
  const { webhooks = [] } = configuration as KubeObject & { readonly webhooks?: readonly StoredWebhook[] };
  const isMutating = configuration.kind === "MutatingWebhookConfiguration";
  const seen = new Map<string, number>();
  return webhooks.map((webhook) => {
    const count = seen.get(webhook.name) ?? 0;
    seen.set(webhook.name, count + 1);
    return {
      id: `${configuration.metadata.name}/${webhook.name}/${count}`,
      name: webhook.name,
      isMutating,
      clientConfig: webhook.clientConfig,
      rules: webhook.rules ?? [],
      ignoresFailures: webhook.failurePolicy === "Ignore",
      matchesEquivalents: webhook.matchPolicy !== "Exact",
      namespaceSelector: labelSelectorMatcher(webhook.namespaceSelector ?? {}),
      objectSelector: labelSelectorMatcher(webhook.objectSelector ?? {}),
      hasNoEffectsOnDryRun: webhook.sideEffects === "None" || webhook.sideEffects === "NoneOnDryRun",
      timeoutSeconds: webhook.timeoutSeconds ?? 10,
      reviewVersion: (webhook.admissionReviewVersions ?? []).find(isSpoken) ?? "v1",
      isReinvoked: webhook.reinvocationPolicy === "IfNeeded",
      conditions: (webhook.matchConditions ?? []).map(({ name, expression }) => ({
        name,
        expression: compileExpression(expression, conditionVariables),
      })),
    };
  });
}

function isSpoken(version: string): version is Webhook["reviewVersion"] {
  return version === "v1" || version === "v1beta1";
}
