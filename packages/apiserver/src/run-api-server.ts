/** A whole durable API server, as `longshore run apiserver` starts it. */
import type { Component, RuntimeEnv } from "@longshore/runtime";
import { type ApiServerOptions, createApiServer } from "./api-server.ts";
import { ensureCredentials, kubeconfig, writePrivateFile } from "./http/data-dir.ts";
import { serveHttps } from "./http/https.ts";
import { adminUser } from "./registry/request.ts";
import { openDurableStore } from "./storage/disk/durable-store.ts";

/** Where the server keeps its things and where it listens. */
export interface RunApiServerOptions {
  readonly dataDir: string;
  /** 0: any free port. */
  readonly port: number;
  readonly host?: string;
  /** Where the administrator's kubeconfig is written (mode 0600). */
  readonly kubeconfigOut?: string;
  /** See {@link ApiServerOptions}. */
  readonly emulatedVersion?: string;
  /** See {@link ApiServerOptions}. */
  readonly featureGates?: string | Readonly<Record<string, boolean>>;
}

/** A running server. */
export interface RunningApiServer extends Component {
  readonly url: string;
  readonly port: number;
  /** The certificate of the cluster's authority, PEM. */
  readonly caCert: string;
  readonly adminToken: string;
}

/**
 * Starts the server; it is ready when this resolves.
 * @throws StoreError when the directory is in use or cannot be written; Error when the port is taken
 */
export async function runApiServer(env: RuntimeEnv, options: RunApiServerOptions): Promise<RunningApiServer> {
  /** What has been begun, to be ended in reverse. */
  const ends: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  try {
    const store = await openDurableStore(options.dataDir);
    ends.push(() => store.close());
    const { adminToken, authority, server: own } = await ensureCredentials(options.dataDir, env.clock.now());
    const server = createApiServer(env, {
      store,
      tokens: [{ token: adminToken, user: adminUser }],
      ...(options.emulatedVersion === undefined ? {} : { emulatedVersion: options.emulatedVersion }),
      ...(options.featureGates === undefined ? {} : { featureGates: options.featureGates }),
    });
    await store.durable();
    const front = await serveHttps(env, server, {
      port: options.port,
      ...(options.host === undefined ? {} : { host: options.host }),
      certificate: own.certificate,
      key: own.key,
      clientCa: authority.certificate,
    });
    // Watches end first, so that their clients see an end and not a cut.
    ends.push(
      () => front.close(),
      () => server.stop(),
    );
    const caCert = authority.certificate;
    if (options.kubeconfigOut !== undefined) {
      const text = kubeconfig({ url: front.url, caCert, user: "admin", token: adminToken });
      await writePrivateFile(options.kubeconfigOut, text);
    }
    await server.start();
    env.logger.info("API server ready", { url: front.url });
    return { url: front.url, port: front.port, caCert, adminToken, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
