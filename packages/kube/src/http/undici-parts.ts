/**
 * The two parts of undici that a client needs: its connections, and requests whose answer is a stream. The whole of it
 * is 110 modules, among them caches, mocks and WebSockets, which took a tenth of every program's start; these are 25.
 *
 * They are files of the package that its documentation does not name. The locked version has them, and a start test
 * (`tests/e2e/start-up.test.ts`) and every test of the client would miss them.
 */
import type { Agent, Dispatcher } from "undici";

/** See the head of this file. */
export interface UndiciParts {
  readonly Agent: typeof Agent;
  /** `dispatcher.request(options)` of the whole package. */
  request(dispatcher: Dispatcher, options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData>;
}

/** Loads them. */
export async function loadUndici(): Promise<UndiciParts> {
  const [agent, request] = await Promise.all([
    // @ts-expect-error The types of the package are of its root alone.
    import("undici/lib/dispatcher/agent.js"),
    // @ts-expect-error Likewise.
    import("undici/lib/api/api-request.js"),
  ]);
  return {
    Agent: agent.default,
    request: (dispatcher, options) => request.default.call(dispatcher, options),
  };
}
