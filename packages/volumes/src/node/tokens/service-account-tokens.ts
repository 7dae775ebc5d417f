/**
 * Tokens of service accounts for the pods of this node: each is requested once and handed out until it is time to renew it.
 * Source: docs/behaviour/pod-volumes.md 6.
 *
 * Invariants
 *  - A token is bound to its pod and never handed to another one.
 *  - A token is renewed once it has lived 80 % of its life, and never later than after 24 hours.
 *  - A token that cannot be renewed is handed out until it expires.
 *  - No token and no part of one is in an error or in the log.
 */
import {
  isNotFound,
  type KubeClient,
  type KubeObject,
  type Pod,
  resources,
  type Stored,
} from "@longshore/kube";
import { errorChain, type RuntimeEnv } from "@longshore/runtime";
import type { ServiceAccountToken, TokenDemand } from "../../framework/pod-sources.ts";

/** A token, and how long it is the newest. */
export interface RenewableToken extends ServiceAccountToken {
  /** In how many milliseconds it is to be asked for again: then there is a newer one. */
  readonly renewInMs: number;
}

/** The API server gave no token; the message names pod and account, never a token. */
export class ServiceAccountTokenError extends Error {
  override readonly name = "ServiceAccountTokenError";
}

/** Hands out tokens. */
export interface ServiceAccountTokens {
  /**
   * A token of the account that the pod runs as, bound to the pod. Calls that come at the same time share one request.
   *
   * @throws ServiceAccountTokenError when there is none that has not expired
   */
  serviceAccountToken(pod: Stored<Pod>, demand: TokenDemand, signal: AbortSignal): Promise<RenewableToken>;
  /** Forgets the tokens of a pod that is gone. */
  forgetPod(podUID: string): void;
}

const defaultLifeSeconds = 3600;
const longestUseMs = 24 * 60 * 60_000;
/** A part of the life that is left when the token is renewed. Source: upstream token_manager.go, requiresRefresh. */
const restOfLife = 0.2;
/** Renewals of many pods that began together are spread over this time, in milliseconds. */
const jitterMs = 10_000;
/** After a renewal that failed, the next one is tried after this time, in milliseconds. */
const retryMs = 10_000;

interface CachedToken extends ServiceAccountToken {
  /** Monotonic milliseconds. */
  readonly renewAtMs: number;
  /** Monotonic milliseconds. */
  readonly expiresAtMs: number;
}

/** The tokens of one node. Does nothing by itself; drop it to forget them. */
export function createServiceAccountTokens(
  env: RuntimeEnv & { readonly kube: KubeClient },
): ServiceAccountTokens {
  return new CachedTokens(env);
}

class CachedTokens implements ServiceAccountTokens {
  readonly #env: RuntimeEnv & { readonly kube: KubeClient };
  /** By pod UID, then by what the token is for. */
  readonly #pods = new Map<string, Map<string, CachedToken>>();
  readonly #requests = new Map<string, Promise<CachedToken>>();

  constructor(env: RuntimeEnv & { readonly kube: KubeClient }) {
    this.#env = env;
  }

  async serviceAccountToken(
    pod: Stored<Pod>,
    demand: TokenDemand,
    signal: AbortSignal,
  ): Promise<RenewableToken> {
    const { clock } = this.#env;
    const podUID = pod.metadata.uid;
    const purpose = JSON.stringify([demand.audience ?? "", demand.expirationSeconds ?? defaultLifeSeconds]);
    const cached = this.#pods.get(podUID)?.get(purpose);
    const nowMs = clock.monotonicMs();
    if (cached !== undefined && nowMs < cached.renewAtMs) return handedOut(cached, nowMs);
    try {
      const renewed = await this.#request(`${podUID} ${purpose}`, pod, demand, signal);
      this.#pods.set(podUID, new Map(this.#pods.get(podUID)).set(purpose, renewed));
      return handedOut(renewed, clock.monotonicMs());
    } catch (error) {
      signal.throwIfAborted();
      if (cached === undefined || clock.monotonicMs() >= cached.expiresAtMs) throw error;
      this.#env.logger.warn("a service account token was not renewed", {
        pod: `${pod.metadata.namespace}/${pod.metadata.name}`,
        error: errorChain(error),
      });
      return { ...handedOut(cached, clock.monotonicMs()), renewInMs: retryMs };
    }
  }

  forgetPod(podUID: string): void {
    this.#pods.delete(podUID);
  }

  /** One request at a time for a pod and purpose; a caller that gives up ends the request of its own only. */
  async #request(
    key: string,
    pod: Stored<Pod>,
    demand: TokenDemand,
    signal: AbortSignal,
  ): Promise<CachedToken> {
    const running = this.#requests.get(key);
    if (running !== undefined) {
      const shared = await running.catch(() => undefined);
      signal.throwIfAborted();
      if (shared !== undefined) return shared;
    }
    const request = this.#ask(pod, demand, signal).finally(() => {
      if (this.#requests.get(key) === request) this.#requests.delete(key);
    });
    this.#requests.set(key, request);
    return request;
  }

  async #ask(pod: Stored<Pod>, demand: TokenDemand, signal: AbortSignal): Promise<CachedToken> {
    const { kube, clock, random } = this.#env;
    const { namespace = "", name, uid } = pod.metadata;
    const account = pod.spec?.serviceAccountName ?? "default";
    const { audience = "", expirationSeconds = defaultLifeSeconds } = demand;
    const what = `pod ${namespace}/${name}: service account ${account}`;
    const body: TokenRequest = {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {
        audiences: audience === "" ? [] : [audience],
        expirationSeconds,
        boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
      },
    };
    const askedAtMs = clock.monotonicMs();
    const answer: TokenRequest = await kube
      .createSubresource(resources.serviceAccounts, { namespace, name: account }, "token", body, { signal })
      .catch((cause) => {
        signal.throwIfAborted();
        const missing = isNotFound(cause) ? " is not there, or the pod is gone" : " gave no token";
        throw new ServiceAccountTokenError(`${what}${missing}`, { cause });
      });
    const { token = "", expirationTimestamp = "" } = answer.status ?? {};
    const lifeMs = (answer.spec?.expirationSeconds ?? expirationSeconds) * 1000;
    if (token === "" || !(lifeMs > 0)) throw new ServiceAccountTokenError(`${what}: the answer has no token`);
    const spreadMs = random.below(jitterMs, "token renewal");
    const useMs = Math.min(lifeMs * (1 - restOfLife), longestUseMs) - spreadMs;
    return {
      token,
      expirationTimestamp,
      renewAtMs: askedAtMs + Math.max(useMs, 0),
      expiresAtMs: askedAtMs + lifeMs,
    };
  }
}

function handedOut({ token, expirationTimestamp, renewAtMs }: CachedToken, nowMs: number): RenewableToken {
  return { token, expirationTimestamp, renewInMs: Math.max(renewAtMs - nowMs, 0) };
}

/** authentication.k8s.io/v1 TokenRequest, as far as it is read here. */
interface TokenRequest extends KubeObject {
  readonly spec?: {
    readonly audiences?: readonly string[];
    readonly expirationSeconds?: number;
    readonly boundObjectRef?: object;
  };
  readonly status?: { readonly token?: string; readonly expirationTimestamp?: string };
}
