/**
 * Keeps the list of registration sockets up to date: it reads the directory at the start, when a watch says that
 * something changed, and from time to time without. Source: docs/behaviour/node-agent.md 1.2.
 */
import { type Component, type Host, periodically, type RuntimeEnv, TaskGroup } from "@longshore/runtime";
import { findPluginSockets, type PluginSockets } from "./plugin-sockets.ts";

/** Longest time between two looks at the directory while it is not watched. */
const rescanMs = 5_000;
/** The same while it is watched; the watch of a real directory ends sooner by itself. */
const watchedRescanMs = 30_000;

/** Why the waits of a pause end; no caller sees it. */
const pauseOver = new Error("the pause is over");

type Env = RuntimeEnv & { readonly host: Host };

/** A running scan of the registration directory. */
export interface PluginSocketScan extends Component {
  /** The sockets as of the last look; none before the first. */
  readonly sockets: PluginSockets;
  /** Calls `listener` after every look, and at once if there has been one. @returns a function that unsubscribes */
  onScan(listener: () => void): () => void;
}

/** Starts looking; makes the directory when it is missing. A look that fails is repeated with growing delays. */
export function startPluginSocketScan(env: Env, directory: string): PluginSocketScan {
  const tasks = new TaskGroup((error) => env.logger.error("plugin socket scan ended", { error }));
  const listeners = new Set<() => void>();
  let found: PluginSockets | undefined;
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
      found = await findPluginSockets(env.host, directory).catch((error) => {
        pause.cancel();
        throw error;
      });
      if (!signal.aborted) for (const listener of listeners) listener();
      await pause.over;
    });
  });
  return {
    get sockets() {
      return found ?? new Map();
    },
    onScan(listener) {
      listeners.add(listener);
      if (found !== undefined) listener();
      return () => listeners.delete(listener);
    },
    stop: () => tasks.stop(),
  };
}

/** A pause until the directory may have changed, at most `watchedRescanMs`. Both waits end together. */
function startPause(
  env: Env,
  directory: string,
  signal: AbortSignal,
): { readonly over: Promise<void>; cancel(): void } {
  const controller = new AbortController();
  const cancel = () => controller.abort(pauseOver);
  signal.addEventListener("abort", cancel, { once: true });
  const ignore = () => {};
  const watch = env.host
    .watchDirectory(directory, controller.signal)
    // Without a watch the periodic scan remains.
    .catch(() => env.clock.sleep(rescanMs, controller.signal))
    .catch(ignore);
  const timeout = env.clock.sleep(watchedRescanMs, controller.signal).catch(ignore);
  const over = Promise.race([watch, timeout]).finally(() => {
    signal.removeEventListener("abort", cancel);
    cancel();
  });
  return { over, cancel };
}
