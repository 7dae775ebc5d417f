/**
 * How a provider misbehaves, by a seed: lists that are throttled, most of all when a controller manager asks for
 * the first time; attaches and detaches that take long, and go on although the caller has died; those that fail for
 * the caller while the cloud is still at work on them.
 *
 * Invariant, as with every provider: changes of one disk's attachment take effect one after another, in the order
 * in which the cloud received them.
 */
import type { ProviderCloud } from "@longshore/reference-driver";
import { abortable, type Clock, KeyedLock } from "@longshore/runtime";
import { CloudError } from "@longshore/volumes";
import type { AttachmentCall } from "./contract-watch.ts";
import type { FaultDraws } from "./fault-draws.ts";

/** How often what happens, in thousandths of calls. */
export interface CloudFaultRates {
  readonly throttledList: number;
  /** An attach or a detach that takes longer. */
  readonly slowChange: number;
  /** One that fails for the caller, and that takes effect later. */
  readonly lateChange: number;
  /** Longest time of both, in milliseconds. */
  readonly changeMsMax: number;
  /** The component that asks for an attach or a detach dies: before the call leaves, or during it. */
  readonly deathAtChange: number;
}

/** The provider's rates unless others are given. */
export const defaultCloudFaultRates: CloudFaultRates = {
  throttledList: 400,
  slowChange: 150,
  lateChange: 60,
  changeMsMax: 5_000,
  deathAtChange: 60,
};

/** What the faulty cloud needs, and its observers. */
export interface FaultyCloudEnv {
  readonly clock: Clock;
  readonly draws: FaultDraws;
  /** Undefined: at the moment everything is as it should be. */
  rates(): CloudFaultRates | undefined;
  onFault(what: string): void;
  /** The call takes effect now. */
  onEffect(call: AttachmentCall): void;
  /** It has taken effect, whether or not the caller still runs when the answer comes. */
  onAttached(call: AttachmentCall): void;
  /** The same for a detach. */
  onDetached?(call: AttachmentCall): void;
}

/** The cloud's side of all callers: one queue for each disk. */
export class FaultyCloud {
  readonly #env: FaultyCloudEnv;
  readonly #queue = new KeyedLock();

  constructor(env: FaultyCloudEnv) {
    this.#env = env;
  }

  /** The cloud as one caller sees it; `callOf` says what a call is about. */
  around(
    cloud: ProviderCloud,
    callOf: (op: "attach" | "detach", diskId: string, instanceId: string) => AttachmentCall,
  ): ProviderCloud {
    return {
      ...cloud,
      listDisks: async (signal) => {
        if (this.#isThrottled()) {
          this.#env.onFault("throttles a list of all disks");
          throw new CloudError("Throttled", "listDisks: too many requests, slow down");
        }
        return cloud.listDisks(signal);
      },
      attachDisk: (diskId, instanceId, signal, how) =>
        this.#change(callOf("attach", diskId, instanceId), signal, () =>
          cloud.attachDisk(diskId, instanceId, never(), how),
        ),
      detachDisk: (diskId, instanceId, signal) =>
        this.#change(callOf("detach", diskId, instanceId), signal, () =>
          cloud.detachDisk(diskId, instanceId, never()),
        ),
    };
  }

  async #change<T>(call: AttachmentCall, signal: AbortSignal, effect: () => Promise<T>): Promise<T> {
    const { clock, onFault, onEffect, onAttached, onDetached } = this.#env;
    const { takesMs, isLate } = this.#drawChange(call);
    const what = `${call.op} of ${call.diskId} ${call.op === "attach" ? "to" : "from"} ${call.nodeName} for the ${call.path} code`;
    if (isLate) onFault(`answers the ${what} with an error, and does it ${takesMs} ms later`);
    else if (takesMs > 0) onFault(`takes ${takesMs} ms for the ${what}`);
    const work = this.#queue.run(call.diskId, async () => {
      if (takesMs > 0) await clock.sleep(takesMs, never());
      onEffect(call);
      const answer = await effect();
      if (call.op === "attach") onAttached(call);
      else onDetached?.(call);
      return answer;
    });
    // Its caller may have got another error or have died: unhandled, its failure would end the process.
    work.catch(() => {});
    if (isLate) throw new CloudError("Unavailable", `${call.op} ${call.diskId}: timed out`);
    return abortable(work, signal);
  }

  #isThrottled(): boolean {
    const { draws, rates } = this.#env;
    const now = rates();
    if (now === undefined) return false;
    const draw = draws.next("cloud listDisks");
    return draw.below(1000) < now.throttledList && draws.happens(draw);
  }

  #drawChange({ op, diskId }: AttachmentCall): { readonly takesMs: number; readonly isLate: boolean } {
    const { draws, rates } = this.#env;
    const now = rates();
    if (now === undefined) return { takesMs: 0, isLate: false };
    const draw = draws.next(`cloud ${op} ${diskId}`);
    const number = draw.below(1000);
    const takesMs = 1 + draw.below(now.changeMsMax);
    const isLate = number < now.lateChange;
    const strikes = number < now.lateChange + now.slowChange && draws.happens(draw);
    return strikes ? { takesMs, isLate } : { takesMs: 0, isLate: false };
  }
}

/** The cloud goes on with what it has begun. */
function never(): AbortSignal {
  return new AbortController().signal;
}
