/** What a health endpoint answers, decided without a server: the HTTP server only sends it. */

/** One answer to `GET /healthz`. */
export interface HealthAnswer {
  /** HTTP status. */
  readonly status: 200 | 404 | 500;
  /** Plain text; `ok` when healthy. */
  readonly body: string;
}

/** All is well. */
export const healthy: HealthAnswer = { status: 200, body: "ok" };

/** Something is wrong; `body` says what. */
export const unhealthy = (body: string): HealthAnswer => ({ status: 500, body });
