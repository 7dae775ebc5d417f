/** Mutating webhooks, one after the other, each with what the one before has left (plugin/webhook/mutating/dispatcher.go). */
import { KubeApiError, type KubeObject } from "@longshore/kube/basics";
import { internalError } from "../api/errors.ts";
import { parseJson } from "../api/json.ts";
import { storedApiVersion } from "../api/kind.ts";
import { own, sameJson } from "../api/own.ts";
import { applyJsonPatch } from "../patch/apply-json-patch.ts";
import { customBody } from "../registry/custom-body.ts";
import type { WebhookWrite } from "../registry/registry-context.ts";
import { storedForm } from "../registry/served-form.ts";
import { decodeObject } from "../schema/decode-object.ts";
import { callWebhook, WebhookFailure } from "./call-webhook.ts";
import type { DispatchContext } from "./dispatch-context.ts";
import type { Webhook } from "./webhook.ts";
import { conditionsHold } from "./webhook-conditions.ts";
import { inForm, type WebhookForm, webhookForm, webhookQuestion } from "./webhook-question.ts";

/** What a first round leaves for the second. */
export interface MutationRound {
  readonly object: KubeObject | undefined;
  /** Those that want to see what has changed after them, and what has changed already. */
  readonly reinvocable: ReadonlySet<string>;
  readonly toReinvoke: ReadonlySet<string>;
}

/**
 * Calls all that apply.
 * @param previous the first round, where this is the second: only those that something has changed after are called
 * @throws KubeApiError when one refuses, or cannot be called and failures are not ignored
 */
export async function runMutatingWebhooks(
  context: DispatchContext,
  webhooks: readonly Webhook[],
  write: WebhookWrite,
  previous?: MutationRound,
): Promise<MutationRound> {
  const reinvocable = new Set(previous?.reinvocable);
  let toReinvoke = new Set(previous?.toReinvoke);
  if (previous !== undefined && !sameJson(previous.object, write.object)) {
    toReinvoke = new Set([...toReinvoke, ...reinvocable]);
  }
  let { object } = write;
  for (const webhook of webhooks) {
    if (previous !== undefined && !toReinvoke.has(webhook.id)) continue;
    const now = object === undefined ? write : { ...write, object };
    const asked = context.inTime(() => questionFor(context, webhook, now));
    if (asked === undefined) continue;
    toReinvoke.delete(webhook.id);
    const changed = await changedBy(context, webhook, now, asked);
    if (changed !== undefined) {
      object = changed;
      for (const id of reinvocable) toReinvoke.add(id);
    }
    if (webhook.isReinvoked) reinvocable.add(webhook.id);
  }
  return { object, reinvocable, toReinvoke };
}

/** What the webhook is to be asked; undefined where it does not apply. @throws KubeApiError */
export function questionFor({ kinds, store }: DispatchContext, webhook: Webhook, write: WebhookWrite) {
  const form = webhookForm(webhook, write, kinds, store);
  if (form === undefined) return undefined;
  const question = webhookQuestion(write, form, write.object);
  return conditionsHold(webhook, question) ? { form, question } : undefined;
}

/** The object as the webhook changes it; undefined where it does not, or could not be called and failures are ignored. */
async function changedBy(
  context: DispatchContext,
  webhook: Webhook,
  write: WebhookWrite,
  { form, question }: NonNullable<ReturnType<typeof questionFor>>,
): Promise<KubeObject | undefined> {
  try {
    const { patch, patchType } = await callWebhook(context, webhook, question);
    if (patch === undefined) return undefined;
    return context.inTime(() => patched(context, webhook, write, form, { patch, patchType }));
  } catch (error) {
    throwUnlessIgnored(context, webhook, error);
    return undefined;
  }
}

/** Throws what the client is to see, unless the webhook could not be called and its failures are ignored. */
export function throwUnlessIgnored({ env }: DispatchContext, webhook: Webhook, error: unknown): void {
  if (!(error instanceof WebhookFailure)) throw error;
  if (!webhook.ignoresFailures) throw internalError(error.message);
  env.logger.warn("a webhook could not be called, which its failure policy ignores", {
    webhook: webhook.name,
    error: error.message,
  });
}

/** The object with the patch, as it is stored; undefined where the patch changes nothing. @throws KubeApiError 500 */
function patched(
  { version }: DispatchContext,
  webhook: Webhook,
  write: WebhookWrite,
  form: WebhookForm,
  { patch, patchType }: { readonly patch: string; readonly patchType: string },
): KubeObject | undefined {
  const steps = inWords(() => parseJson(patch));
  if (steps === null || (Array.isArray(steps) && steps.length === 0)) return undefined;
  const { object, request, isBody } = write;
  if (object === undefined) {
    const name = JSON.stringify(webhook.name);
    throw internalError(
      `admission webhook ${name} attempted to modify the object, which is not supported for this operation`,
    );
  }
  if (patchType !== "JSONPatch") {
    throw new WebhookFailure(webhook.name, `unsupported patch type ${JSON.stringify(patchType)}`);
  }
  const before = inForm(write, form, object);
  const after = inWords(() => applyJsonPatch(before, steps));
  if (typeof after !== "object" || after === null || Array.isArray(after)) {
    throw internalError(`the patch of webhook ${JSON.stringify(webhook.name)} leaves no object`);
  }
  if (sameJson(before, after)) return undefined;
  const { apiVersion, kind } = before;
  const whole = { ...(after as KubeObject), apiVersion, kind } as KubeObject;
  if (isBody === true) return own(whole);
  const { of } = form;
  const stored = inWords(() => {
    if (of.custom !== undefined) {
      const { fields: _, ...rest } = request;
      return customBody({ ...rest, of, version: form.version, fromWire: true }, whole);
    }
    const decoded = decodeObject(of.group, of.kind, whole, version, form.version) as KubeObject;
    return storedForm(of, form.version, decoded);
  });
  const named = { ...stored, apiVersion: storedApiVersion(request.of), kind: request.of.kind } as KubeObject;
  return own(request.of.defaults?.(named) ?? named);
}

/** What fails for a webhook's patch is an error of the server's side, not of the client's. */
function inWords<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof KubeApiError && error.code === 504) throw error;
    throw internalError((error as Error).message);
  }
}
