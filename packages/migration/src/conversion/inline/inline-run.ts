/** Carries the inline volumes of workloads: of each observe, decide, one action, until nothing is left to do. */
import { join } from "node:path";
import { isConflict, isNotFound, isPodTerminal, type KubeClient, resources } from "@longshore/kube";
import { backoffMs, errorChain } from "@longshore/runtime";
import { defaultStepTimeoutMs } from "../../crossing/crossing-options.ts";
import type { JournalStore } from "../../crossing/journal-store.ts";
import { patiently } from "../../crossing/patience.ts";
import { waitFor } from "../../crossing/waits.ts";
import { type OnWaiting, watchStep } from "../../crossing/watch-step.ts";
import type { ConversionEnv, ConversionRunOptions } from "../conversion-options.ts";
import type { ConversionResult } from "../conversion-run.ts";
import { countedClient } from "../counted-client.ts";
import { workloadResource } from "../observe-volume.ts";
import { ConversionBlockedError } from "../volume-run.ts";
import { decideInlineStep } from "./decide-inline-step.ts";
import { inlineActions } from "./inline-actions.ts";
import { inlineDiskKey } from "./inline-disks.ts";
import {
  inlineJournal,
  inlineJournalDir,
  inlineStepsOf,
  isInlineScaledDown,
  templateKey,
} from "./inline-journal.ts";
import {
  type InlineDecision,
  type InlineJournal,
  type InlineObservation,
  type InlineStep,
  type TemplateWorkload,
  templateName,
} from "./inline-types.ts";
import { disksOfPod, type InlineUsers, watchInlineUsers } from "./inline-users.ts";

const pause = { initialMs: 200, maximumMs: 5000 };
/** Caches that lack what the API server shows are given this time, in milliseconds. */
const lateMs = 1000;
/** More steps than this are two parties that undo each other's work. */
const stepsMax = 100;

/**
 * Runs them, or resumes them: several at the same time, at most as many as batches allow. After a failure none is begun.
 * @throws the signal's reason
 */
export async function runInlineConversion(
  env: ConversionEnv,
  journals: readonly InlineJournal[],
  options: ConversionRunOptions,
  signal: AbortSignal,
): Promise<ConversionResult> {
  const { parallel = 1, batch = Number.POSITIVE_INFINITY, pauseAfter = Number.POSITIVE_INFINITY } = options;
  const startMs = env.clock.monotonicMs();
  const converted: { volume: string; requests: number }[] = [];
  const failed: { volume: string; error: unknown }[] = [];
  const limit = Math.min(journals.length, batch * pauseAfter);
  let next = 0;
  if (limit > 0) {
    await env.host.makeDirectory(inlineJournalDir(options.journalDir));
    const users = await watchInlineUsers(env, signal);
    const worker = async () => {
      for (;;) {
        const journal = journals[next];
        if (journal === undefined || next >= limit || failed.length > 0 || signal.aborted) return;
        next++;
        const volume = templateName(journal.planned);
        const run = new InlineRun(env, users, options, journal);
        try {
          await run.carry(signal);
          converted.push({ volume, requests: run.requests });
        } catch (error) {
          // An interruption is no failure of the workload.
          if (signal.aborted) throw signal.reason;
          failed.push({ volume, error });
          options.onEvent?.({ kind: "volumeFailed", volume, error: errorChain(error) });
        }
      }
    };
    try {
      await Promise.all(Array.from({ length: Math.min(parallel, limit) }, worker));
    } finally {
      await users.stop();
    }
    signal.throwIfAborted();
  }
  const left = journals.slice(next).map(({ planned }) => templateName(planned));
  return { converted, failed, left, elapsedMs: Math.round(env.clock.monotonicMs() - startMs) };
}

/** One workload of a run. */
class InlineRun {
  readonly #env: ConversionEnv;
  readonly #kube: KubeClient;
  readonly #store: JournalStore<InlineJournal>;
  readonly #users: InlineUsers;
  readonly #options: ConversionRunOptions;
  #journal: InlineJournal;

  constructor(env: ConversionEnv, users: InlineUsers, options: ConversionRunOptions, journal: InlineJournal) {
    this.#env = env;
    this.#users = users;
    this.#options = options;
    this.#journal = journal;
    this.#kube = countedClient(env.kube, () => {
      this.#journal = { ...this.#journal, requests: this.#journal.requests + 1 };
    });
    this.#store = inlineJournal(
      { kube: this.#kube, host: env.host, dir: options.journalDir },
      journal.planned,
    );
  }

  get requests(): number {
    return this.#journal.requests;
  }

  get #name(): string {
    return templateName(this.#journal.planned);
  }

  /** To the end. @throws ConversionBlockedError, StepTimeoutError, or what the client throws */
  async carry(signal: AbortSignal): Promise<void> {
    const { clock } = this.#env;
    const { onEvent } = this.#options;
    const startMs = clock.monotonicMs();
    onEvent?.({ kind: "volumeStarted", volume: this.#name });
    await this.#begin(signal);
    for (let steps = 0; ; steps++) {
      const { seen, decision } = await this.#look(() => {}, signal);
      if (decision.step === "blocked") throw new ConversionBlockedError(decision.refusal);
      if (decision.step === "done") break;
      if (steps > stepsMax) {
        throw new Error(
          `${this.#name}: after ${stepsMax} steps it still needs "${decision.step}" (${decision.why}): see which controller or administrator changes it meanwhile`,
        );
      }
      const stepMs = clock.monotonicMs();
      await this.#within(decision, signal, (onWaiting, within) =>
        decision.step in inlineActions
          ? this.#act(decision.step, seen, onWaiting, within)
          : this.#await(decision.step, onWaiting, within),
      );
      const ms = Math.round(clock.monotonicMs() - stepMs);
      onEvent?.({ kind: "stepDone", volume: this.#name, step: decision.step, ms });
    }
    const done = inlineStepsOf(this.#journal);
    await this.#write({ done, finishedAt: clock.now().toISOString() }, () => {}, signal);
    const ms = Math.round(clock.monotonicMs() - startMs);
    onEvent?.({ kind: "volumeDone", volume: this.#name, requests: this.requests, ms });
  }

  /** One write. Where the object has changed since, the loop looks again. */
  async #act(
    step: InlineStep,
    seen: InlineObservation,
    onWaiting: OnWaiting,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#env;
    const { planned, direction, begun } = this.#journal;
    // Another step is next: whatever became of the one that was begun before an interruption, it is over.
    const done = begun?.step === step ? this.#journal.done : inlineStepsOf(this.#journal);
    await this.#write({ done, begun: { step, at: clock.now().toISOString() } }, onWaiting, signal);
    let current = seen;
    if (step === "change template" || step === "delete claims") {
      // Live, and after the journal was written: what was seen before that may be seconds old.
      const again = await this.#look(onWaiting, signal);
      if (again.decision.step !== step) return;
      current = again.seen;
      const user = step === "change template" ? await this.#user(signal) : undefined;
      if (user !== undefined) {
        // The caches see it soon, and then it is waited for.
        onWaiting(waitFor(planned.workload.kind, this.#name, user));
        return clock.sleep(lateMs, signal);
      }
    }
    try {
      await inlineActions[step]?.(this.#kube, { planned, direction, seen: current }, signal);
    } catch (error) {
      // What was observed is not so any more: the next look says how it is.
      if (!isConflict(error) && !isNotFound(error)) throw error;
      return clock.sleep(pause.initialMs, signal);
    }
    const at = clock.now().toISOString();
    this.#journal = { ...this.#journal, done: [...this.#journal.done, { direction, step, at }] };
  }

  /** A pod that has one of the disks, as the API server itself says. */
  async #user(signal: AbortSignal): Promise<string | undefined> {
    const { workload, volumes } = this.#journal.planned;
    const { namespace } = workload;
    const keys = new Set(volumes.map(({ before }) => inlineDiskKey(before, namespace)));
    const claims = new Set(volumes.map(({ claim }) => claim.metadata?.name));
    const { items } = await this.#kube.list(resources.pods, { namespace, signal });
    const pod = items.find(
      (each) =>
        !isPodTerminal(each) &&
        (disksOfPod(each).some((key) => keys.has(key)) ||
          each.spec?.volumes?.some(({ persistentVolumeClaim: claim }) => claims.has(claim?.claimName))),
    );
    return pod === undefined ? undefined : `Pod ${namespace}/${pod.metadata.name} uses its disk`;
  }

  /** Waits until another step is due. */
  async #await(step: InlineStep, onWaiting: OnWaiting, signal: AbortSignal): Promise<void> {
    for (let looks = 1; ; looks++) {
      const { decision } = await this.#look(onWaiting, signal);
      if (decision.step !== step) return;
      onWaiting(waitFor(this.#journal.planned.workload.kind, this.#name, decision.why));
      await this.#env.clock.sleep(backoffMs(pause, looks), signal);
    }
  }

  async #look(
    onWaiting: OnWaiting,
    signal: AbortSignal,
  ): Promise<{ readonly seen: InlineObservation; readonly decision: InlineDecision }> {
    const { planned, direction } = this.#journal;
    const seen = await patiently(this.#env.clock, onWaiting, signal, () => this.#observe(signal));
    const intent = {
      planned,
      direction,
      isScaledDown: isInlineScaledDown(this.#journal),
      claimDeletionBegun: this.#hasBegun("delete claims"),
      volumeDeletionBegun: this.#hasBegun("delete volumes"),
    };
    return { seen, decision: decideInlineStep(intent, seen) };
  }

  async #observe(signal: AbortSignal): Promise<InlineObservation> {
    const { workload: ref, volumes } = this.#journal.planned;
    const options = { signal };
    const [workload, ...objects] = await Promise.all([
      this.#kube.get<TemplateWorkload>(workloadResource(ref), ref, options),
      ...volumes.map(async ({ volume, claim }) => {
        const { name: claimName = "", namespace = "" } = claim.metadata ?? {};
        return {
          volume: await this.#kube.get(
            resources.persistentVolumes,
            { name: volume.metadata?.name ?? "" },
            options,
          ),
          claim: await this.#kube.get(
            resources.persistentVolumeClaims,
            { namespace, name: claimName },
            options,
          ),
        };
      }),
    ]);
    const { all, claims } = this.#users.of(this.#journal.planned);
    return {
      workload,
      volumes: objects.map(({ volume }) => volume),
      claims: objects.map(({ claim }) => claim),
      users: [...all, ...replicasLeft(workload)],
      claimUsers: claims,
    };
  }

  /** True when the step was begun since the run goes in this direction. */
  #hasBegun(step: InlineStep): boolean {
    const { begun, done, direction } = this.#journal;
    if (begun?.step === step) return true;
    const turn = done.findLastIndex((each) => each.direction !== direction);
    return done.slice(turn + 1).some((each) => each.step === step);
  }

  async #write(change: Partial<InlineJournal>, onWaiting: OnWaiting, signal: AbortSignal): Promise<void> {
    this.#journal = { ...this.#journal, ...change, writes: (this.#journal.writes ?? 0) + 1 };
    await patiently(this.#env.clock, onWaiting, signal, () => this.#store.write(this.#journal, signal));
  }

  #within(
    { step, why }: { readonly step: InlineStep; readonly why: string },
    signal: AbortSignal,
    work: (onWaiting: OnWaiting, signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const { clock } = this.#env;
    const { onEvent, stepTimeoutMs = defaultStepTimeoutMs } = this.#options;
    const volume = this.#name;
    const options = {
      step: `${volume}: ${step}`,
      nodeName: undefined,
      limitMs: stepTimeoutMs,
      wait: waitFor(this.#journal.planned.workload.kind, volume, why),
      onWaiting: (report: Parameters<Parameters<typeof watchStep>[1]["onWaiting"]>[0]) =>
        onEvent?.({ kind: "waiting", volume, step, ...report }),
    };
    return watchStep(clock, options, signal, (onWaiting, within) =>
      patiently(clock, onWaiting, within, () => work(onWaiting, within)),
    );
  }

  /** Saves the workload as it is, and writes the first journal. */
  async #begin(signal: AbortSignal): Promise<void> {
    const { backupDir } = this.#options;
    const { host } = this.#env;
    const { planned } = this.#journal;
    if (backupDir !== undefined) {
      const dir = join(backupDir, "templates");
      const path = join(dir, `${templateKey(planned)}.json`);
      await host.makeDirectory(dir);
      // That of an earlier run is older, and so is what it shows.
      if ((await host.stat(path)) === undefined) {
        const { workload } = planned;
        const stored = await patiently(
          this.#env.clock,
          () => {},
          signal,
          () => this.#kube.get(workloadResource(workload), workload, { signal }),
        );
        const text = `${JSON.stringify(stored ?? null, undefined, 2)}\n`;
        await host.writeFileAtomic(path, text, { mode: 0o600 });
      }
    }
    await this.#write({}, () => {}, signal);
  }
}

/** The workload's controller may make or keep pods until it has seen that there are to be none. */
function replicasLeft(workload: TemplateWorkload | undefined): readonly string[] {
  if (workload === undefined) return [];
  const { spec, status, metadata } = workload;
  const text = `${metadata?.name}`;
  const wanted = spec?.replicas ?? 1;
  if (wanted > 0) return [`${text} with spec.replicas ${wanted}`];
  if ((status?.replicas ?? 0) > 0) return [`${text} with status.replicas ${status?.replicas}`];
  const isSeen = (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0);
  return isSeen ? [] : [`${text}, whose controller has not seen its replicas`];
}
