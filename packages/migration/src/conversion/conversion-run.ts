/**
 * Carries the volumes of a plan, or back: batches, and in them several volumes at the same time. The volumes of one workload go
 * together, and its replicas come back once all of them have a place.
 */
import type { KubeClient } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { originalVolume, stepsBefore, volumeJournal } from "./conversion-journal.ts";
import type { ConversionEnv, ConversionRunOptions } from "./conversion-options.ts";
import type { ConversionDirection, PlannedVolume, VolumeJournal } from "./conversion-types.ts";
import { type DiskUsers, watchDiskUsers } from "./disk-users.ts";
import { VolumeRun } from "./volume-run.ts";

/** How it went. */
export interface ConversionResult {
  readonly converted: readonly { readonly volume: string; readonly requests: number }[];
  readonly failed: readonly { readonly volume: string; readonly error: unknown }[];
  /** Names of the volumes that were not begun. */
  readonly left: readonly string[];
  readonly elapsedMs: number;
}

/** Several runs, one after the other, as one. */
export function joinedResults(results: readonly ConversionResult[]): ConversionResult {
  return {
    converted: results.flatMap(({ converted }) => converted),
    failed: results.flatMap(({ failed }) => failed),
    left: results.flatMap(({ left }) => left),
    elapsedMs: results.reduce((sum, { elapsedMs }) => sum + elapsedMs, 0),
  };
}

/** A journal at the beginning, for a volume that no run has carried. */
export function newJournal(
  planned: PlannedVolume,
  clusterId: string,
  direction: ConversionDirection,
  earlier?: VolumeJournal,
): VolumeJournal {
  return {
    version: 1,
    clusterId,
    direction,
    planned,
    done: earlier === undefined ? [] : stepsBefore(earlier),
    made: {},
    requests: 0,
    ...(earlier?.writes === undefined ? {} : { writes: earlier.writes }),
  };
}

/** Runs them, or resumes them. A volume that fails keeps the next batch from beginning. @throws the signal's reason */
export async function runConversion(
  env: ConversionEnv,
  journals: readonly VolumeJournal[],
  options: ConversionRunOptions,
  signal: AbortSignal,
): Promise<ConversionResult> {
  const startMs = env.clock.monotonicMs();
  const users = await watchDiskUsers(env, signal);
  try {
    await env.host.makeDirectory(options.journalDir);
    const run = new Batches({ ...env, kube: users.kube }, users, options, signal);
    await run.carry(unitsOf(journals));
    signal.throwIfAborted();
    const elapsedMs = Math.round(env.clock.monotonicMs() - startMs);
    return { converted: run.converted, failed: run.failed, left: run.left, elapsedMs };
  } finally {
    await users.stop();
  }
}

/** Volumes that share a workload are one unit, also through others. */
export function unitsOf(journals: readonly VolumeJournal[]): readonly (readonly VolumeJournal[])[] {
  const unitOf = new Map<string, VolumeJournal[]>();
  const units = new Set<VolumeJournal[]>();
  for (const journal of journals) {
    const uids = journal.planned.workloads.map(({ uid }) => uid);
    const others = [...new Set(uids.flatMap((uid) => unitOf.get(uid) ?? []))];
    const joined = new Set(uids.flatMap((uid) => [unitOf.get(uid)]).filter((unit) => unit !== undefined));
    for (const unit of joined) units.delete(unit);
    const unit = [...others, journal];
    for (const each of unit) for (const { uid } of each.planned.workloads) unitOf.set(uid, unit);
    units.add(unit);
  }
  return [...units];
}

class Batches {
  readonly converted: { volume: string; requests: number }[] = [];
  readonly failed: { volume: string; error: unknown }[] = [];
  readonly left: string[] = [];
  readonly #env: ConversionEnv;
  readonly #users: DiskUsers;
  readonly #options: ConversionRunOptions;
  readonly #signal: AbortSignal;

  constructor(env: ConversionEnv, users: DiskUsers, options: ConversionRunOptions, signal: AbortSignal) {
    this.#env = env;
    this.#users = users;
    this.#options = options;
    this.#signal = signal;
  }

  async carry(units: readonly (readonly VolumeJournal[])[]): Promise<void> {
    const { batch = Number.POSITIVE_INFINITY, pauseAfter = Number.POSITIVE_INFINITY } = this.#options;
    const waiting = [...units];
    for (let batches = 0; waiting.length > 0; batches++) {
      if (batches >= pauseAfter || this.failed.length > 0) break;
      const chosen: (readonly VolumeJournal[])[] = [];
      let size = 0;
      while (waiting.length > 0 && (size === 0 || size + (waiting[0]?.length ?? 0) <= batch)) {
        const unit = waiting.shift() ?? [];
        chosen.push(unit);
        size += unit.length;
      }
      await this.#batch(chosen);
    }
    for (const unit of waiting) this.left.push(...unit.map(({ planned }) => planned.volume));
  }

  /** Several units at the same time; after a failure none is begun. */
  async #batch(units: readonly (readonly VolumeJournal[])[]): Promise<void> {
    const { parallel = 1 } = this.#options;
    let next = 0;
    const worker = async () => {
      for (;;) {
        const unit = units[next];
        if (unit === undefined || this.failed.length > 0 || this.#signal.aborted) return;
        next++;
        await this.#unit(unit);
      }
    };
    await Promise.all(Array.from({ length: Math.min(parallel, units.length) }, worker));
    for (const unit of units.slice(next)) this.left.push(...unit.map(({ planned }) => planned.volume));
  }

  async #unit(unit: readonly VolumeJournal[]): Promise<void> {
    const runs = unit.map((journal) => {
      const { host } = this.#env;
      const { journalDir: dir } = this.#options;
      const storeOf = (kube: KubeClient) => volumeJournal({ kube, host, dir }, originalVolume(journal));
      return new VolumeRun(this.#env, storeOf, this.#users, this.#options, journal);
    });
    // All of them before the workload is scaled: a run that goes on later knows each by its journal, since without pods it would
    // not see whose the others are.
    for (const run of runs) {
      if (await this.#guarded(run, () => run.begin(this.#signal))) continue;
      this.left.push(...runs.filter((other) => other !== run).map(({ name }) => name));
      return;
    }
    const ready: VolumeRun[] = [];
    for (const run of runs) {
      if (!(await this.#guarded(run, () => run.carry("scale up", this.#signal)))) break;
      ready.push(run);
    }
    // With a volume that has no place yet the workload stays down.
    if (ready.length < runs.length) {
      for (const run of runs.slice(ready.length + 1)) this.left.push(run.name);
      return;
    }
    for (const run of ready) {
      const isDone = await this.#guarded(run, () => run.carry(undefined, this.#signal));
      if (isDone) this.converted.push({ volume: run.name, requests: run.journal.requests });
    }
  }

  async #guarded(run: VolumeRun, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      // An interruption is no failure of the volume.
      if (this.#signal.aborted) throw this.#signal.reason;
      this.failed.push({ volume: run.name, error });
      this.#options.onEvent?.({ kind: "volumeFailed", volume: run.name, error: errorChain(error) });
      return false;
    }
  }
}
