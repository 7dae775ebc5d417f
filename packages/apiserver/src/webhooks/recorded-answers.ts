/**
 * The webhooks of one request: what they have answered, by what they were asked. The registry handles the request from
 * its beginning each time something is missing; what is asked again about the same objects is answered from here.
 */
import type { KubeObject } from "@longshore/kube";
import { toJson } from "../api/json.ts";
import type { KindTable } from "../api/kind-table.ts";
import type { RequestWebhooks, WebhookWrite } from "../registry/registry-context.ts";
import type { Store } from "../storage/store.ts";
import type { ConfiguredWebhooks } from "./configured-webhooks.ts";
import type { DispatchContext } from "./dispatch-context.ts";
import { type MutationRound, runMutatingWebhooks } from "./mutating-webhooks.ts";
import { runValidatingWebhooks } from "./validating-webhooks.ts";
import type { Webhook } from "./webhook.ts";
import { webhookForm } from "./webhook-question.ts";

/** Thrown when webhooks are to be called before the request can be handled. Nothing is changed. */
export class CallsNeeded extends Error {
  override readonly name = "CallsNeeded";
  /** Makes the calls and records the answers. @throws KubeApiError when the request is refused */
  readonly make: (context: DispatchContext) => Promise<void>;
  constructor(make: (context: DispatchContext) => Promise<void>) {
    super("webhooks are to be called");
    this.make = make;
  }
}

interface Recorded {
  readonly key: string;
  /** Left out for validating webhooks. */
  readonly round?: MutationRound;
}

/** See above. */
export class RecordedAnswers implements RequestWebhooks {
  readonly #configured: ConfiguredWebhooks;
  readonly #kinds: KindTable;
  readonly #store: Store;
  #recorded: Recorded[] = [];
  #position = 0;

  constructor(configured: ConfiguredWebhooks, kinds: KindTable, store: Store) {
    this.#configured = configured;
    this.#kinds = kinds;
    this.#store = store;
  }

  /** The request is handled from its beginning. */
  begin(): void {
    this.#position = 0;
  }

  mutate(write: WebhookWrite, isAgain = false): KubeObject | undefined {
    const previous = isAgain ? this.#recorded[this.#position - 1]?.round : undefined;
    const webhooks = isAgain
      ? this.#configured.mutating.filter(({ id }) => previous?.reinvocable.has(id) === true)
      : this.#configured.mutating;
    if (!this.#appliesAny(webhooks, write)) return write.object;
    const recorded = this.#ask(isAgain ? "again" : "mutate", write, async (context) => ({
      round: await runMutatingWebhooks(context, webhooks, write, previous),
    }));
    return recorded.round?.object;
  }

  validate(write: WebhookWrite): void {
    const webhooks = this.#configured.validating;
    if (!this.#appliesAny(webhooks, write)) return;
    this.#ask("validate", write, async (context) => {
      await runValidatingWebhooks(context, webhooks, write);
      return {};
    });
  }

  #appliesAny(webhooks: readonly Webhook[], write: WebhookWrite): boolean {
    return webhooks.some((webhook) => webhookForm(webhook, write, this.#kinds, this.#store) !== undefined);
  }

  /** What was answered to exactly this. @throws CallsNeeded where nothing was */
  #ask(
    step: string,
    write: WebhookWrite,
    call: (context: DispatchContext) => Promise<Omit<Recorded, "key">>,
  ): Recorded {
    const key = keyOf(step, write);
    const position = this.#position;
    const known = this.#recorded[position];
    if (known?.key === key) {
      this.#position++;
      return known;
    }
    throw new CallsNeeded(async (context) => {
      const answer = await call(context);
      // What came after it was about other objects.
      this.#recorded = [...this.#recorded.slice(0, position), { key, ...answer }];
    });
  }
}

function keyOf(step: string, { operation, object, old }: WebhookWrite): string {
  const { uid = "", resourceVersion = "" } = old?.metadata ?? {};
  return `${step} ${operation} ${uid} ${resourceVersion} ${object === undefined ? "" : toJson(object)}`;
}
