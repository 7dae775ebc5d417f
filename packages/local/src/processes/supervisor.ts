/**
 * Keeps the processes of a local cluster running: starts each in a process group of its own,
 * restarts what died with back-off and says so, and ends all of them in reverse order.
 *
 * Real form. Every process has a pid file with its start time, so that `cluster down` can clean up
 * after a supervisor that was killed itself.
 */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { closeSync, openSync, rmSync } from "node:fs";
import {
  backoffMs,
  type Clock,
  type Component,
  errorChain,
  type Logger,
  TaskGroup,
  underUmask,
} from "@longshore/runtime";
import { writeFileAtomicSync } from "../programs/atomic-file.ts";
import { childEnvironment } from "../programs/child-environment.ts";
import {
  identifyProcess,
  isAlive,
  isGroupAlive,
  type ProcessIdentity,
  signalProcess,
} from "../programs/process-identity.ts";

/** A process to keep running. */
export interface ProcessSpec {
  readonly name: string;
  /** Program and arguments. */
  readonly argv: readonly string[];
  /** Its working directory; default the supervisor's. */
  readonly cwd?: string;
  readonly pidFile: string;
  readonly logFile: string;
  /** How long it may take to end after SIGTERM, in milliseconds; default 5000. */
  readonly killAfterMs?: number;
}

/** The contents of a pid file. */
export interface PidRecord extends ProcessIdentity {
  readonly restarts: number;
}

/** What the supervisor needs. */
export interface SupervisorEnv {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A running supervisor. */
export interface Supervisor extends Component {
  /** Starts a process and keeps it running: one that ends is started again, with delays that grow while it ends early. */
  supervise(spec: ProcessSpec): void;
  /** A process that has ended {@link failingAfter} times in a row without having been healthy. */
  failing(): { readonly spec: ProcessSpec; readonly ended: string } | undefined;
}

/** So many ends in a row, and a process counts as one that cannot run. */
export const failingAfter = 4;

const restartBackoff = { initialMs: 50, maximumMs: 10_000 };
/** A process that ran this long is healthy: its next restart is immediate again. */
const healthyMs = 10_000;
const killAfterMs = 5000;
const helpersWithinMs = 5000;

/**
 * Starts a supervisor of no process yet. `stop` ends the processes one after the other, the last started first, each with
 * SIGTERM and, once its time to end is over, SIGKILL.
 */
export function startSupervisor(env: SupervisorEnv): Supervisor {
  const tasks: { readonly spec: ProcessSpec; readonly group: TaskGroup; readonly health: Health }[] = [];
  return {
    supervise(spec) {
      const group = new TaskGroup((error) =>
        env.logger.error("supervision failed", { process: spec.name, error }),
      );
      const health: Health = { failures: 0, ended: "" };
      tasks.push({ spec, group, health });
      group.spawn((signal) => keepRunning(env, spec, health, signal));
    },
    failing() {
      const found = tasks.find(({ health }) => health.failures >= failingAfter);
      return found === undefined ? undefined : { spec: found.spec, ended: found.health.ended };
    },
    async stop() {
      for (const { group } of [...tasks].reverse()) await group.stop();
    },
  };
}

/** How a process has fared. */
interface Health {
  /** Ends in a row of runs that were too short. */
  failures: number;
  /** How it ended last. */
  ended: string;
}

/** How a process ends after it was asked to end. */
const endedWell = "exit code 0";

async function keepRunning(
  env: SupervisorEnv,
  spec: ProcessSpec,
  health: Health,
  signal: AbortSignal,
): Promise<void> {
  for (let restarts = 0; !signal.aborted; restarts++) {
    const startedMs = env.clock.monotonicMs();
    let ended: string;
    try {
      const child = startProcess(spec, restarts);
      ended = await exitOf(env, child, spec.killAfterMs ?? killAfterMs, signal);
      if (child.pid !== undefined) await helpersEnd(env, child.pid);
      rmSync(spec.pidFile, { force: true });
    } catch (error) {
      ended = `could not be started: ${errorChain(error)}`; // A full disk may have room again later.
    }
    if (signal.aborted) return;
    health.failures = env.clock.monotonicMs() - startedMs >= healthyMs ? 1 : health.failures + 1;
    health.ended = ended;
    const delayMs = backoffMs(restartBackoff, health.failures);
    // A process that was asked to end has ended well: that is how it is restarted on purpose.
    const level = ended === endedWell ? "info" : "warn";
    env.logger[level](`${spec.name} ended (${ended}); restarting`, { inMs: delayMs, log: spec.logFile });
    await env.clock.sleep(delayMs, signal).catch(() => {});
  }
}

function startProcess(spec: ProcessSpec, restarts: number): ChildProcess {
  const log = openSync(spec.logFile, "a", 0o600);
  const [program = "", ...args] = spec.argv;
  const options: SpawnOptions = {
    env: childEnvironment(),
    detached: true,
    stdio: ["ignore", log, log],
    ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
  };
  // Files that an external driver makes are for this user alone as well.
  const child = underUmask(0o077, () => spawn(program, args, options));
  closeSync(log);
  child.on("error", () => {}); // Seen as an exit below.
  const identity = child.pid === undefined ? undefined : identifyProcess(child.pid);
  if (identity !== undefined) {
    const record: PidRecord = { ...identity, restarts };
    try {
      writeFileAtomicSync(spec.pidFile, JSON.stringify(record));
    } catch (error) {
      child.kill("SIGKILL"); // Without a record of it, it could not be found and ended later.
      throw error;
    }
  }
  return child;
}

/**
 * Waits for what a process that was killed has left running in its process group, such as a mkfs: the
 * next one must not find a device half formatted. What takes too long hangs, and is ended. (Pods are in
 * groups of their own.)
 */
async function helpersEnd(env: SupervisorEnv, pid: number): Promise<void> {
  const never = new AbortController().signal;
  const startMs = env.clock.monotonicMs();
  while (isGroupAlive(pid)) {
    if (env.clock.monotonicMs() - startMs > helpersWithinMs) return endGroup(pid);
    await env.clock.sleep(10, never);
  }
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Nothing is left of it.
  }
}

/** Resolves when the process has ended; ends it (SIGTERM, then SIGKILL) when `signal` aborts. */
async function exitOf(
  env: SupervisorEnv,
  child: ChildProcess,
  mostMs: number,
  signal: AbortSignal,
): Promise<string> {
  const exited = new Promise<string>((resolve) => {
    if (child.pid === undefined) {
      child.on("error", (error) => resolve(notStarted(child.spawnfile, error)));
      return;
    }
    child.on("exit", (code, by) => resolve(by === null ? `exit code ${code}` : by));
  });
  let kill: { cancel(): void } | undefined;
  const end = () => {
    child.kill("SIGTERM");
    kill = env.clock.timer(mostMs, () => child.kill("SIGKILL"));
  };
  if (signal.aborted) end();
  else signal.addEventListener("abort", end, { once: true });
  const how = await exited;
  signal.removeEventListener("abort", end);
  kill?.cancel();
  return how;
}

function notStarted(program: string, error: NodeJS.ErrnoException): string {
  const why = error.code === "ENOENT" ? `there is no program ${program}` : error.message;
  return `could not be started: ${why}`;
}

/** Ends a process known by its pid record: SIGTERM, SIGKILL after a while; resolves when it is gone. */
export async function endProcess(
  env: SupervisorEnv,
  identity: ProcessIdentity,
  options: { readonly graceMs?: number; readonly signal: AbortSignal },
): Promise<void> {
  const graceMs = options.graceMs ?? killAfterMs;
  const startMs = env.clock.monotonicMs();
  signalProcess(identity, "SIGTERM");
  let killed = false;
  while (isAlive(identity)) {
    if (!killed && env.clock.monotonicMs() - startMs > graceMs) {
      signalProcess(identity, "SIGKILL");
      killed = true;
    }
    await env.clock.sleep(20, options.signal);
  }
}
