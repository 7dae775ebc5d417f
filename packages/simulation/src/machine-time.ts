/** One machine: its clock is wrong, jumps, or stands still while the machine is paused as a VM is; and what it had begun ends with its power. */
import type { ProviderCloud } from "@longshore/reference-driver";
import { type Clock, deadlineOn, sleepOn } from "@longshore/runtime";
import { CloudError } from "@longshore/volumes";

/** The time of one machine, for all that runs on it. */
export class MachineTime {
  /** How often it was started. */
  boots = 1;
  /** By how much its wall clock is ahead, in milliseconds. */
  skewMs = 0;
  /** What has come meanwhile, in order; undefined: the machine runs. */
  #waiting: (() => void)[] | undefined;

  get isPaused(): boolean {
    return this.#waiting !== undefined;
  }

  /** From now on nothing happens on the machine. */
  pause(): void {
    this.#waiting ??= [];
  }

  /** It goes on, first of all with what has come meanwhile. */
  resume(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    // Paused again by one of them, the others wait again.
    for (const go of waiting) this.whenRunning(go);
  }

  /** Does it at once, or when the machine goes on. */
  whenRunning(go: () => void): void {
    if (this.#waiting === undefined) go();
    else this.#waiting.push(go);
  }

  /** The provider, for what the machine attaches by itself: what has not taken effect when it loses its power never does. */
  whilePowered(cloud: ProviderCloud): ProviderCloud {
    const { boots } = this;
    return {
      ...cloud,
      attachDisk: async (...call) => {
        if (this.boots !== boots) throw new CloudError("Unavailable", "the machine lost its power");
        return cloud.attachDisk(...call);
      },
    };
  }

  /** The clock as the machine has it. */
  clock(clock: Clock): Clock {
    const timer: Clock["timer"] = (ms, fire) => {
      let isCancelled = false;
      const set = clock.timer(ms, () =>
        this.whenRunning(() => {
          if (!isCancelled) fire();
        }),
      );
      return {
        cancel: () => {
          isCancelled = true;
          set.cancel();
        },
      };
    };
    return {
      now: () => new Date(clock.now().getTime() + this.skewMs),
      monotonicMs: () => clock.monotonicMs(),
      timer,
      sleep: (ms, signal) => sleepOn({ timer }, ms, signal),
      deadline: (ms, parent) => deadlineOn({ timer }, ms, parent),
    };
  }
}
