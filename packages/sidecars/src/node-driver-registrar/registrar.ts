/**
 * The node-driver-registrar: announces a driver to the kubelet through a socket in its registration directory
 * (docs/behaviour/sidecars.md 6). It writes no API object; the kubelet does.
 *
 *     learn the name ──► serve the socket ──► kubelet: GetInfo ──► registered: serve on
 *                              ▲                                └► refused: `failed`, the process exits with 1
 *                              └── socket gone (e.g. a new directory): create it again
 */
import {
  type CsiConnection,
  type CsiConnector,
  type CsiListener,
  type CsiServer,
  driverNameOf,
  type PluginRegistrationHandlers,
  waitUntilReady,
} from "@longshore/csi";
import {
  type BackoffPolicy,
  backoffMs,
  type Component,
  errorChain,
  type Host,
  periodically,
  type RuntimeEnv,
  TaskGroup,
} from "@longshore/runtime";
import { type HealthAnswer, healthy, unhealthy } from "../common/health-answer.ts";
import { forgetRegistration, rememberRegistration } from "./registration-file.ts";

/** The seams of the registrar. */
export interface RegistrarEnv extends RuntimeEnv {
  readonly csi: CsiConnection;
  readonly listener: CsiListener;
  /** Asks the registrar's own socket when its health is requested; left out: that the socket is there is enough. */
  readonly connector?: Pick<CsiConnector, "connectRegistration">;
  /** Where the socket is a file. Left out: a socket that was removed from outside is not noticed. */
  readonly host?: Pick<Host, "stat" | "writeFileAtomic" | "removeFile">;
}

/** How the registrar works. */
export interface RegistrarOptions {
  /** Path of the driver's socket as the kubelet sees it (`--kubelet-registration-path`). */
  readonly kubeletRegistrationPath: string;
  /** Directory that the kubelet watches (`--plugin-registration-path`); default `/registration`. */
  readonly registrationDir?: string;
  /** Deadline of a CSI call, in milliseconds (`--timeout`); default 1 s. */
  readonly timeoutMs?: number;
  /** Pause between looks whether the socket is still there, in milliseconds; default 10 s. */
  readonly checkSocketMs?: number;
}

/** A running registrar. */
export interface Registrar extends Component {
  /**
   * Settles when the registrar can go no further: with the error, e.g. that of a kubelet which refused the driver. The
   * process then exits with 1; after a restart it creates the socket again, and the kubelet tries again.
   */
  readonly failed: Promise<RegistrationError>;
  /** The registration socket, once it is there. */
  socketPath(): string | undefined;
  /** True after the kubelet said that it registered the driver. */
  isRegistered(): boolean;
  /** What `GET /healthz` answers now: healthy while the registration socket is there and serves. Never rejects. */
  check(signal: AbortSignal): Promise<HealthAnswer>;
}

/** The driver is not registered. */
export class RegistrationError extends Error {
  override readonly name = "RegistrationError";
}

/**
 * Why the registrar cannot run on this platform (as `process.platform` names it), or undefined: on Windows the kubelet
 * reaches drivers in another way, which Longshore does not have.
 */
export function unsupportedPlatform(platform: string): string | undefined {
  if (platform !== "win32") return undefined;
  return "the node-driver-registrar does not run on Windows: run it on the Linux nodes, and let kubernetes.io/os=linux select them";
}

const retry: BackoffPolicy = { initialMs: 500, maximumMs: 10_000 };

/** Waits for the driver, then serves the registration socket until it is stopped. */
export function startNodeDriverRegistrar(env: RegistrarEnv, options: RegistrarOptions): Registrar {
  return new RunningRegistrar(env, options);
}

class RunningRegistrar implements Registrar {
  readonly failed: Promise<RegistrationError>;
  readonly #env: RegistrarEnv;
  readonly #options: RegistrarOptions;
  readonly #tasks: TaskGroup;
  #fail: (error: RegistrationError) => void = () => {};
  #name = "";
  #server: CsiServer | undefined;
  #inode: string | undefined;
  #registered = false;

  constructor(env: RegistrarEnv, options: RegistrarOptions) {
    this.#env = env;
    this.#options = options;
    this.failed = new Promise<RegistrationError>((resolve) => {
      this.#fail = resolve;
    });
    this.#tasks = new TaskGroup((cause) =>
      this.#fail(new RegistrationError("the registrar ended", { cause })),
    );
    this.#tasks.spawn((signal) => this.#run(signal));
  }

  socketPath(): string | undefined {
    return this.#server?.endpoint;
  }

  isRegistered(): boolean {
    return this.#registered;
  }

  async check(signal: AbortSignal): Promise<HealthAnswer> {
    const { connector, host } = this.#env;
    const path = this.#server?.endpoint;
    const isThere = async () => (host === undefined ? true : (await host.stat(path ?? "")) !== undefined);
    try {
      if (path === undefined || !(await isThere())) {
        return { status: 404, body: "registration socket does not exist" };
      }
      if (connector === undefined) return healthy;
      const client = connector.connectRegistration(path);
      try {
        const { name } = await client.getInfo({ signal, timeoutMs: this.#options.timeoutMs ?? 1000 });
        return name === this.#name ? healthy : unhealthy(`another driver answers on the socket: ${name}`);
      } finally {
        client.close();
      }
    } catch (error) {
      return unhealthy(errorChain(error));
    }
  }

  async stop(): Promise<void> {
    await this.#tasks.stop();
    await this.#server?.close();
    this.#server = undefined;
    if (this.#name !== "") await forgetRegistration(this.#env, this.#options.kubeletRegistrationPath);
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { registrationDir = "/registration", timeoutMs = 1000, checkSocketMs = 10_000 } = this.#options;
    // A file that an earlier process has left would show the exec probe a registration that is over.
    await forgetRegistration(this.#env, this.#options.kubeletRegistrationPath);
    this.#name = await learnName(this.#env, timeoutMs, signal);
    const path = `${registrationDir}/${this.#name}-reg.sock`;
    await this.#serve(path, signal);
    if (this.#env.host === undefined) return;
    await periodically(
      this.#env,
      { name: "looking after the registration socket", periodMs: checkSocketMs },
      signal,
      () => this.#ensureSocket(path, signal),
    );
  }

  /** Creates the socket again when it is gone, e.g. after the kubelet was reinstalled. */
  async #ensureSocket(path: string, signal: AbortSignal): Promise<void> {
    const inode = (await this.#env.host?.stat(path))?.inode;
    if (inode !== undefined && inode === this.#inode) return;
    if (inode === undefined) {
      this.#env.logger.warn("the registration socket was removed: it is made again", { socket: path });
    } else {
      // Another registrar's socket: two registrars that replace each other's socket would never stop.
      this.#fail(new RegistrationError(`another registrar took the socket ${path}: run one for each driver`));
      return;
    }
    await this.#server?.close();
    this.#server = undefined;
    this.#registered = false;
    await this.#serve(path, signal).catch((cause) => {
      this.#fail(new RegistrationError(`the socket ${path} cannot be made again`, { cause }));
    });
  }

  async #serve(path: string, signal: AbortSignal): Promise<void> {
    const server = await this.#env.listener.serveRegistration(path, this.#handlers());
    // Stopped while the socket was being made: it must not stay.
    if (signal.aborted) return server.close();
    this.#server = server;
    this.#inode = (await this.#env.host?.stat(path))?.inode;
    this.#env.logger.info("waiting for the kubelet", { driver: this.#name, socket: path });
  }

  #handlers(): PluginRegistrationHandlers {
    const { kubeletRegistrationPath } = this.#options;
    return {
      getInfo: async () => ({
        type: "CSIPlugin",
        name: this.#name,
        endpoint: kubeletRegistrationPath,
        supportedVersions: ["1.0.0"],
      }),
      notifyRegistrationStatus: async ({ pluginRegistered, error }) => {
        this.#registered = pluginRegistered;
        const driver = this.#name;
        if (pluginRegistered) {
          this.#env.logger.info("the kubelet registered the driver", { driver });
          await rememberRegistration(this.#env, kubeletRegistrationPath);
          return;
        }
        this.#env.logger.error("the kubelet refused the driver", { driver, reason: error });
        await forgetRegistration(this.#env, kubeletRegistrationPath);
        this.#fail(new RegistrationError(`the kubelet refused driver ${driver}: ${error}`));
      },
    };
  }
}

async function learnName(env: RegistrarEnv, timeoutMs: number, signal: AbortSignal): Promise<string> {
  for (let failures = 1; ; failures++) {
    try {
      await waitUntilReady(env, env.csi, { signal, timeoutMs });
      return await driverNameOf(env.csi, { signal, timeoutMs });
    } catch (error) {
      if (signal.aborted) throw error;
      const retryInMs = backoffMs(retry, failures, env.random);
      env.logger.warn("the driver does not give its name", { error, retryInMs });
      await env.clock.sleep(retryInMs, signal);
    }
  }
}
