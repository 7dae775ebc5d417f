/** Whose process carries a cluster, for the crossing's journal, and whether it still runs. Real form. */
import { hostname, userInfo } from "node:os";
import { type CrossingStatus, crossingStatusOf, type Runner, readJournal } from "@longshore/migration";
import type { Clock, Host } from "@longshore/runtime";
import { identifyProcess, isAlive } from "../programs/process-identity.ts";

/** This process. */
export function thisRunner(): Runner {
  const { pid } = process;
  const processStartedAt = identifyProcess(pid)?.startedAt ?? "";
  return { user: userName(), host: hostname(), pid, processStartedAt };
}

/** A user without an entry in the system's list has a number only. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "unknown");
  }
}

/** Whether the process runs; undefined on another host, whose processes cannot be seen. */
export function isRunnerAlive({ host, pid, processStartedAt }: Runner): boolean | undefined {
  return host === hostname() ? isAlive({ pid, startedAt: processStartedAt }) : undefined;
}

/** How the crossing of the journal goes, or undefined when there has been none. @throws JournalError */
export async function readCrossingStatus(
  env: { readonly clock: Pick<Clock, "now">; readonly host: Host },
  journalFile: string,
): Promise<CrossingStatus | undefined> {
  const journal = await readJournal(env.host, journalFile);
  return journal === undefined ? undefined : crossingStatusOf(journal, isRunnerAlive, env.clock.now());
}

/** How the crossings of a cluster's plugins go, those that there have been, in the order of their journals. @throws JournalError */
export async function readCrossingStatuses(
  env: { readonly clock: Pick<Clock, "now">; readonly host: Host },
  journalFiles: readonly string[],
): Promise<readonly CrossingStatus[]> {
  const statuses = await Promise.all(journalFiles.map((file) => readCrossingStatus(env, file)));
  return statuses.filter((status) => status !== undefined);
}

/** The one to look at: that which has not come to its end, or the last one. */
export function currentCrossing(statuses: readonly CrossingStatus[]): CrossingStatus | undefined {
  const unfinished = statuses.find(({ state }) => state !== "finished");
  if (unfinished !== undefined) return unfinished;
  return [...statuses].sort((a, b) => (a.finishedAt ?? "").localeCompare(b.finishedAt ?? "")).at(-1);
}
