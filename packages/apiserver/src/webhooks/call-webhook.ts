/** One call of one webhook: what it was asked, and what its answer comes to (apiserver plugin/webhook mutating, validating). */

import { KubeApiError, type Status } from "@longshore/kube/basics";
import { type RuntimeEnv, withDeadline } from "@longshore/runtime/basics";
import { apiError, badRequest } from "../api/errors.ts";
import type { Store } from "../storage/store.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import {
  type ReviewAnswer,
  ReviewProblem,
  type ReviewQuestion,
  readReview,
  reviewRequest,
  reviewText,
} from "./admission-review.ts";
import { callProblem, replyProblem } from "./call-problems.ts";
import type { WebhookClient } from "./http-webhook-client.ts";
import type { Webhook } from "./webhook.ts";
import { shownUrl, type WebhookAddress, webhookAddress } from "./webhook-address.ts";
import type { WebhookMetrics } from "./webhook-metrics.ts";

/** What calls need. */
export interface CallContext {
  readonly env: Pick<RuntimeEnv, "clock" | "random" | "logger">;
  readonly store: Store;
  readonly client: WebhookClient;
  readonly metrics: WebhookMetrics;
  readonly version: EmulatedVersion;
  /** Aborts when the client is gone, or the time of the request is over. */
  readonly signal: AbortSignal;
  /** When the request must have its answer, on the monotonic clock. */
  readonly endMs: number;
  readonly warn: (text: string) => void;
}

/** A webhook could not be called, or its answer could not be read: its failure policy says what that means. */
export class WebhookFailure extends Error {
  override readonly name = "WebhookFailure";
  constructor(webhook: string, why: string) {
    super(`failed calling webhook ${JSON.stringify(webhook)}: ${why}`);
  }
}

/**
 * The answer of a webhook that allows the request.
 * @throws KubeApiError when it refuses, or cannot be asked in a dry run; {@link WebhookFailure}
 */
export async function callWebhook(
  context: CallContext,
  webhook: Webhook,
  question: ReviewQuestion,
): Promise<ReviewAnswer> {
  const ended = context.metrics.begin(webhook, question.operation);
  try {
    const answer = await answerOf(context, webhook, question);
    ended();
    return answer;
  } catch (error) {
    ended(error);
    throw error;
  }
}

async function answerOf(
  context: CallContext,
  webhook: Webhook,
  question: ReviewQuestion,
): Promise<ReviewAnswer> {
  const { name } = webhook;
  if (question.isDryRun && !webhook.hasNoEffectsOnDryRun) {
    throw badRequest(`admission webhook ${JSON.stringify(name)} does not support dry run`);
  }
  const uid = context.env.random.uuid("admission review");
  const body = reviewText(webhook.reviewVersion, reviewRequest(uid, question));
  const reply = await send(context, webhook, body);
  let answer: ReviewAnswer;
  try {
    answer = readReview(reply, uid, webhook);
  } catch (error) {
    if (!(error instanceof ReviewProblem)) throw error;
    const { message } = error;
    const isNamed = context.version.has("webhookCallsNamed");
    throw new WebhookFailure(name, isNamed ? `received invalid webhook response: ${message}` : message);
  }
  for (const warning of answer.warnings) context.warn(warning);
  if (!answer.allowed) throw refusal(name, answer.result);
  return answer;
}

/** The body of the answer. @throws WebhookFailure */
async function send(context: CallContext, webhook: Webhook, body: string): Promise<string> {
  const { env, client, store, signal, endMs, version } = context;
  const { name, clientConfig, timeoutSeconds } = webhook;
  const failed = (why: string) =>
    new WebhookFailure(name, version.has("webhookCallsNamed") ? `failed to call webhook: ${why}` : why);
  const leftMs = Math.max(0, Math.min(timeoutSeconds * 1000, endMs - env.clock.monotonicMs()));
  let address: WebhookAddress | undefined;
  let why: string | undefined;
  try {
    address = webhookAddress(clientConfig, store, (count) => env.random.below(count, "webhook endpoint"));
    address.url.searchParams.set("timeout", `${Math.ceil(leftMs / 1000)}s`);
    const call = {
      address,
      ca: clientConfig.caBundle === undefined ? undefined : fromBase64(clientConfig.caBundle),
      key: webhook.id,
      body,
    };
    const reply = await withDeadline(env.clock, leftMs, signal, (within) =>
      client.call({ ...call, signal: within }),
    );
    why = replyProblem(reply);
    if (why === undefined) return reply.body;
  } catch (error) {
    // The whole request is over: there is nothing to be decided about this webhook.
    if (signal.aborted) throw error;
    const url = address === undefined ? urlOf(clientConfig) : shownUrl(address, clientConfig.service?.port);
    const shown = url.includes("?") ? url : `${url}?timeout=${Math.ceil(leftMs / 1000)}s`;
    const cause = address === undefined ? (error as Error).message : callProblem(error);
    throw failed(`Post ${JSON.stringify(shown)}: ${cause}`);
  }
  throw failed(why);
}

/** The URL of a webhook whose address could not be found. */
function urlOf({ url = "", service }: Webhook["clientConfig"]): string {
  if (service === undefined) return url;
  const { name, namespace, port = 443, path = "" } = service;
  return `https://${name}.${namespace}.svc:${port}${path.startsWith("/") ? "" : "/"}${path}`;
}

function fromBase64(text: string): string {
  return Buffer.from(text, "base64").toString("utf8");
}

const codeMin = 400;

/** The refusal as the client sees it: what the webhook says, and that it said it (webhook/errors/statuserror.go). */
function refusal(webhook: string, given: Readonly<Record<string, unknown>> = {}): KubeApiError {
  const by = `admission webhook ${JSON.stringify(webhook)} denied the request`;
  const text = (member: string) => (typeof given[member] === "string" ? (given[member] as string) : "");
  const [message, reason] = [text("message"), text("reason")];
  const code = typeof given.code === "number" && Number.isInteger(given.code) ? given.code : 0;
  const said = message !== "" ? message : reason;
  const { status } = apiError(
    // A code that no answer can have would end the answer.
    code < codeMin || code > 599 ? codeMin : code,
    reason,
    said === "" ? `${by} without explanation` : `${by}: ${said}`,
  );
  const { details } = given as { readonly details?: Status["details"] };
  const isDetailed = typeof details === "object" && details !== null && !Array.isArray(details);
  return new KubeApiError({
    ...status,
    ...(isDetailed ? { details } : {}),
  });
}
