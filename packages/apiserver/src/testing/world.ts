/** A server in memory on a clock that the test moves. */
import { noMeter, type RuntimeEnv, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { createApiServer } from "../api-server.ts";
import { memoryStore, type StoreOptions } from "../storage/object-store.ts";

/** Makes the server and a client that may do everything. */
export function aServer(options: StoreOptions = {}) {
  const clock = new VirtualClock();
  const env: RuntimeEnv = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const store = memoryStore(options);
  const server = createApiServer(env, { store, controllers: false });
  return { clock, env, store, server, kube: server.client() };
}
