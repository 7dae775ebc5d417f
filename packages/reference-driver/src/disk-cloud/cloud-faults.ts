/** The knobs that make the disk cloud slow, refusing, forgetful or behind, as providers are. */
import type { RuntimeEnv } from "@longshore/runtime";
import { CloudError, type CloudErrorCode, type CloudProvider } from "@longshore/volumes";
import type { CloudOp } from "./call-log.ts";

/** How an operation misbehaves. Everything left out is as it should be. */
export interface CloudKnobs {
  /** Time that each call takes more, in milliseconds. */
  readonly delayMs?: number;
  /** So many next calls fail before they do anything. */
  readonly failNext?: number;
  /** So many of 1000 calls fail before they do anything. */
  readonly failPerMille?: number;
  /** What they fail with; default `Throttled`. */
  readonly failCode?: CloudErrorCode;
  /** So many next calls take effect but answer `Unavailable`. */
  readonly loseReplyNext?: number;
  /** So many of 1000 calls take effect but answer `Unavailable`. */
  readonly loseReplyPerMille?: number;
  /**
   * Of `attachDisk`: a disk stays attaching for so long, in milliseconds, and calls that attach it answer `Unavailable`
   * meanwhile. Knobs without it release the disk.
   */
  readonly stuckMs?: number;
  /** Of `describeDisk` and `listDisks`: answers show what was so many milliseconds ago. */
  readonly staleMs?: number;
  /** Calls about disks or instances of these zones answer `Unavailable`. */
  readonly downZones?: readonly string[];
}

/** What a call is about. */
export interface FaultyCall {
  readonly op: CloudOp;
  readonly provider: CloudProvider;
}

/** Zones that a call needs: one of the disk's, and that of the instance. */
export interface NeededZones {
  readonly disk?: readonly string[];
  readonly instance?: string;
}

/** The knobs of all operations. */
export class CloudFaults {
  readonly #env: Pick<RuntimeEnv, "clock" | "random">;
  readonly #knobs = new Map<string, CloudKnobs>();
  /** Since when disks are stuck, by what {@link CloudFaults.holdAttach} is called with. */
  readonly #stuckSinceMs = new Map<string, number>();

  constructor(env: Pick<RuntimeEnv, "clock" | "random">) {
    this.#env = env;
  }

  /**
   * Sets the knobs of an operation, or (`*`) of all that have none of their own.
   * @param provider for calls about its disks alone; these knobs are in place of those for all providers
   */
  set(op: CloudOp | "*", knobs: CloudKnobs, provider?: CloudProvider): void {
    this.#knobs.set(provider === undefined ? op : `${provider} ${op}`, knobs);
  }

  /** Runs a call through the knobs. */
  async around<T>(
    call: FaultyCall,
    zones: NeededZones,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T> {
    const { op } = call;
    const { delayMs = 0 } = this.of(call);
    if (delayMs > 0) await this.#env.clock.sleep(delayMs, signal);
    this.#checkZones(call, zones);
    if (this.#strikes(call, "failNext", "failPerMille")) {
      const code = this.of(call).failCode ?? "Throttled";
      throw new CloudError(code, `${op} was refused by a fault set on the disk cloud: try again`);
    }
    const result = await work();
    if (this.#strikes(call, "loseReplyNext", "loseReplyPerMille")) {
      throw new CloudError(
        "Unavailable",
        `the reply to ${op} was lost by a fault set on the disk cloud: try again`,
      );
    }
    return result;
  }

  /** The knobs that hold for the call. */
  of(call: FaultyCall): CloudKnobs {
    return this.#knobs.get(this.#keyOf(call)) ?? {};
  }

  /** @param isNew the attach begins with this call @throws CloudError Unavailable while the disk is stuck */
  holdAttach(provider: CloudProvider, disk: string, isNew: boolean): void {
    const { stuckMs = 0 } = this.of({ op: "attachDisk", provider });
    const now = this.#env.clock.monotonicMs();
    const since = isNew ? now : (this.#stuckSinceMs.get(disk) ?? now);
    if (now - since >= stuckMs) {
      this.#stuckSinceMs.delete(disk);
      return;
    }
    this.#stuckSinceMs.set(disk, since);
    throw new CloudError(
      "Unavailable",
      "the disk stays attaching by a fault set on the disk cloud: try again, or detach it",
    );
  }

  #checkZones(call: FaultyCall, { disk = [], instance }: NeededZones): void {
    const { downZones = [] } = this.of(call);
    const isLost = disk.length > 0 && disk.every((zone) => downZones.includes(zone));
    const isOut = instance !== undefined && downZones.includes(instance);
    if (!isLost && !isOut) return;
    throw new CloudError(
      "Unavailable",
      `zone ${isOut ? instance : disk.join(" and ")} is out of order by a fault set on the disk cloud: try again later`,
    );
  }

  #keyOf({ op, provider }: FaultyCall): string {
    return [`${provider} ${op}`, op, `${provider} *`].find((key) => this.#knobs.has(key)) ?? "*";
  }

  #strikes(
    call: FaultyCall,
    next: "failNext" | "loseReplyNext",
    perMille: "failPerMille" | "loseReplyPerMille",
  ): boolean {
    const key = this.#keyOf(call);
    const knobs = this.#knobs.get(key);
    const left = knobs?.[next] ?? 0;
    if (left > 0) {
      this.#knobs.set(key, { ...knobs, [next]: left - 1 });
      return true;
    }
    const chance = knobs?.[perMille] ?? 0;
    return chance > 0 && this.#env.random.below(1000, `${perMille} of ${call.op}`) < chance;
  }
}
