/**
 * One crossing at a time on a cluster: the file names the process that runs it. What a process that was
 * killed has left is taken over. Real form.
 */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { ClusterLayout } from "../cluster/layout.ts";
import { identifyProcess, isAlive, type ProcessIdentity } from "./process-identity.ts";

/** Another process carries the cluster just now. */
export class CrossingUnderWayError extends Error {
  override readonly name = "CrossingUnderWayError";
}

/** Takes the cluster for a crossing of this process; gives what lets go of it. @throws CrossingUnderWayError */
export function takeCrossing(layout: ClusterLayout, pid: number = process.pid): () => void {
  const file = `${layout.dir}/crossing.lock`;
  const own = `${file}.${pid}`;
  const identity = JSON.stringify(identifyProcess(pid));
  writeFileSync(own, identity, { mode: 0o600 });
  try {
    while (!linked(own, file)) {
      const text = textOf(file);
      const owner = parsed(text);
      if (owner !== undefined && isAlive(owner)) {
        throw new CrossingUnderWayError(
          `process ${owner.pid} carries the cluster in ${layout.dir} just now: wait for its end, or end it with Ctrl-C, and run this again`,
        );
      }
      if (text !== undefined) removeStale(file, `${own}.stale`, text);
    }
  } finally {
    rmSync(own, { force: true });
  }
  return () => {
    if (textOf(file) === identity) rmSync(file, { force: true });
  };
}

/** Takes the file away, unless another process has just done so and put its own there. */
function removeStale(file: string, aside: string, text: string): void {
  try {
    renameSync(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  if (textOf(aside) !== text) linked(aside, file);
  rmSync(aside, { force: true });
}

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function parsed(text: string | undefined): ProcessIdentity | undefined {
  try {
    return JSON.parse(text ?? "") as ProcessIdentity;
  } catch {
    return undefined;
  }
}
