/**
 * Keeps what is registered equal to the registration sockets that exist.
 *
 *   socket appears ──▶ GetInfo ▶ validate ▶ [registered] ▶ handler.register ▶ notify(true)
 *   socket removed or recreated ──▶ [not registered] ▶ handler.deRegister ──▶ (register again)
 *
 * Source: docs/behaviour/node-agent.md 1.
 *
 * Invariants
 *  - One operation for each socket path at a time; the old plugin of a recreated socket is
 *    deregistered before the new one is registered.
 *  - A plugin is registered only while it may be: the node agent waits for its own Node.
 *  - A registration that failed after the plugin entered the table is not retried here: the
 *    registrar receives the failure and recreates its socket.
 */
import type { CsiConnector, PluginRegistrationClient } from "@longshore/csi";
import {
  abortable,
  type Component,
  errorChain,
  type Host,
  periodically,
  type RuntimeEnv,
  TaskGroup,
} from "@longshore/runtime";
import { createOperationExecutor } from "../../framework/operations.ts";
import { kubeletPaths } from "../../framework/volume-host.ts";
import type { PluginCandidate, RegistrationHandler } from "./csi-registration-handler.ts";
import { findPluginSockets, type PluginSockets } from "./plugin-sockets.ts";

/** Longest time between two looks at the directory; a watch usually comes first. */
const rescanMs = 5_000;
const getInfoTimeoutMs = 10_000;
const notifyTimeoutMs = 5_000;

/** The registrar presented something that cannot be registered. */
export class PluginRegistrationError extends Error {
  override readonly name = "PluginRegistrationError";
}

type Env = RuntimeEnv & { readonly host: Host; readonly connector: CsiConnector };

interface Registered {
  readonly identity: string;
  readonly name: string;
  readonly handler: RegistrationHandler;
}

/** How plugins are registered. */
export interface PluginRegistrationOptions {
  readonly rootDir: string;
  /** By plugin type, e.g. `CSIPlugin`. */
  readonly handlers: Readonly<Record<string, RegistrationHandler>>;
  /**
   * Whether there is something to register plugins on: as long as it is false, registrars are left waiting rather than
   * refused, since a refused one exits. Left out: always.
   */
  readonly mayRegister?: () => boolean;
}

/** A running registration of plugins. */
export interface PluginRegistration extends Component {
  /** Looks again, since `mayRegister` may have changed. */
  wake(): void;
}

/** Starts looking for plugins. */
export function startPluginRegistration(env: Env, options: PluginRegistrationOptions): PluginRegistration {
  const directory = kubeletPaths.registrationDir(options.rootDir);
  const tasks = new TaskGroup((error) => env.logger.error("plugin registration ended", { error }));
  const registered = new Map<string, Registered>();
  let desired: PluginSockets = new Map();
  const executor = createOperationExecutor(env, {
    onEnd({ key, operationName, error, retryInMs }) {
      if (error !== undefined) {
        env.logger.warn(`${operationName} failed`, { socket: key.volumeName, error: errorChain(error) });
        tasks.spawn(async (signal) => {
          await env.clock.sleep(retryInMs, signal);
          reconcile();
        });
      } else reconcile();
    },
  });

  function reconcile(): void {
    if (tasks.signal.aborted) return;
    for (const [path, entry] of registered) {
      if (desired.get(path) === entry.identity) continue;
      executor.startOperation({ volumeName: path }, "plugin_deregistration", async (signal) => {
        registered.delete(path);
        await entry.handler.deRegisterPlugin(entry.name, signal);
        env.logger.info("plugin deregistered", { plugin: entry.name, socket: path });
      });
    }
    if (options.mayRegister?.() === false) return;
    for (const [path, identity] of desired) {
      if (registered.has(path)) continue;
      executor.startOperation({ volumeName: path }, "plugin_registration", (signal) =>
        register(path, identity, signal),
      );
    }
  }

  async function register(path: string, identity: string, signal: AbortSignal): Promise<void> {
    const client = env.connector.connectRegistration(path);
    try {
      const info = await client.getInfo({ signal, timeoutMs: getInfoTimeoutMs });
      const handler = options.handlers[info.type];
      const candidate: PluginCandidate = {
        name: info.name,
        endpoint: info.endpoint === "" ? path : info.endpoint,
        versions: info.supportedVersions,
      };
      try {
        if (handler === undefined) {
          throw new PluginRegistrationError(`${path}: no handler for plugins of type "${info.type}"`);
        }
        handler.validatePlugin(candidate);
        registered.set(path, { identity, name: info.name, handler });
        await handler.registerPlugin(candidate, signal);
      } catch (error) {
        await notify(client, { pluginRegistered: false, error: errorChain(error) }, signal);
        throw error;
      }
      await notify(client, { pluginRegistered: true, error: "" }, signal);
      env.logger.info("plugin registered", { plugin: info.name, endpoint: candidate.endpoint });
    } finally {
      client.close();
    }
  }

  async function notify(
    client: PluginRegistrationClient,
    status: { readonly pluginRegistered: boolean; readonly error: string },
    signal: AbortSignal,
  ): Promise<void> {
    try {
      await client.notifyRegistrationStatus(status, { signal, timeoutMs: notifyTimeoutMs });
    } catch (error) {
      env.logger.warn("the outcome of a registration could not be reported to its registrar", {
        error: errorChain(error),
      });
    }
  }

  tasks.spawn(async (signal) => {
    const loop = {
      name: "plugin socket scan",
      periodMs: 10,
      backoff: { initialMs: 1000, maximumMs: 30_000 },
    };
    await periodically(env, loop, signal, async () => {
      await env.host.makeDirectory(directory);
      // The watch begins before the look, so that nothing that comes in between is missed.
      const pause = startPause(env, directory, signal);
      desired = await findPluginSockets(env.host, directory).catch((error) => {
        pause.cancel();
        throw error;
      });
      reconcile();
      await pause.over;
    });
  });

  return {
    wake: reconcile,
    async stop() {
      await tasks.stop();
      await executor.stop();
    },
  };
}

/** A pause until the directory may have changed, at most `rescanMs`. Both waits end together. */
function startPause(
  env: Env,
  directory: string,
  signal: AbortSignal,
): { readonly over: Promise<void>; cancel(): void } {
  const controller = new AbortController();
  const cancel = () => controller.abort();
  signal.addEventListener("abort", cancel, { once: true });
  const ignore = () => {};
  const watch = env.host.watchDirectory(directory, controller.signal).catch(async () => {
    // A watch that cannot be had leaves the periodic look.
    await abortable(new Promise<void>(() => {}), controller.signal).catch(ignore);
  });
  const timeout = env.clock.sleep(rescanMs, controller.signal).catch(ignore);
  const over = Promise.race([watch, timeout]).finally(() => {
    signal.removeEventListener("abort", cancel);
    controller.abort();
  });
  return { over, cancel };
}
