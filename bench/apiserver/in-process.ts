/** Start of a server inside a process, each part timed; prints one line of JSON. Runs against the built package. */

import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";

type ApiServerModule = typeof import("@longshore/apiserver");
type RuntimeModule = typeof import("@longshore/runtime");

const packages = process.argv[2] as string;
const load = <T>(name: string): Promise<T> => import(pathToFileURL(`${packages}/${name}/dist/index.js`).href);

const start = performance.now();
const runtime = await load<RuntimeModule>("runtime");
const api = await load<ApiServerModule>("apiserver");
const loaded = performance.now();
const env = {
  clock: runtime.systemClock,
  random: runtime.systemRandom,
  logger: runtime.silentLogger,
  meter: runtime.noMeter,
};
const namespace = { group: "", versions: ["v1"], kind: "Namespace", plural: "namespaces", namespaced: false };
const begun = performance.now();
const server = api.createApiServer(env, { store: api.memoryStore() });
await server.start();
await server.client().get(namespace as never, { name: "default" }, { signal: new AbortController().signal });
const answered = performance.now();
console.log(JSON.stringify({ importMs: loaded - start, firstRequestMs: answered - begun }));
await server.stop();
process.exit(0);
