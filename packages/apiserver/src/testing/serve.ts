/** A server over HTTPS for tests, with a user who may do everything and one who may not. */
import { noMeter, type RuntimeEnv, silentLogger, systemClock, systemRandom } from "@longshore/runtime";
import { adminUser } from "../api/api-request.ts";
import { type ApiServer, type ApiServerOptions, createApiServer } from "../api-server.ts";
import { type HttpsOptions, type HttpsServer, serveHttps } from "../http/https-server.ts";
import { createAuthority, issueCertificate, type KeyPair } from "../http/issue-certificate.ts";
import type { RequestLimits } from "../http/request-limits.ts";
import { memoryStore } from "../storage/object-store.ts";

/** Tokens of the test server. */
export const adminToken = "admintoken";
export const janeToken = "usertoken";

/** A server that listens, for a test. */
export interface TestServer {
  readonly server: ApiServer;
  readonly front: HttpsServer;
  readonly authority: KeyPair;
  stop(): Promise<void>;
}

/** The real seams, without logs. */
export const realEnv: RuntimeEnv = {
  clock: systemClock,
  random: systemRandom,
  logger: silentLogger,
  meter: noMeter,
};

/** Starts a server in memory on a free port. */
export async function serveForTest(
  options: Partial<ApiServerOptions> = {},
  env = realEnv,
  limits: Partial<RequestLimits> = {},
  nodes: Pick<HttpsOptions, "nodeSocket" | "metrics"> = {},
): Promise<TestServer> {
  const now = env.clock.now();
  const authority = await createAuthority("test", now);
  const own = await issueCertificate(authority, {
    commonName: "kube-apiserver",
    hosts: ["127.0.0.1", "localhost"],
    now,
  });
  const server = createApiServer(env, {
    store: memoryStore(),
    anonymousAuth: true,
    tokens: [
      { token: adminToken, user: adminUser },
      { token: janeToken, user: { name: "jane", groups: ["devs"], uid: "jane" } },
    ],
    ...options,
  });
  const front = await serveHttps(env, server, {
    port: 0,
    certificate: own.certificate,
    key: own.key,
    clientCa: authority.certificate,
    limits,
    ...nodes,
  });
  await server.start();
  return {
    server,
    front,
    authority,
    async stop() {
      await server.stop();
      await front.close();
    },
  };
}
