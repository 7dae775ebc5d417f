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
 *  - An API server that goes away once the run has begun is waited for, also where the run begins again after the loss of its
 *    Lease; only the first preflight fails at once.
 *  - Every step has a limit, and reports what it waits for (`watch-step.ts`).
 *
 * Source: docs/behaviour/migration-controllers.md Part C.
 */

import { type CrossingJournal, isUnfinished, JournalError } from "./crossing-journal.ts";
import { type CrossingObservation, observe } from "./crossing-observation.ts";
import type { CrossingEnv, CrossingOptions } from "./crossing-options.ts";
import { crossingPlanOf, readClusterId } from "./crossing-plan.ts";
import { CrossingRun } from "./crossing-run.ts";
import { allSubjects, type CrossingDirection, type CrossingSubject } from "./crossing-subject.ts";
import { type Finding, findingWords } from "./finding.ts";
import { JournalKeeper } from "./journal-keeper.ts";
import { configMapJournal, fileJournal, type JournalStore, twoJournals } from "./journal-store.ts";
import { PlanError } from "./plan-document.ts";
import { planDrift, requireSameCrossing } from "./plan-drift.ts";
import { preflightFindings } from "./preflight-findings.ts";
import { startWork } from "./step-runner.ts";
import { waitFor } from "./waits.ts";
import { type OnWaiting, StepTimeoutError } from "./watch-step.ts";

/** How it went. */
export interface CrossingResult {
  readonly plugin: string;
  readonly direction: CrossingDirection;
  readonly resumed: boolean;
  readonly steps: readonly { readonly name: string; readonly ms: number }[];
  readonly elapsedMs: number;
  /** Nodes that the run has left for a later one, where it was to pause; empty when the crossing has come to its end. */
  readonly nodesLeft: readonly string[];
  /** After a rollback: names of PersistentVolumes that the driver has made and that still need it. */
  readonly driverVolumes: readonly string[];
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
  const { subject, direction } = options;
  const startMs = env.clock.monotonicMs();
  const store = journalStoreOf(env, options);
  const place = { name: "preflight", wait: waitFor("journal", "", "to be read") };
  const { journal, resumed } = await startWork(env, options, place, signal, (_, within) =>
    openJournal(env, options, store, within),
  );
  const keeper = new JournalKeeper(env, store, journal);
  const run = new CrossingRun(env, options, keeper, signal);
  await run.preflight(async (onWaiting, within) => {
    for (const finding of await preflight(env, options, within, onWaiting, resumed)) {
      options.onEvent?.({ kind: "warning", finding });
    }
  });
  let nodesLeft: readonly string[];
  try {
    nodesLeft = await run.carry();
  } catch (error) {
    const how = error instanceof StepTimeoutError ? "timedOut" : signal.aborted ? "interrupted" : "failed";
    keeper.note({ ended: { at: env.clock.now().toISOString(), how } });
    throw error;
  } finally {
    // Notes are written in the background: how the run ended must be stored before its process exits.
    await keeper.settled();
  }
  const elapsedMs = Math.round(env.clock.monotonicMs() - startMs);
  const { steps, driverVolumes } = run;
  return { plugin: subject.inTreeName, direction, resumed, steps, elapsedMs, nodesLeft, driverVolumes };
}

/** The journal's place: the file, and the ConfigMap beside it where that is asked for. */
export function journalStoreOf(
  env: Pick<CrossingEnv, "kube" | "host">,
  {
    subject,
    journalFile,
    clusterJournal,
  }: Pick<CrossingOptions, "subject" | "journalFile" | "clusterJournal">,
): JournalStore {
  const file = fileJournal(env.host, journalFile);
  return clusterJournal === true ? twoJournals(file, configMapJournal(env.kube, subject)) : file;
}

/**
 * Finds the problems of a crossing. @param isBegun a run has followed the plan before
 * @returns the warnings @throws PreflightError when something blocks, PlanError when the cluster is no longer as the plan says
 */
export async function preflight(
  env: Pick<CrossingEnv, "kube" | "clock"> & Partial<Pick<CrossingEnv, "platform">>,
  options: Pick<CrossingOptions, "subject" | "direction" | "force" | "plan" | "onlyNodes">,
  signal: AbortSignal,
  onWaiting?: OnWaiting,
  isBegun = false,
): Promise<readonly Finding[]> {
  // Before all else: a plan of another cluster must not be judged by this one.
  const clusterId = options.plan === undefined ? undefined : await readClusterId(env.kube, signal);
  if (clusterId !== undefined) requireSameCluster(options, clusterId);
  const seen = await observe(env, signal);
  requireKnown(options.onlyNodes ?? [], seen);
  const rollsNodes = env.platform?.rollsNodes === true;
  if (clusterId !== undefined) requireNoDrift({ ...options, rollsNodes }, seen, clusterId, isBegun);
  const findings = [
    ...((await env.platform?.findings?.(signal, onWaiting, options.direction)) ?? []),
    ...preflightFindings(options.subject, options.direction, seen, options),
  ];
  if (findings.some(({ severity }) => severity === "blocker")) throw new PreflightError(findings);
  return findings;
}

type PlannedOptions = Pick<CrossingOptions, "subject" | "direction" | "force" | "plan">;

function requireSameCluster({ plan, subject, direction }: PlannedOptions, clusterId: string): void {
  if (plan !== undefined) requireSameCrossing(plan, { clusterId, plugin: subject.inTreeName, direction });
}

function requireNoDrift(
  options: PlannedOptions & { readonly rollsNodes: boolean },
  seen: CrossingObservation,
  clusterId: string,
  isBegun: boolean,
): void {
  const { plan } = options;
  if (plan === undefined) return;
  const now = crossingPlanOf(options, seen, clusterId);
  const uids = new Map(seen.nodes.map(({ metadata }) => [metadata.name, metadata.uid]));
  const drift = planDrift(plan, now, uids, isBegun);
  if (drift.length === 0) return;
  const lines = drift.length === 1 ? drift[0] : `\n  ${drift.join("\n  ")}`;
  throw new PlanError(
    `the cluster is no longer as the plan of ${plan.madeAt} says, make a new one: ${lines}`,
  );
}

/** @throws PlanError for a node that is not there */
function requireKnown(names: readonly string[], { nodes }: CrossingObservation): void {
  const known = new Set(nodes.map(({ metadata }) => metadata.name));
  const unknown = names.find((name) => !known.has(name));
  if (unknown !== undefined) throw new PlanError(`\`onlyNodes\`: there is no Node ${unknown}`);
}

async function openJournal(
  env: CrossingEnv,
  options: CrossingOptions,
  store: JournalStore,
  signal: AbortSignal,
): Promise<{ readonly journal: CrossingJournal; readonly resumed: boolean }> {
  const { subject, direction, plan, otherJournalFiles = [] } = options;
  const others = [
    ...otherJournalFiles.map((file) => fileJournal(env.host, file)),
    ...(options.clusterJournal === true ? journalsOfOthers(env, subject) : []),
  ];
  for (const other of others) refuseUnfinished(await other.read(signal), other.place);
  const found = await store.read(signal);
  if (found?.plugin !== subject.inTreeName || found.platform !== env.platform.name) {
    refuseUnfinished(found, store.place);
  }
  const followed = plan === undefined ? {} : { plan: plan.madeAt };
  // Also a plan that was followed to its end: what it names has crossed, and nothing is left to do.
  const resumed = found?.direction === direction && found.plan === plan?.madeAt;
  if (found !== undefined && isUnfinished(found) && found.direction === direction) {
    const { run: _earlier, ...journal } = found;
    // A later plan of what is left takes the place of the first.
    return { journal: { ...journal, ...followed }, resumed: resumed || plan === undefined };
  }
  // Also where the other direction was left unfinished: the state of the nodes says how far that came.
  const journal: CrossingJournal = {
    version: 1,
    platform: env.platform.name,
    plugin: subject.inTreeName,
    direction,
    startedAt: env.clock.now().toISOString(),
    nodesDone: [],
    ...followed,
    ...(found?.writes === undefined ? {} : { writes: found.writes }),
  };
  return { journal, resumed: resumed && plan !== undefined };
}

function journalsOfOthers({ kube }: CrossingEnv, { shortName }: CrossingSubject): JournalStore[] {
  return allSubjects()
    .filter((subject) => subject.shortName !== shortName)
    .map((subject) => configMapJournal(kube, subject));
}

/** @throws JournalError when the crossing of the journal is unfinished: its nodes may be between the two paths */
function refuseUnfinished(journal: CrossingJournal | undefined, place: string): void {
  if (journal === undefined || !isUnfinished(journal)) return;
  throw new JournalError(
    `an unfinished crossing of ${journal.plugin} on ${journal.platform} is in ${place}: finish it or roll it back first`,
  );
}
