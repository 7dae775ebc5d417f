/** An API server for tests: two lines to start it, on a port of its own, in memory, gone when it is stopped. */
import type { KubeClient } from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { kubeconfig } from "./http/cluster-credentials.ts";
import { type RunApiServerOptions, runApiServer } from "./run-api-server.ts";

/** What a test may ask of its API server; all of it can be left out. */
export type TestApiServerOptions = Pick<
  RunApiServerOptions,
  "emulatedVersion" | "featureGates" | "definitionPaths" | "authorizationModes" | "serviceAccounts"
>;

/** A running server. `stop` ends it, with the watches of its clients. */
export interface TestApiServer extends Component {
  /** `https://127.0.0.1:PORT`. */
  readonly url: string;
  /** A kubeconfig of the administrator, as text: for any client library, or in a file for kubectl. */
  readonly kubeconfig: string;
  /** A client of the administrator, over HTTPS. */
  readonly client: KubeClient;
}

/**
 * Starts an API server on a free port of the loopback interface, over HTTPS with certificates of its own; nothing is written to a disk.
 * It is ready when this resolves.
 *
 * @throws EmulatedVersionError, FeatureGateError or DefinitionFileError for options that cannot be used
 */
export async function startTestApiServer(options: TestApiServerOptions = {}): Promise<TestApiServer> {
  // When they are needed: a server that starts by itself does not load the client.
  const { createHttpClient, fixedCredential } = await import("@longshore/kube");
  const { noMeter, silentLogger, systemClock, systemRandom } = await import("@longshore/runtime");
  const env = { clock: systemClock, random: systemRandom, logger: silentLogger, meter: noMeter };
  const server = await runApiServer(env, { ...options, port: 0 });
  const { url, caCert, adminToken } = server;
  const client = createHttpClient(env, {
    server: url,
    ca: caCert,
    credentials: fixedCredential({ authorization: `Bearer ${adminToken}` }),
  });
  return {
    url,
    kubeconfig: kubeconfig({ url, caCert, user: "admin", token: adminToken }),
    client,
    async stop() {
      await client.close();
      await server.stop();
    },
  };
}
