/**
 * Keeps the list of installed drivers up to date: it looks at the driver directory at the start, and when a watch says that
 * something below it has changed. Source: docs/behaviour/flexvolume.md 2.2.
 *
 * Invariant: at most one look within `minIntervalMs`, however much changes; what changes within it is seen at its end.
 */
import {
  abortable,
  type Component,
  type Host,
  periodically,
  type RuntimeEnv,
  TaskGroup,
} from "@longshore/runtime";
import { type InstalledDriver, lookAtDriverDirectory } from "./driver-directory.ts";

/** Longest time between two looks, in milliseconds; a watch usually comes first. */
const rescanMs = 10_000;
/** Most directories that are watched; what changes in others is seen by the next look. */
const watchesMax = 512;

type Env = RuntimeEnv & { readonly host: Host };

/** How a scan runs. */
export interface DriverDirectoryScanOptions {
  readonly directory: string;
  /** Shortest time between the beginnings of two looks, in milliseconds. */
  readonly minIntervalMs: number;
}

/** A running scan. */
export interface DriverDirectoryScan extends Component {
  /** The drivers as of the last look; none before the first. */
  readonly drivers: ReadonlyMap<string, InstalledDriver>;
  /** Looks so far, those that failed included. */
  readonly looks: number;
  /** Calls `listener` after every look, and at once if there has been one. @returns a function that unsubscribes */
  onLook(listener: () => void): () => void;
}

/** Starts looking. A look that fails is repeated with growing delays; the list stays as it was. */
export function startDriverDirectoryScan(
  env: Env,
  { directory, minIntervalMs }: DriverDirectoryScanOptions,
): DriverDirectoryScan {
  const tasks = new TaskGroup((error) => env.logger.error("Flexvolume driver scan ended", { error }));
  const listeners = new Set<() => void>();
  let drivers: ReadonlyMap<string, InstalledDriver> = new Map();
  let looks = 0;
  tasks.spawn(async (signal) => {
    const loop = { name: "Flexvolume driver scan", periodMs: 0 };
    await periodically(env, loop, signal, async () => {
      const nextMs = env.clock.monotonicMs() + minIntervalMs;
      let directories: readonly string[] = [];
      try {
        const look = await lookAtDriverDirectory(env.host, directory);
        ({ drivers, directories } = look);
      } finally {
        looks++;
        if (!signal.aborted) for (const listener of listeners) listener();
      }
      await anyChange(env, directories.slice(0, watchesMax), signal);
      await env.clock.sleep(Math.max(0, nextMs - env.clock.monotonicMs()), signal);
    });
  });
  return {
    get drivers() {
      return drivers;
    },
    get looks() {
      return looks;
    },
    onLook(listener) {
      listeners.add(listener);
      if (looks > 0) listener();
      return () => listeners.delete(listener);
    },
    stop: () => tasks.stop(),
  };
}

/**
 * Resolves when one of the directories may have changed since it was read, at the latest after `rescanMs`. A watch notices
 * what has changed since, so none has to begin before the look.
 */
async function anyChange(env: Env, directories: readonly string[], signal: AbortSignal): Promise<void> {
  const controller = new AbortController();
  const cancel = () => controller.abort();
  signal.addEventListener("abort", cancel, { once: true });
  const never = () => abortable(new Promise<void>(() => {}), controller.signal).catch(() => {});
  try {
    await Promise.race([
      env.clock.sleep(rescanMs, controller.signal).catch(() => {}),
      // Without a watch, for want of inotify instances, the periodic look remains.
      ...directories.map((directory) => env.host.watchDirectory(directory, controller.signal).catch(never)),
    ]);
  } finally {
    signal.removeEventListener("abort", cancel);
    controller.abort();
  }
}
