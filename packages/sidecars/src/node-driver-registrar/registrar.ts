/**
 * The node-driver-registrar: tells the kubelet of a driver through a socket in its registration directory
 * (sidecars.md §6). It writes no API object; the kubelet does.
 */
import {
  type CsiConnection,
  type CsiListener,
  type CsiServer,
  driverNameOf,
  waitUntilReady,
} from "@longshore/csi";
import {
  type BackoffPolicy,
  backoffMs,
  type Component,
  type RuntimeEnv,
  TaskGroup,
} from "@longshore/runtime";

/** The seams of the registrar. */
export interface RegistrarEnv extends RuntimeEnv {
  readonly csi: CsiConnection;
  readonly listener: CsiListener;
}

/** How the registrar works. */
export interface RegistrarOptions {
  /** Path of the driver's socket as the kubelet sees it. */
  readonly kubeletRegistrationPath: string;
  /** Directory that the kubelet watches; default `/registration`. */
  readonly registrationDir?: string;
  /** Deadline of a CSI call, in milliseconds; default 1 s. */
  readonly timeoutMs?: number;
}

/** A running registrar. */
export interface Registrar extends Component {
  /**
   * Settles when the registrar can go no further: with the error, e.g. that of a kubelet which refused the driver.
   * The process then exits with 1; started again it makes the socket anew, and the kubelet tries again.
   */
  readonly failed: Promise<RegistrationError>;
  /** The registration socket, once it is there. */
  socketPath(): string | undefined;
  /** True after the kubelet said that it registered the driver. */
  isRegistered(): boolean;
}

/** The driver is not registered. */
export class RegistrationError extends Error {
  override readonly name = "RegistrationError";
}

const retry: BackoffPolicy = { initialMs: 500, maximumMs: 10_000 };

/** Waits for the driver, then serves the registration socket until it is stopped. */
export function startNodeDriverRegistrar(env: RegistrarEnv, options: RegistrarOptions): Registrar {
  const { registrationDir = "/registration", timeoutMs = 1000 } = options;
  let fail: (error: RegistrationError) => void = () => {};
  const failed = new Promise<RegistrationError>((resolve) => {
    fail = resolve;
  });
  const tasks = new TaskGroup((cause) => fail(new RegistrationError("the registrar ended", { cause })));
  let server: CsiServer | undefined;
  let registered = false;

  tasks.spawn(async (signal) => {
    const name = await learnName(env, timeoutMs, signal);
    const socketPath = `${registrationDir}/${name}-reg.sock`;
    const started = await env.listener.serveRegistration(socketPath, {
      getInfo: async () => ({
        type: "CSIPlugin",
        name,
        endpoint: options.kubeletRegistrationPath,
        supportedVersions: ["1.0.0"],
      }),
      async notifyRegistrationStatus({ pluginRegistered, error }) {
        registered = pluginRegistered;
        if (pluginRegistered) {
          env.logger.info("the kubelet registered the driver", { driver: name });
          return;
        }
        env.logger.error("the kubelet refused the driver", { driver: name, reason: error });
        fail(new RegistrationError(`the kubelet refused driver ${name}: ${error}`));
      },
    });
    // Stopped while the socket was being made: it must not stay.
    if (signal.aborted) await started.close();
    else server = started;
  });

  return {
    failed,
    socketPath: () => server?.endpoint,
    isRegistered: () => registered,
    async stop() {
      await tasks.stop();
      await server?.close();
      server = undefined;
    },
  };
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
