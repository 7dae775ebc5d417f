/** Decides which failed requests are sent again, and when: a pure function of the request and its outcome. */

/** How one attempt ended, unless it succeeded. */
export type FailedAttempt =
  /** No connection came about, so the server has seen nothing. */
  | { readonly kind: "notSent" }
  /** The connection broke: the server may or may not have acted. */
  | { readonly kind: "broken" }
  /** The server answered. */
  | { readonly kind: "answered"; readonly code: number; readonly retryAfterMs: number | undefined };

/** What was requested. */
export interface RetriedRequest {
  readonly method: string;
  /** True where 429 is the final answer, not a request to retry later: an eviction that a disruption budget blocks. */
  readonly tooManyRequestsIsFinal: boolean;
}

/** Attempts in all. */
const ATTEMPTS_MAX = 4;
const RETRY_AFTER_MAX_MS = 10_000;

/**
 * Milliseconds to wait before attempt `attempt + 1`, or undefined: the failure is final. Only what is
 * safe is repeated: what the server refused to begin with, what was never sent, and broken reads.
 */
export function retryDelayMs(
  request: RetriedRequest,
  failed: FailedAttempt,
  attempt: number,
): number | undefined {
  if (attempt >= ATTEMPTS_MAX) return undefined;
  const growing = 100 * 2 ** (attempt - 1);
  switch (failed.kind) {
    case "answered": {
      if (failed.code !== 429 && failed.code !== 503) return undefined;
      if (failed.code === 429 && request.tooManyRequestsIsFinal) return undefined;
      // As client-go: without the header the server has not asked to try again.
      if (failed.retryAfterMs === undefined) return undefined;
      return Math.max(growing, Math.min(failed.retryAfterMs, RETRY_AFTER_MAX_MS));
    }
    case "notSent":
      return growing;
    case "broken":
      return request.method === "GET" && attempt < 2 ? 0 : undefined;
  }
}

/** The Retry-After header in milliseconds: seconds or a date (RFC 9110, section 10.2.3). */
export function parseRetryAfter(header: string | undefined, now: Date): number | undefined {
  if (header === undefined) return undefined;
  if (/^[0-9]+$/.test(header.trim())) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now.getTime());
}
