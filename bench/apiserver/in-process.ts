/** Start of a server inside a process, each part timed; prints one line of JSON. Runs against the built package. */

import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";
import { Connection } from "./raw-http.ts";

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
await server.stop();

const again = performance.now();
const tokens = [{ token: "token", user: api.adminUser }];
const served = api.createApiServer(env, { store: api.memoryStore(), tokens });
const authority = await api.createAuthority("bench authority", new Date());
const own = await api.issueCertificate(authority, {
  commonName: "bench",
  hosts: ["127.0.0.1"],
  now: new Date(),
});
const front = await api.serveHttps(env, served, {
  port: 0,
  certificate: own.certificate,
  key: own.key,
  clientCa: authority.certificate,
});
const target = { host: "127.0.0.1", port: front.port, ca: authority.certificate, token: "token" };
const connection = await Connection.open(target);
const { status } = await connection.send("GET", "/api/v1/namespaces/default");
const firstHttpsRequestMs = performance.now() - again;
if (status !== 200) throw new Error(`the first request over HTTPS was answered ${status}`);
console.log(
  JSON.stringify({ firstHttpsRequestMs, importMs: loaded - start, firstRequestMs: answered - begun }),
);
process.exit(0);
