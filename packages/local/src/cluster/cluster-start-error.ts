/**
 * Why a cluster did not come up, in one sentence: a process that cannot run and its last words, a
 * disk that is full, or a wait that took too long.
 */
import { type Clock, DeadlineError, type Host, withDeadline } from "@longshore/runtime";
import { freeBytesAt } from "../processes/machine.ts";
import type { Supervisor } from "../processes/supervisor.ts";

/** The cluster did not come up: of a new one nothing is left, one that was there before is stopped, as it was. */
export class ClusterStartError extends Error {
  override readonly name = "ClusterStartError";
}

/** Room that a cluster needs, in bytes: a new one for its store and logs, one that was there before to go on. */
export const roomBytes = { fresh: 64 * 1024 * 1024, existing: 8 * 1024 * 1024 } as const;
/** With less than this nothing can be written any more. */
export const fullBelowBytes = 1024 * 1024;
const pollMs = 100;

/** Refuses a directory on a disk without room. @throws ClusterStartError */
export async function requireRoom(dir: string, neededBytes: number): Promise<void> {
  const free = await freeBytesAt(dir);
  if (free >= neededBytes) return;
  throw new ClusterStartError(
    `the disk that holds ${dir} has ${mebibytes(free)} left, a cluster needs ${mebibytes(neededBytes)}: make room there, or choose another \`dir\``,
  );
}

/** What is being waited for. */
export interface StartWait {
  readonly dir: string;
  readonly withinMs: number;
  /** For the sentence: "the cluster is not up after 60 s, waiting for …". */
  readonly waitingFor: string;
  /** What is known of the cause when it took too long; left out, or undefined: the machine may be too busy. */
  readonly cause?: () => Promise<string | undefined>;
  /** The verb that starts this cluster; default `up`. */
  readonly verb?: "up" | "start";
}

/** Waits for `work`; stops as soon as a process turns out unable to run. @throws ClusterStartError */
export async function whileStarting<T>(
  env: { readonly clock: Clock; readonly host: Host },
  supervisor: Supervisor,
  wait: StartWait,
  parent: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  // Whichever of the two ends first ends the other.
  const done = new AbortController();
  try {
    return await withDeadline(env.clock, wait.withinMs, parent, (deadline) => {
      const signal = AbortSignal.any([deadline, done.signal]);
      return Promise.race([work(signal), processFails(env, supervisor, wait.dir, signal)]);
    });
  } catch (error) {
    if (!(error instanceof DeadlineError) || parent.aborted) throw error;
    const busy = `this machine may be too busy; run "longshore cluster ${wait.verb ?? "up"}" again`;
    throw new ClusterStartError(
      `the cluster is not up after ${wait.withinMs / 1000} s, waiting for ${wait.waitingFor}: ${(await wait.cause?.()) ?? busy}`,
    );
  } finally {
    done.abort();
  }
}

/** Never resolves. @throws ClusterStartError */
async function processFails(
  env: { readonly clock: Clock; readonly host: Host },
  supervisor: Supervisor,
  dir: string,
  signal: AbortSignal,
): Promise<never> {
  for (;;) {
    // A process on a full disk may hang as well as end, and cannot even log why.
    if ((await env.host.usage(dir)).availableBytes < fullBelowBytes) {
      throw new ClusterStartError(
        `the cluster cannot start because the disk that holds ${dir} is full: make room there, or choose another \`dir\``,
      );
    }
    const failing = supervisor.failing();
    if (failing !== undefined) {
      const { spec, ended } = failing;
      const words = lastWords((await env.host.readFile(spec.logFile)) ?? "") || ended;
      throw new ClusterStartError(
        `${spec.name} cannot run (${words}): correct that and start the cluster again`,
      );
    }
    await env.clock.sleep(pollMs, signal);
  }
}

/** The last thing that a process said, without the dress of a log line. */
export function lastWords(log: string): string {
  const line = log.trimEnd().split("\n").at(-1)?.trim() ?? "";
  try {
    const { message, error } = JSON.parse(line) as { message?: string; error?: unknown };
    return [message, typeof error === "string" ? error : undefined].filter((part) => part).join(": ");
  } catch {
    return line.replace(/^longshore: /, "");
  }
}

function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / 1024 / 1024)} MiB`;
}
