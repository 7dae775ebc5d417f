/**
 * Carries a cluster over to the CSI driver, or back.
 *
 *   migrate:   preflight → control plane on → each node: cordon, drain, wait, flip, wait, uncordon
 *   rollback:  preflight → each node the same way, off → control plane off → wait for clean objects
 *
 * Invariants
 *  - A node is flipped only when nothing of the plugin is in use or attached there in either form.
 *  - Going over, the control plane is first; going back, it is last.
 *  - Every step first looks whether it is done already: a run may be ended anywhere and begun again.
 *  - An API server that goes away once the run has begun is waited for; only the preflight fails at once.
 *  - Every step has a limit, and reports what it waits for (`watch-step.ts`).
 *
 * Source: docs/behaviour/migration-controllers.md Part C.
 */

import { type CrossingJournal, isUnfinished, JournalError, readJournal } from "./crossing-journal.ts";
import { observe } from "./crossing-observation.ts";
import type { CrossingEnv, CrossingOptions } from "./crossing-options.ts";
import { CrossingRun } from "./crossing-run.ts";
import type { CrossingDirection } from "./crossing-subject.ts";
import { type Finding, findingWords } from "./finding.ts";
import { JournalKeeper } from "./journal-keeper.ts";
import { preflightFindings } from "./preflight-findings.ts";
import { type OnWaiting, StepTimeoutError } from "./watch-step.ts";

/** How it went. */
export interface CrossingResult {
  readonly plugin: string;
  readonly direction: CrossingDirection;
  readonly resumed: boolean;
  readonly steps: readonly { readonly name: string; readonly ms: number }[];
  readonly elapsedMs: number;
}

/** The preflight found a blocker; nothing was changed. */
export class PreflightError extends Error {
  override readonly name = "PreflightError";
  /** Blockers first, then warnings. */
  readonly findings: readonly Finding[];
  constructor(findings: readonly Finding[]) {
    const lines = findings.filter(({ severity }) => severity === "blocker").map(findingWords);
    super(`the crossing cannot begin: ${lines.length === 1 ? lines[0] : `\n  ${lines.join("\n  ")}`}`);
    this.findings = findings;
  }
}

/** Runs a crossing, or resumes it. */
export async function runCrossing(
  env: CrossingEnv,
  options: CrossingOptions,
  signal: AbortSignal,
): Promise<CrossingResult> {
  const { subject, direction, journalFile } = options;
  const startMs = env.clock.monotonicMs();
  const { journal, resumed } = await openJournal(env, options);
  const keeper = new JournalKeeper(env, journalFile, journal);
  const run = new CrossingRun(env, options, keeper, signal);
  await run.preflight(async (onWaiting, within) => {
    for (const finding of await preflight(env, options, within, onWaiting)) {
      options.onEvent?.({ kind: "warning", finding });
    }
  });
  try {
    await run.carry();
  } catch (error) {
    const how = error instanceof StepTimeoutError ? "timedOut" : signal.aborted ? "interrupted" : "failed";
    keeper.note({ ended: { at: env.clock.now().toISOString(), how } });
    throw error;
  } finally {
    // Notes are written in the background: how the run ended must be on disk before its process exits.
    await keeper.settled();
  }
  const elapsedMs = Math.round(env.clock.monotonicMs() - startMs);
  return { plugin: subject.inTreeName, direction, resumed, steps: run.steps, elapsedMs };
}

/** Finds the problems of a crossing. @returns the warnings @throws PreflightError when something blocks */
export async function preflight(
  env: Pick<CrossingEnv, "kube" | "clock"> & Partial<Pick<CrossingEnv, "platform">>,
  options: Pick<CrossingOptions, "subject" | "direction" | "force">,
  signal: AbortSignal,
  onWaiting?: OnWaiting,
): Promise<readonly Finding[]> {
  const seen = await observe(env, signal);
  const findings = [
    ...((await env.platform?.findings?.(signal, onWaiting)) ?? []),
    ...preflightFindings(options.subject, options.direction, seen, options),
  ];
  if (findings.some(({ severity }) => severity === "blocker")) throw new PreflightError(findings);
  return findings;
}

async function openJournal(
  env: CrossingEnv,
  options: CrossingOptions,
): Promise<{ readonly journal: CrossingJournal; readonly resumed: boolean }> {
  const { subject, direction, journalFile, otherJournalFiles = [] } = options;
  for (const file of otherJournalFiles) refuseUnfinished(await readJournal(env.host, file), file);
  const found = await readJournal(env.host, journalFile);
  if (found?.plugin !== subject.inTreeName || found.platform !== env.platform.name) {
    refuseUnfinished(found, journalFile);
  }
  if (found !== undefined && isUnfinished(found) && found.direction === direction) {
    const { run: _earlier, ...journal } = found;
    return { journal, resumed: true };
  }
  // Also where the other direction was left unfinished: the state of the nodes says how far that came.
  const journal: CrossingJournal = {
    version: 1,
    platform: env.platform.name,
    plugin: subject.inTreeName,
    direction,
    startedAt: env.clock.now().toISOString(),
    nodesDone: [],
  };
  return { journal, resumed: false };
}

/** @throws JournalError when the crossing of the journal is unfinished: its nodes may be between the two paths */
function refuseUnfinished(journal: CrossingJournal | undefined, file: string): void {
  if (journal === undefined || !isUnfinished(journal)) return;
  throw new JournalError(
    `an unfinished crossing of ${journal.plugin} on ${journal.platform} is in ${file}: finish it or roll it back first`,
  );
}
