/** The real forms of the seams for a command, and where local clusters live. */
import { mkdtempSync, realpathSync, rmdirSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type ClusterEnv, mayMount, processHost } from "@longshore/local";
import { createLogger, noMeter, systemClock, systemRandom } from "@longshore/runtime";

/** The command itself: program and script. */
export const longshoreCommand: readonly string[] = [
  process.execPath,
  fileURLToPath(new URL("../bin/longshore.js", import.meta.url)),
];

/** The directory of a local cluster unless `--dir` names one. */
export function defaultClusterDir(): string {
  const state = process.env.XDG_STATE_HOME ?? join(homedir(), ".local", "state");
  return join(state, "longshore", "cluster");
}

/** An absolute, normalised path. */
export function absolute(path: string): string {
  return resolve(path);
}

/**
 * The cluster directory that was named, or the default one: absolute and without links, as the machine
 * lists mounts by their real paths. It need not exist.
 */
export function clusterDir(named: string | undefined): string {
  return realPath(resolve(named ?? defaultClusterDir()));
}

/**
 * The directory of a cluster that exists no longer than the command: the one that was named, or a new one. `release`
 * takes the new one away where no cluster came to be in it.
 */
export function passingClusterDir(named: string | undefined): { readonly dir: string; release(): void } {
  if (named !== undefined) return { dir: clusterDir(named), release() {} };
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "longshore-")));
  return {
    dir,
    release() {
      try {
        rmdirSync(dir);
      } catch {
        // The cluster has removed it, or could not clean up and has said so.
      }
    },
  };
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    // Any other error is reported by the code that uses the path.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || path === dirname(path)) return path;
    return join(realPath(dirname(path)), basename(path));
  }
}

/** The host form this process may use. */
export function hostForm(): "kernel" | "unprivileged" {
  return mayMount() && process.env.LONGSHORE_UNPRIVILEGED !== "1" ? "kernel" : "unprivileged";
}

/** What cluster commands need; warnings go to stderr in their human form. */
export function commandEnv(form: "kernel" | "unprivileged" = hostForm()): ClusterEnv {
  return {
    clock: systemClock,
    random: systemRandom,
    logger: createLogger({ format: "human", level: "warn" }),
    meter: noMeter,
    host: processHost(form),
  };
}
