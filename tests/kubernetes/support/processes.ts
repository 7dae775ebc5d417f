/**
 * Child processes of the tests against real Kubernetes: started with a log file, ended for certain.
 * Where setpriv is present a child dies with the test run, even when that is killed.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { promisify } from "node:util";

/** Runs a program to its end and returns its standard output; rejects when it fails. */
export async function run(program: string, args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, [...args]);
  return stdout;
}

/** A program that runs until it is stopped. */
export interface Daemon {
  readonly name: string;
  /** True while the program runs. */
  running(): boolean;
  /** The last lines that it wrote to its log. */
  logTail(): string;
  /** Ends it: SIGTERM, and SIGKILL after `graceMs` (default 0: at once). */
  stop(graceMs?: number): Promise<void>;
}

const setpriv = ["/usr/bin/setpriv", "/bin/setpriv"].find((path) => existsSync(path));

/** Starts `program`; everything it writes goes to `logPath`. */
export function startDaemon(name: string, program: string, args: readonly string[], logPath: string): Daemon {
  const log = openSync(logPath, "a", 0o600);
  const [file, argv] =
    setpriv === undefined ? [program, args] : [setpriv, ["--pdeathsig", "KILL", program, ...args]];
  const child: ChildProcess = spawn(file, argv, { stdio: ["ignore", log, log] });
  closeSync(log);
  let ended = false;
  const end = new Promise<void>((resolve) => {
    const done = () => {
      ended = true;
      resolve();
    };
    child.once("exit", done);
    child.once("error", done);
  });
  return {
    name,
    running: () => !ended,
    logTail: () => readFileSync(logPath, "utf8").split("\n").slice(-25).join("\n"),
    stop: async (graceMs = 0) => {
      if (ended) return;
      child.kill(graceMs > 0 ? "SIGTERM" : "SIGKILL");
      const timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
      await end;
      clearTimeout(timer);
    },
  };
}

/** Ports that no process listens on at this moment, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports: number[] = [];
  for (const server of servers) {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("a TCP server has no port");
    ports.push(address.port);
  }
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/**
 * Repeats `probe` until it returns something other than `undefined` or `false`, and returns that.
 * Rejects after `timeoutMs` naming `what` and the last error.
 */
export async function eventually<T>(
  what: string,
  probe: () => Promise<T | undefined | false>,
  timeoutMs = 30_000,
  everyMs = 50,
): Promise<T> {
  const until = performance.now() + timeoutMs;
  let last: unknown;
  while (performance.now() < until) {
    try {
      const answer = await probe();
      if (answer !== undefined && answer !== false) return answer;
      last = undefined;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause: last });
}
