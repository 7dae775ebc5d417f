/** A server on a {@link SlowClock}, asked as its administrator. */
import { noMeter, type RuntimeEnv, recordingLogger, SeededRandom } from "@longshore/runtime";
import { adminUser } from "../api/api-request.ts";
import { createApiServer } from "../api-server.ts";
import { memoryStore } from "../storage/object-store.ts";
import { fakeExchange } from "./fake-exchange.ts";
import type { SendJson } from "./heavy-requests/heavy-request.ts";
import { SlowClock } from "./slow-clock.ts";

/** Starts a server on a {@link SlowClock}. */
export function slowServer() {
  const clock = new SlowClock();
  const logger = recordingLogger();
  const env: RuntimeEnv = { clock, random: new SeededRandom(1), logger, meter: noMeter };
  const store = memoryStore();
  const tokens = [{ token: "t", user: adminUser }];
  const server = createApiServer(env, { store, tokens, controllers: false });
  const exchange = fakeExchange(env, server);
  const send: SendJson = async (method, path, body, contentType = "application/json") => {
    const bytes = body === undefined ? undefined : bytesOf(body);
    const headers = { authorization: "Bearer t", "content-type": contentType };
    const answer = await exchange(method, path, headers, bytes);
    return {
      status: answer.status,
      body: answer.body.startsWith("{") ? JSON.parse(answer.body) : answer.body,
    };
  };
  return { clock, logger, store, server, exchange, send };
}

function bytesOf(body: unknown): Uint8Array | string {
  if (Buffer.isBuffer(body)) return body;
  return typeof body === "string" ? body : JSON.stringify(body);
}
