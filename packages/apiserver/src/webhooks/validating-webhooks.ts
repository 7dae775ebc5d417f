/** Validating webhooks, all at once (plugin/webhook/validating/dispatcher.go). */
import type { WebhookWrite } from "../registry/registry-context.ts";
import { callWebhook } from "./call-webhook.ts";
import type { DispatchContext } from "./dispatch-context.ts";
import { questionFor, throwUnlessIgnored } from "./mutating-webhooks.ts";
import type { Webhook } from "./webhook.ts";

/** Calls all that apply. @throws KubeApiError of the first, in the order of their names, that refuses or cannot be called */
export async function runValidatingWebhooks(
  context: DispatchContext,
  webhooks: readonly Webhook[],
  write: WebhookWrite,
): Promise<void> {
  const asked = context.inTime(() =>
    webhooks.flatMap((webhook) => {
      const found = questionFor(context, webhook, write);
      return found === undefined ? [] : [{ webhook, question: found.question }];
    }),
  );
  const outcomes = await Promise.allSettled(
    asked.map(({ webhook, question }) => callWebhook(context, webhook, question)),
  );
  for (const [i, outcome] of outcomes.entries()) {
    const { webhook } = asked[i] as (typeof asked)[number];
    if (outcome.status === "rejected") throwUnlessIgnored(context, webhook, outcome.reason);
  }
}
