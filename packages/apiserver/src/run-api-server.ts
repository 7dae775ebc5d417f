/** A whole durable API server, as `longshore run apiserver` starts it. */
import type { Component, RuntimeEnv } from "@longshore/runtime";
import { adminUser, type UserInfo } from "./api/api-request.ts";
import { type ApiServerOptions, createApiServer } from "./api-server.ts";
import type { StaticToken } from "./authentication/token-authenticator.ts";
import type { AuthorizationMode } from "./authorization/authorization-modes.ts";
import {
  ensureCredentials,
  kubeconfig,
  makeCredentials,
  readTokenFile,
  requireOwnKubeconfig,
  writePrivateFile,
} from "./http/cluster-credentials.ts";
import { serveHttps } from "./http/https-server.ts";
import { issueCertificate } from "./http/issue-certificate.ts";
import { readDefinitions } from "./http/read-definitions.ts";
import type { RequestLimits } from "./http/request-limits.ts";
import type { MetricsText } from "./http/request-metrics.ts";
import { type DurableStoreOptions, openDurableStore } from "./storage/disk/open-durable-store.ts";
import { memoryStore } from "./storage/object-store.ts";
import type { Store } from "./storage/store.ts";

/** Where the server keeps its things and where it listens. */
export interface RunApiServerOptions {
  /** Where objects, keys, certificates and tokens are kept; left out: in memory, for as long as the server runs. */
  readonly dataDir?: string;
  /** 0: any free port. */
  readonly port: number;
  readonly host?: string;
  /** Where the administrator's kubeconfig is written (mode 0600). */
  readonly kubeconfigOut?: string;
  /** See {@link ApiServerOptions}. */
  readonly emulatedVersion?: string;
  /** See {@link ApiServerOptions}. */
  readonly featureGates?: string | Readonly<Record<string, boolean>>;
  /** A file with holders of tokens, a line each: `token,user,uid,"group1,group2"`. */
  readonly tokenAuthFile?: string;
  /** Users in addition to the administrator who get a client certificate, each in a separate kubeconfig (mode 0600). */
  readonly clients?: readonly { readonly user: UserInfo; readonly kubeconfigOut: string }[];
  /** Tokens of users in addition to the administrator. */
  readonly tokens?: readonly StaticToken[];
  /** See {@link ApiServerOptions}. */
  readonly anonymousAuth?: boolean;
  /** See {@link ApiServerOptions}. */
  readonly authorizationModes?: readonly AuthorizationMode[];
  /** See {@link ApiServerOptions}; here the default is true. */
  readonly serviceAccounts?: boolean;
  /** See {@link ApiServerOptions}; false where a controller manager does that work. */
  readonly controllers?: boolean;
  /** See {@link ApiServerOptions}. */
  readonly creationWarnings?: Readonly<Record<string, string>>;
  readonly limits?: Partial<RequestLimits>;
  /** See {@link HttpsOptions}. */
  readonly metrics?: MetricsText;
  /** See {@link ApiServerOptions}. */
  readonly workMsMax?: number;
  /** Files, or directories of files, with CustomResourceDefinitions in YAML or JSON that are there from the start. */
  readonly definitionPaths?: readonly string[];
  /** See {@link HttpsOptions}. */
  readonly nodeSocket?: (nodeName: string) => string | undefined;
  /** Called when an answer has been sent, for a watch when it ends. */
  readonly onAnswered?: () => void;
}

/** How long answers that are on their way when the server stops may take. */
const drainMs = 2000;

/** A running server. */
export interface RunningApiServer extends Component {
  readonly url: string;
  readonly port: number;
  /** The certificate of the cluster's authority, PEM. */
  readonly caCert: string;
  readonly adminToken: string;
  /** Resolves when the server cannot go on, because its disk has failed: it is to be stopped, and started again. */
  readonly failed: Promise<Error>;
}

/**
 * Starts the server; it is ready when this resolves.
 * @throws StoreError when the directory is in use or cannot be written; KubeconfigInTheWayError when `kubeconfigOut`
 *   is a file that is not ours; Error when the port is in use
 */
export async function runApiServer(env: RuntimeEnv, options: RunApiServerOptions): Promise<RunningApiServer> {
  /** Functions that stop what was started, to be called in reverse order. */
  const ends: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  try {
    const { dataDir, kubeconfigOut } = options;
    if (kubeconfigOut !== undefined) await requireOwnKubeconfig(kubeconfigOut);
    const now = () => env.clock.now().getTime();
    let onFailed: (error: Error) => void = () => {};
    const failed = new Promise<Error>((resolve) => {
      onFailed = resolve;
    });
    const store =
      dataDir === undefined ? memoryStore({ now }) : await openStore(env, dataDir, { now, onFailed });
    ends.push(() => store.close());
    const credentials =
      dataDir === undefined
        ? await makeCredentials(env.clock.now())
        : await ensureCredentials(dataDir, env.clock.now());
    const { adminToken, authority, server: own, serviceAccountKey } = credentials;
    const listed = options.tokenAuthFile === undefined ? [] : await readTokenFile(options.tokenAuthFile);
    const definitions = await readDefinitions(options.definitionPaths ?? []);
    const server = createApiServer(env, {
      store,
      definitions,
      tokens: [{ token: adminToken, user: adminUser }, ...(options.tokens ?? []), ...listed],
      serviceAccountKey,
      rootCa: authority.certificate,
      serviceAccounts: options.serviceAccounts !== false,
      controllers: options.controllers !== false,
      anonymousAuth: options.anonymousAuth === true,
      ...(options.authorizationModes === undefined ? {} : { authorizationModes: options.authorizationModes }),
      ...(options.emulatedVersion === undefined ? {} : { emulatedVersion: options.emulatedVersion }),
      ...(options.featureGates === undefined ? {} : { featureGates: options.featureGates }),
      ...(options.creationWarnings === undefined ? {} : { creationWarnings: options.creationWarnings }),
      ...(options.workMsMax === undefined ? {} : { workMsMax: options.workMsMax }),
    });
    for (const gate of server.registry.context.version.unknownGates) {
      env.logger.warn("a feature gate that this server does not know has no effect", { gate });
    }
    // What every cluster has is on the disk before the first request.
    await store.durable();
    const front = await serveHttps(env, server, {
      port: options.port,
      ...(options.host === undefined ? {} : { host: options.host }),
      certificate: own.certificate,
      key: own.key,
      clientCa: authority.certificate,
      ...(options.limits === undefined ? {} : { limits: options.limits }),
      ...(options.metrics === undefined ? {} : { metrics: options.metrics }),
      ...(options.nodeSocket === undefined ? {} : { nodeSocket: options.nodeSocket }),
      ...(options.onAnswered === undefined ? {} : { onAnswered: options.onAnswered }),
    });
    // Watches end first, and requests are answered, so that clients see an end and not a cut.
    ends.push(
      () => front.close(drainMs),
      () => server.stop(),
    );
    const caCert = authority.certificate;
    for (const { user, kubeconfigOut: file } of options.clients ?? []) {
      const { name: commonName, groups } = user;
      const organizations = groups.filter((group) => group !== "system:authenticated"); // Implied.
      const request = { commonName, organizations, now: env.clock.now() };
      const client = await issueCertificate(authority, request);
      await writePrivateFile(file, kubeconfig({ url: front.url, caCert, user: user.name, client }));
    }
    // The administrator's file is written last: when it exists, the others do too.
    if (kubeconfigOut !== undefined) {
      const text = kubeconfig({ url: front.url, caCert, user: "admin", token: adminToken });
      await writePrivateFile(kubeconfigOut, text);
    }
    await server.start();
    env.logger.info("API server ready", { url: front.url });
    return { url: front.url, port: front.port, caCert, adminToken, failed, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function openStore(env: RuntimeEnv, dataDir: string, options: DurableStoreOptions): Promise<Store> {
  const onBaseFailed = (error: unknown) =>
    env.logger.warn("the store's log could not be shortened, which is tried again later", { error });
  return openDurableStore(dataDir, { ...options, onBaseFailed });
}
