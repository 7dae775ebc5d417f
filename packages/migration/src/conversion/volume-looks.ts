/**
 * The looks at one volume that a run takes, and what each of them says is to be done.
 *
 * A look at the caches of the run costs no request, and never shows less than what the run itself has written. A write on an outdated look is
 * refused by its preconditions: UID and version, or that there is no object of the name. The API server itself is asked where that is not
 * enough: right before a step that cannot be taken back and after a refused write (`volume-run.ts`), before a volume is given up, before
 * one is called done that the run has not looked at in this way, and where the caches have shown nothing new for long.
 */
import { type KubeClient, StaleCacheError } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import { patiently } from "../crossing/patience.ts";
import type { OnWaiting } from "../crossing/watch-step.ts";
import { isScaledDown } from "./conversion-journal.ts";
import type { VolumeDecision, VolumeJournal, VolumeObservation, VolumeStep } from "./conversion-types.ts";
import { decideVolumeStep } from "./decide-volume-step.ts";
import type { DiskUsers, VolumeObjects } from "./disk-users.ts";
import { liveObjects, observeVolume } from "./observe-volume.ts";

/** Where a look reads the objects of the volume: of the caches, or of the API server. */
export type Source = "caches" | "live";

/** What was seen, and what is to be done for that. */
export interface Look {
  readonly seen: VolumeObservation;
  readonly decision: VolumeDecision;
}

/** What did not change in the caches is looked at live after this time, in milliseconds. */
const relookMs = 15_000;

/** Takes the looks. */
export class VolumeLooks {
  readonly #clock: Clock;
  readonly #kube: KubeClient;
  readonly #users: DiskUsers;
  /** The run has looked live: what the caches show since is not of before the run. */
  #hasLookedLive = false;

  constructor(clock: Clock, kube: KubeClient, users: DiskUsers) {
    this.#clock = clock;
    this.#kube = kube;
    this.#users = users;
  }

  /** Looks once. An answer that the API server cannot give now is waited for. */
  async look(
    journal: VolumeJournal,
    source: Source,
    onWaiting: OnWaiting,
    signal: AbortSignal,
  ): Promise<Look> {
    const { planned } = journal;
    const intent = {
      planned,
      claimDeletionBegun: hasBegun(journal, "delete claim"),
      volumeDeletionBegun: hasBegun(journal, "delete old volume"),
    };
    const seen = await patiently(this.#clock, onWaiting, signal, async () => {
      const objects = await this.#objects(journal, source, signal);
      return observeVolume(this.#kube, this.#users, planned, objects, isScaledDown(journal), signal);
    });
    return { seen, decision: decideVolumeStep(intent, seen) };
  }

  /** Looks, and a second time, live, where the caches alone are no ground to give a volume up or to call it done: they may be behind. */
  async sure(
    journal: VolumeJournal,
    source: Source,
    onWaiting: OnWaiting,
    signal: AbortSignal,
  ): Promise<Look> {
    const look = await this.look(journal, source, onWaiting, signal);
    const { step } = look.decision;
    const isUnsure = step === "blocked" || (step === "done" && !this.#hasLookedLive);
    return source === "caches" && isUnsure ? this.look(journal, "live", onWaiting, signal) : look;
  }

  /** The next event of the volume, and where it is seen: in the caches, or live where none has come for long. `end` it. */
  nextEvent({ planned }: VolumeJournal): { readonly source: Promise<Source>; end(): void } {
    let end = () => {};
    const source = new Promise<Source>((resolve) => {
      const timer = this.#clock.timer(relookMs, () => resolve("live"));
      const stop = this.#users.onChange(planned, () => resolve("caches"));
      end = () => {
        timer.cancel();
        stop();
      };
    });
    return { source, end };
  }

  async #objects({ planned }: VolumeJournal, source: Source, signal: AbortSignal): Promise<VolumeObjects> {
    if (source === "caches") {
      try {
        await this.#users.seen(planned, signal);
        return this.#users.objects(planned);
      } catch (error) {
        // Their watch delivers nothing: the API server knows.
        if (!(error instanceof StaleCacheError)) throw error;
      }
    }
    const objects = await liveObjects(this.#kube, planned, signal);
    this.#hasLookedLive = true;
    return objects;
  }
}

/** True when the step was begun since the run goes in this direction. */
function hasBegun({ begun, done, direction }: VolumeJournal, step: VolumeStep): boolean {
  if (begun?.step === step) return true;
  const turn = done.findLastIndex((each) => each.direction !== direction);
  return done.slice(turn + 1).some((each) => each.step === step);
}
