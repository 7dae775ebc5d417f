/**
 * Requests with their admission webhooks. The registry handles a request without a pause; where it needs the answer of a
 * webhook it has not got, it stops with nothing changed, the webhook is called, and the request is handled again. So the
 * commit follows a reading of the state in which all answers were about just that state (decision 0030).
 *
 * Invariants
 *  - A request that no webhook can concern is answered at once, as if there were none.
 *  - While a webhook is awaited nothing is held: no lock, no part of the store, no time of the thread.
 *  - All rounds of a request share the time that one request may take, and all calls its deadline.
 */
import { isNotFound, type KubeObject, type Stored } from "@longshore/kube/basics";
import type { RuntimeEnv } from "@longshore/runtime";
import { DeadlineError, withAnyOf, withDeadline } from "@longshore/runtime/basics";
import type { ApiAnswer, ApiRequest } from "../api/api-request.ts";
import { apiError } from "../api/errors.ts";
import { type Kind, tableKey } from "../api/kind.ts";
import { kindInVersion } from "../api/kind-table.ts";
import { workTimeOver } from "../api/work-time.ts";
import { objectThroughWebhooks } from "../registry/body-through-webhooks.ts";
import type { Registry } from "../registry/registry.ts";
import type { RegistryContext } from "../registry/registry-context.ts";
import { ConfiguredWebhooks } from "./configured-webhooks.ts";
import type { DispatchContext } from "./dispatch-context.ts";
import { WebhookClient } from "./http-webhook-client.ts";
import { CallsNeeded, RecordedAnswers } from "./recorded-answers.ts";
import { SameDraws, sameTime } from "./same-draws.ts";
import { WebhookMetrics } from "./webhook-metrics.ts";

/** What goes with a request. */
export interface AnswerOptions {
  /** Makes the request whole, with what its body holds, in its time; left out where it is whole. */
  readonly make?: () => ApiRequest;
  /** The signal that aborts when the answer is not waited for any more; asked for only where a webhook is called. */
  readonly signal: () => AbortSignal;
  /** Called with each warning that goes with the answer, also with one that refuses. */
  readonly warn: (text: string) => void;
}

/** How long a request may take with all its webhooks, in milliseconds (kube-apiserver `--request-timeout`). */
const requestMs = 60_000;

/** See above. */
export class AnsweredRequests {
  readonly #env: RuntimeEnv;
  readonly #registry: Registry;
  readonly #configured: ConfiguredWebhooks;
  readonly #client = new WebhookClient();
  #metrics: WebhookMetrics | undefined;
  readonly #stopped = new AbortController();

  constructor(env: RuntimeEnv, registry: Registry) {
    this.#env = env;
    this.#registry = registry;
    const { store, kinds } = registry.context;
    this.#configured = new ConfiguredWebhooks(store, kinds);
  }

  /**
   * The answer to a request that is authorized: at once where no webhook can concern it.
   * @throws KubeApiError as {@link Registry.handle}, and with the answers of webhooks
   */
  answer(request: ApiRequest, options: AnswerOptions): ApiAnswer | Promise<ApiAnswer> {
    const registry = this.#registry;
    const of = this.#kindOf(request);
    if (of !== undefined && this.#configured.concern(of, request.verb, request.subresource)) {
      return this.#answerWithWebhooks(request, options);
    }
    const { make } = options;
    return make === undefined ? registry.handle(request) : registry.inTime(() => registry.handle(make()));
  }

  /**
   * Asks the webhooks about a connection to a pod or a node, which is authorized.
   * @param object the options of the connection, `PodExecOptions` and others @throws KubeApiError when one refuses
   */
  async connect(request: ApiRequest, object: KubeObject, options: AnswerOptions): Promise<void> {
    const of = this.#kindOf(request);
    if (of === undefined || !this.#configured.concernConnection(of, request.subresource ?? "")) return;
    await this.#withRounds(options, (rounds) => rounds.connect(request, of, object));
  }

  /** Ends all calls. */
  stop(): void {
    this.#stopped.abort(apiError(503, "ServiceUnavailable", "the API server is stopping"));
    this.#client.close();
  }

  #kindOf({ group, resource, version }: ApiRequest): Kind | undefined {
    const found = this.#registry.context.kinds.find(group, resource);
    return found?.versions.includes(version) ? kindInVersion(found, version) : undefined;
  }

  #answerWithWebhooks(request: ApiRequest, options: AnswerOptions): Promise<ApiAnswer> {
    return this.#withRounds(options, (rounds) =>
      request.verb === "deletecollection" ? rounds.deleteEach(request) : rounds.answer(request),
    );
  }

  async #withRounds<T>(options: AnswerOptions, work: (rounds: Rounds) => Promise<T>): Promise<T> {
    const { clock } = this.#env;
    const endMs = clock.monotonicMs() + requestMs;
    const { make, warn } = options;
    this.#metrics ??= new WebhookMetrics(clock, this.#env.meter);
    const shared = {
      client: this.#client,
      configured: this.#configured,
      metrics: this.#metrics,
      make,
      warn,
      endMs,
    };
    try {
      return await withAnyOf([options.signal(), this.#stopped.signal], (either) =>
        withDeadline(clock, requestMs, either, (signal) =>
          work(new Rounds(this.#env, this.#registry, { ...shared, signal })),
        ),
      );
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error;
      throw apiError(504, "Timeout", "Timeout: request did not complete within requested timeout", {});
    }
  }
}

/** What all rounds of a request share. */
interface Calls {
  readonly client: WebhookClient;
  readonly configured: ConfiguredWebhooks;
  readonly metrics: WebhookMetrics;
  readonly make: AnswerOptions["make"];
  readonly warn: AnswerOptions["warn"];
  readonly signal: AbortSignal;
  readonly endMs: number;
}

/** The rounds of one request. */
class Rounds {
  readonly #env: RuntimeEnv;
  readonly #registry: Registry;
  readonly #calls: Calls;
  /** Milliseconds of the thread's time that are left. */
  #leftMs: number;

  constructor(env: RuntimeEnv, registry: Registry, calls: Calls) {
    this.#env = env;
    this.#registry = registry;
    this.#calls = calls;
    this.#leftMs = registry.context.workMsMax;
  }

  /** One request, as often as it takes until no answer is missing. */
  answer(request: ApiRequest): Promise<ApiAnswer> {
    let whole: ApiRequest | undefined;
    return this.#untilAnswered((context) => {
      whole ??= this.#calls.make?.() ?? request;
      return this.#registry.handle(whole, context);
    });
  }

  /** A connection, about which webhooks are asked and nothing is stored. */
  connect(request: ApiRequest, of: Kind, object: KubeObject): Promise<ApiAnswer> {
    return this.#untilAnswered((context) => {
      const asked = { ...request, of, table: context.store.table(tableKey(of)) };
      objectThroughWebhooks(context, { operation: "CONNECT", request: asked, object, isBody: true });
      return { type: "object", code: 200, object };
    });
  }

  /** The objects of a collection, each as a deletion of its own; what is gone meanwhile is gone. */
  async deleteEach(request: ApiRequest): Promise<ApiAnswer> {
    const whole = this.#inTime(() => this.#calls.make?.() ?? request);
    const registry = this.#registry;
    const members = this.#inTime(() => registry.membersToDelete(whole));
    const deleted: Stored[] = [];
    for (const member of members) {
      try {
        await this.#untilAnswered((context) => registry.deleteMember(whole, member, context));
      } catch (error) {
        if (!isNotFound(error)) throw error;
        continue;
      }
      deleted.push(member);
    }
    return { type: "list", items: deleted, resourceVersion: String(registry.context.store.revision) };
  }

  async #untilAnswered(handle: (context: RegistryContext) => ApiAnswer): Promise<ApiAnswer> {
    const { clock } = this.#env;
    const { context } = this.#registry;
    const random = new SameDraws(context.random);
    const webhooks = new RecordedAnswers(this.#calls.configured, context.kinds, context.store);
    const ofRequest = { ...context, clock: sameTime(clock), random, webhooks };
    for (;;) {
      this.#calls.signal.throwIfAborted();
      random.begin();
      webhooks.begin();
      let needed: CallsNeeded;
      try {
        return this.#inTime(() => handle({ ...ofRequest, workMsMax: this.#leftMs }));
      } catch (error) {
        if (!(error instanceof CallsNeeded)) throw error;
        needed = error;
      }
      await needed.make(this.#dispatchContext());
    }
  }

  #dispatchContext(): DispatchContext {
    const { store, kinds, version } = this.#registry.context;
    const { client, metrics, signal, warn, endMs } = this.#calls;
    return {
      env: this.#env,
      client,
      metrics,
      inTime: (work) => this.#inTime(work),
      ...{ store, kinds, version, signal, warn, endMs },
    };
  }

  #inTime<T>(work: () => T): T {
    const { clock } = this.#env;
    if (this.#leftMs <= 0) throw workTimeOver();
    const before = clock.monotonicMs();
    try {
      return this.#registry.inTime(work, this.#leftMs);
    } finally {
      this.#leftMs -= clock.monotonicMs() - before;
    }
  }
}
