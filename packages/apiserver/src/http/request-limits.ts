/**
 * How many requests are worked on at one time, and how many watches are open
 * (apiserver server/filters/maxinflight; its `--max-requests-inflight` and `--max-mutating-requests-inflight`).
 */

import type { UserInfo } from "../api/api-request.ts";
import { apiError } from "../api/errors.ts";
import { mastersGroup } from "../authorization/authorizer.ts";

/** The limits of a server. 0: none. */
export interface RequestLimits {
  /** Most reading requests at one time, watches not counted; default 400. */
  readonly readsMax: number;
  /** Most changing requests at one time; default 200. */
  readonly writesMax: number;
  /** Most open watches; default 10,000. */
  readonly watchesMax: number;
  /** Most bytes of a request's headers; default 1 MiB (net/http DefaultMaxHeaderBytes). */
  readonly headerBytesMax: number;
}

/** See {@link RequestLimits}. */
export const requestLimitsDefault: RequestLimits = {
  readsMax: 400,
  writesMax: 200,
  watchesMax: 10_000,
  headerBytesMax: 1024 * 1024,
};

type Class = "reads" | "writes" | "watches";

const readVerbs: ReadonlySet<string> = new Set(["get", "list", "watch"]);
/** Sub-resources whose requests may take as long as they like. */
const longSubresources: ReadonlySet<string> = new Set(["attach", "exec", "log", "portforward", "proxy"]);

/** What of a request decides which limit it falls under. */
export interface LimitedRequest {
  readonly user: UserInfo;
  readonly verb: string;
  readonly subresource?: string;
}

/** Counts what is being worked on. */
export class InFlight {
  readonly #limits: RequestLimits;
  readonly #counts: Record<Class, number> = { reads: 0, writes: 0, watches: 0 };

  constructor(limits: RequestLimits) {
    this.#limits = limits;
  }

  /** How many of each there are. */
  get counts(): Readonly<Record<Class, number>> {
    return this.#counts;
  }

  /** Begins a request. Returns a function that ends it; calling it again has no effect. @throws KubeApiError 429 */
  begin(request: LimitedRequest): () => void {
    const of = classOf(request);
    if (of === undefined) return () => {};
    const max = this.#limits[`${of}Max`];
    // Administrators always get an answer, but a watch more is a watch more.
    const isExempt = of !== "watches" && request.user.groups.includes(mastersGroup);
    if (max > 0 && this.#counts[of] >= max && !isExempt) throw tooMany(of);
    this.#counts[of]++;
    let isOpen = true;
    return () => {
      if (isOpen) this.#counts[of]--;
      isOpen = false;
    };
  }
}

function classOf({ verb, subresource = "" }: LimitedRequest): Class | undefined {
  if (verb === "watch") return "watches";
  if (longSubresources.has(subresource)) return undefined;
  return readVerbs.has(verb) ? "reads" : "writes";
}

function tooMany(of: Class): Error {
  const message =
    of === "watches"
      ? "too many watches are open, please try again later."
      : "Too many requests, please try again later.";
  return apiError(429, "TooManyRequests", message, { retryAfterSeconds: 1 });
}
