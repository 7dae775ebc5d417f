/**
 * Carries one volume: observe, decide, one action, until nothing is left to do.
 */
import { join } from "node:path";
import { isAlreadyExists, isConflict, isNotFound, KubeApiError, type KubeClient } from "@longshore/kube";
import { abortable, backoffMs } from "@longshore/runtime";
import { defaultStepTimeoutMs } from "../crossing/crossing-options.ts";
import type { JournalStore } from "../crossing/journal-store.ts";
import { patiently } from "../crossing/patience.ts";
import { waitFor } from "../crossing/waits.ts";
import { type OnWaiting, watchStep } from "../crossing/watch-step.ts";
import { stepsOf } from "./conversion-journal.ts";
import type { ConversionEnv, ConversionRunOptions } from "./conversion-options.ts";
import type { Refusal, VolumeJournal, VolumeObservation, VolumeStep } from "./conversion-types.ts";
import { countedClient } from "./counted-client.ts";
import type { DiskUsers } from "./disk-users.ts";
import { lastObstacle } from "./last-look.ts";
import { type Made, volumeActions } from "./volume-actions.ts";
import { withGrowth } from "./volume-growth.ts";
import { type Look, type Source, VolumeLooks } from "./volume-looks.ts";

/** A volume is in a state that its conversion did not make. The disk is kept by policy Retain. */
export class ConversionBlockedError extends Error {
  override readonly name = "ConversionBlockedError";
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusalWords(refusal));
    this.refusal = refusal;
  }
}

/** The refusal in one line. */
export function refusalWords({ object, field, reason, remedy }: Refusal): string {
  return `${object}${field === undefined ? "" : ` (${field})`}: ${reason}; ${remedy}`;
}

const retry = { initialMs: 100, maximumMs: 5000 };
/** Caches that lack what the API server shows are given this time, in milliseconds. */
const lateMs = 1000;
/** Steps after which a disk could be lost if the cluster were not as it was seen. */
const dangerousSteps: ReadonlySet<VolumeStep> = new Set([
  "delete claim",
  "delete old volume",
  "restore policy",
]);
/**
 * Steps of which the next decision asks whether they were begun: the journal is written before them. What the cluster shows of the
 * others is enough, and the journal takes them down with its next write.
 */
const recordedSteps: ReadonlySet<VolumeStep> = new Set([
  "delete claim",
  "delete old volume",
  "scale down",
  "scale up to grow",
  "scale up",
  // It changes the plan, by which a later run goes on.
  "follow growth",
]);
/** More steps than this are two parties that undo each other's work. */
const stepsMax = 100;

/** One volume of a run. */
export class VolumeRun {
  readonly #env: ConversionEnv;
  readonly #kube: KubeClient;
  readonly #store: JournalStore<VolumeJournal>;
  readonly #looks: VolumeLooks;
  readonly #options: ConversionRunOptions;
  readonly #startMs: number;
  #journal: VolumeJournal;
  #steps = 0;

  constructor(
    env: ConversionEnv,
    storeOf: (kube: KubeClient) => JournalStore<VolumeJournal>,
    users: DiskUsers,
    options: ConversionRunOptions,
    journal: VolumeJournal,
  ) {
    this.#env = env;
    this.#options = options;
    this.#journal = journal;
    this.#startMs = env.clock.monotonicMs();
    this.#kube = countedClient(env.kube, () => {
      this.#journal = { ...this.#journal, requests: this.#journal.requests + 1 };
    });
    this.#looks = new VolumeLooks(env.clock, this.#kube, users);
    this.#store = storeOf(this.#kube);
  }

  get journal(): VolumeJournal {
    return this.#journal;
  }

  get name(): string {
    return this.#journal.planned.volume;
  }

  /** Saves the objects that are to be removed. */
  async begin(signal: AbortSignal): Promise<void> {
    this.#options.onEvent?.({ kind: "volumeStarted", volume: this.name });
    await this.#save(signal);
  }

  /**
   * Goes on until the step, or to the end. @throws ConversionBlockedError, StepTimeoutError, or what the client throws
   */
  async carry(until: VolumeStep | undefined, signal: AbortSignal): Promise<void> {
    // It came to its end before the others of its unit.
    if (this.#journal.finishedAt !== undefined) return;
    let source: Source = "caches";
    let looked: Look | undefined;
    for (;;) {
      const { seen, decision } = looked ?? (await this.#looks.sure(this.#journal, source, () => {}, signal));
      looked = undefined;
      source = "caches";
      if (decision.step === "blocked") throw new ConversionBlockedError(decision.refusal);
      if (decision.step === "done") return this.#finish(signal);
      if (decision.step === until) return;
      if (++this.#steps > stepsMax) {
        throw new Error(
          `PersistentVolume ${this.name}: after ${stepsMax} steps it still needs "${decision.step}" (${decision.why}): see which controller or administrator changes it meanwhile`,
        );
      }
      const startMs = this.#env.clock.monotonicMs();
      await this.#within(decision, signal, async (onWaiting, within) => {
        if (decision.step in volumeActions) source = await this.#act(decision.step, seen, onWaiting, within);
        else looked = await this.#await(decision.step, onWaiting, within);
      });
      const ms = Math.round(this.#env.clock.monotonicMs() - startMs);
      this.#options.onEvent?.({ kind: "stepDone", volume: this.name, step: decision.step, ms });
    }
  }

  async #finish(signal: AbortSignal): Promise<void> {
    const { clock } = this.#env;
    const done = stepsOf(this.#journal);
    await this.#write({ done, finishedAt: clock.now().toISOString() }, () => {}, signal);
    const ms = Math.round(clock.monotonicMs() - this.#startMs);
    this.#options.onEvent?.({ kind: "volumeDone", volume: this.name, requests: this.#journal.requests, ms });
  }

  /** One write. Where the object has changed since, the loop looks again, live. @returns where the next look reads */
  async #act(
    step: VolumeStep,
    seen: VolumeObservation,
    onWaiting: OnWaiting,
    signal: AbortSignal,
  ): Promise<Source> {
    const { clock } = this.#env;
    const { planned, direction } = this.#journal;
    const { begun } = this.#journal;
    // Another step is next: whatever became of the one that was begun before an interruption, it is over.
    const done = begun?.step === step ? this.#journal.done : stepsOf(this.#journal);
    const change = {
      done,
      begun: { step, at: clock.now().toISOString() },
      ...(step === "follow growth" ? { planned: withGrowth(planned, seen) } : {}),
    };
    // The first step after a turn says that the run has turned.
    const hasTurned = done.length > 0 && done.at(-1)?.direction !== direction;
    if (hasTurned || recordedSteps.has(step)) await this.#write(change, onWaiting, signal);
    else this.#journal = { ...this.#journal, ...change };
    let current = seen;
    if (dangerousSteps.has(step)) {
      // Live, and after the journal was written: what was seen before that may be seconds old.
      const again = await this.#looks.look(this.#journal, "live", onWaiting, signal);
      if (again.decision.step !== step) return "live";
      current = again.seen;
      const obstacle = await lastObstacle(this.#kube, step, planned, current, signal);
      if (obstacle !== undefined) {
        if (obstacle.code !== "volume-in-use") throw new ConversionBlockedError(obstacle);
        // The caches see it soon, and then it is waited for.
        onWaiting(waitFor("PersistentVolume", this.name, obstacle.reason));
        await clock.sleep(lateMs, signal);
        return "caches";
      }
    }
    for (let failures = 1; ; failures++) {
      try {
        const made = await volumeActions[step]?.(this.#kube, planned, current, signal);
        this.#note(direction, step, made);
        return "caches";
      } catch (error) {
        // What was observed is not so any more: the next look says how it is.
        if (isConflict(error) || isAlreadyExists(error) || isNotFound(error)) {
          await clock.sleep(backoffMs(retry, 1), signal);
          return "live";
        }
        if (step !== "create claim" || !isForbidden(error)) throw error;
        // A quota that was used by another meanwhile, or a webhook: the disk is safe, and the volume waits for its claim.
        onWaiting(waitFor("PersistentVolumeClaim", claimName(this.#journal), error.message));
        await clock.sleep(backoffMs(retry, failures), signal);
      }
    }
  }

  /** Waits until another step is due: looks at the caches at each event of the volume, and live where none comes. */
  async #await(step: VolumeStep, onWaiting: OnWaiting, signal: AbortSignal): Promise<Look> {
    for (let source: Source = "caches"; ; ) {
      // Listens before it looks: no event comes between.
      const event = this.#looks.nextEvent(this.#journal);
      try {
        const look = await this.#looks.sure(this.#journal, source, onWaiting, signal);
        if (look.decision.step !== step) return look;
        onWaiting(waitFor("PersistentVolume", this.name, look.decision.why));
        source = await abortable(event.source, signal);
      } finally {
        event.end();
      }
    }
  }

  #note(direction: VolumeJournal["direction"], step: VolumeStep, made: Made | undefined): void {
    const at = this.#env.clock.now().toISOString();
    this.#journal = {
      ...this.#journal,
      done: [...this.#journal.done, { direction, step, at }],
      made: { ...this.#journal.made, ...made },
    };
  }

  async #write(change: Partial<VolumeJournal>, onWaiting: OnWaiting, signal: AbortSignal): Promise<void> {
    this.#journal = { ...this.#journal, ...change, writes: (this.#journal.writes ?? 0) + 1 };
    await patiently(this.#env.clock, onWaiting, signal, () => this.#store.write(this.#journal, signal));
  }

  #within(
    { step, why }: { readonly step: VolumeStep; readonly why: string },
    signal: AbortSignal,
    work: (onWaiting: OnWaiting, signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const { clock } = this.#env;
    const options = {
      step: `${this.name}: ${step}`,
      nodeName: undefined,
      limitMs: this.#options.stepTimeoutMs ?? defaultStepTimeoutMs,
      wait: waitFor("PersistentVolume", this.name, why),
      onWaiting: (report: Parameters<Parameters<typeof watchStep>[1]["onWaiting"]>[0]) =>
        this.#options.onEvent?.({ kind: "waiting", volume: this.name, step, ...report }),
    };
    return watchStep(clock, options, signal, (onWaiting, within) =>
      patiently(clock, onWaiting, within, () => work(onWaiting, within)),
    );
  }

  async #save(signal: AbortSignal): Promise<void> {
    const { backupDir } = this.#options;
    const { host } = this.#env;
    const { planned } = this.#journal;
    if (backupDir !== undefined) {
      const dir = join(backupDir, this.name);
      await host.makeDirectory(dir);
      for (const [file, object] of [
        ["persistentvolume.json", planned.fromBefore],
        ["persistentvolumeclaim.json", planned.claimBefore],
      ] as const) {
        const path = join(dir, file);
        // That of an earlier run is older, and so is what it shows.
        if ((await host.stat(path)) !== undefined) continue;
        await host.writeFileAtomic(path, `${JSON.stringify(object, undefined, 2)}\n`, { mode: 0o600 });
      }
    }
    await this.#write({}, () => {}, signal);
  }
}

const claimName = ({ planned }: VolumeJournal) => `${planned.claim.namespace}/${planned.claim.name}`;

function isForbidden(error: unknown): error is KubeApiError {
  return error instanceof KubeApiError && error.code === 403;
}
