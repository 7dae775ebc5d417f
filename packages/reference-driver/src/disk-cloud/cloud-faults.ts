/** The knobs that make the disk cloud slow, refusing or forgetful, as providers are. */
import type { RuntimeEnv } from "@longshore/runtime";
import { CloudError, type CloudErrorCode } from "@longshore/volumes";
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
}

/** The knobs of all operations. */
export class CloudFaults {
  readonly #env: Pick<RuntimeEnv, "clock" | "random">;
  readonly #knobs = new Map<CloudOp | "*", CloudKnobs>();

  constructor(env: Pick<RuntimeEnv, "clock" | "random">) {
    this.#env = env;
  }

  /** Sets the knobs of an operation, or (`*`) of all that have none of their own. */
  set(op: CloudOp | "*", knobs: CloudKnobs): void {
    this.#knobs.set(op, knobs);
  }

  /** Runs a call through the knobs. */
  async around<T>(op: CloudOp, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const { delayMs = 0 } = this.#knobs.get(this.#keyOf(op)) ?? {};
    if (delayMs > 0) await this.#env.clock.sleep(delayMs, signal);
    if (this.#strikes(op, "failNext", "failPerMille")) {
      const code = this.#knobs.get(this.#keyOf(op))?.failCode ?? "Throttled";
      throw new CloudError(code, `${op} was refused by a fault set on the disk cloud: try again`);
    }
    const result = await work();
    if (this.#strikes(op, "loseReplyNext", "loseReplyPerMille")) {
      throw new CloudError(
        "Unavailable",
        `the reply to ${op} was lost by a fault set on the disk cloud: try again`,
      );
    }
    return result;
  }

  #keyOf(op: CloudOp): CloudOp | "*" {
    return this.#knobs.has(op) ? op : "*";
  }

  #strikes(
    op: CloudOp,
    next: "failNext" | "loseReplyNext",
    perMille: "failPerMille" | "loseReplyPerMille",
  ): boolean {
    const key = this.#keyOf(op);
    const knobs = this.#knobs.get(key);
    const left = knobs?.[next] ?? 0;
    if (left > 0) {
      this.#knobs.set(key, { ...knobs, [next]: left - 1 });
      return true;
    }
    const chance = knobs?.[perMille] ?? 0;
    return chance > 0 && this.#env.random.below(1000, `${perMille} of ${op}`) < chance;
  }
}
