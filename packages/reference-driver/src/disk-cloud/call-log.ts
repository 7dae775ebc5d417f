/**
 * The record of every call to the disk cloud: who asked for what, and the outcome. It proves that
 * no in-tree code called after the crossing, so a call is in it before it takes effect.
 *
 * Invariants
 *  - Sequence numbers go up by one and are never used twice, also across restarts.
 *  - A call that changes something is on the disk before its effect; the others follow within a moment.
 *  - Memory and file are bounded: the oldest calls are dropped, the counters keep counting.
 */
import type { Host, RuntimeEnv } from "@longshore/runtime";
import type { CloudCaller, CloudErrorCode } from "@longshore/volumes";

/** The operations of the disk API. */
export const cloudOps = [
  "createDisk",
  "deleteDisk",
  "attachDisk",
  "detachDisk",
  "resizeDisk",
  "describeDisk",
  "listDisks",
  "describeInstance",
  "listInstances",
  "modifyDisk",
  "diskConditions",
  "listZones",
  "zoneCapacity",
  "listStoragePolicies",
  "createSnapshot",
  "deleteSnapshot",
  "listSnapshots",
  "snapshotBlocks",
  "createSnapshotGroup",
  "deleteSnapshotGroup",
  "describeSnapshotGroup",
  "shareCredentials",
] as const;

/** An operation of the disk API. */
export type CloudOp = (typeof cloudOps)[number];

/** One call. */
export interface CloudCall extends CloudCaller {
  /** 1, 2, 3, … over the life of the cloud's directory. */
  readonly seq: number;
  /** Monotonic milliseconds of the cloud's process at the begin of the call. */
  readonly atMs: number;
  readonly op: CloudOp;
  readonly diskId: string | undefined;
  readonly instanceId: string | undefined;
  /** `pending` until it has ended; `ok`, or why it failed. */
  readonly outcome: "pending" | "ok" | CloudErrorCode;
}

/** How often a caller has used an operation. */
export interface CallCount extends CloudCaller {
  readonly op: CloudOp;
  readonly count: number;
}

/** Counters since the cloud's directory was made, as far as its log goes back, and onwards. */
export interface CallCounters {
  readonly total: number;
  /** Number of calls that `calls` no longer returns, because there were too many since. */
  readonly dropped: number;
  readonly byCaller: readonly CallCount[];
}

/** Options of {@link openCallLog}. */
export interface CallLogOptions {
  readonly path: string;
  /** Calls that are kept; default 50,000. */
  readonly callsMax?: number;
}

/** The log. */
export interface CallLog {
  /** Notes a call that begins; resolves with its number once that may take effect. */
  begin(call: Omit<CloudCall, "seq" | "atMs" | "outcome">, changes: boolean): Promise<number>;
  /** Notes how it ended. */
  end(seq: number, outcome: CloudCall["outcome"]): void;
  /** Calls with a number above `seq`, in order. */
  since(seq: number): readonly CloudCall[];
  counters(): CallCounters;
  /** Writes what is not written yet. */
  flush(): Promise<void>;
}

interface LogEnv extends Pick<RuntimeEnv, "clock" | "logger"> {
  readonly host: Host;
}

const flushAfterMs = 200;

/** Opens the log and reads what is in it; a torn last line is left out. */
export async function openCallLog(env: LogEnv, options: CallLogOptions): Promise<CallLog> {
  const log = new FileCallLog(env, options.path, options.callsMax ?? 50_000);
  await log.load();
  return log;
}

class FileCallLog implements CallLog {
  readonly #env: LogEnv;
  readonly #path: string;
  readonly #callsMax: number;
  readonly #calls = new Map<number, CloudCall>();
  readonly #counts = new Map<string, { -readonly [K in keyof CallCount]: CallCount[K] }>();
  #lastSeq = 0;
  #dropped = 0;
  #linesInFile = 0;
  #unwritten: string[] = [];
  #writing: Promise<void> = Promise.resolve();
  #flushIsSet = false;

  constructor(env: LogEnv, path: string, callsMax: number) {
    this.#env = env;
    this.#path = path;
    this.#callsMax = callsMax;
  }

  async load(): Promise<void> {
    const text = (await this.#env.host.readFile(this.#path)) ?? "";
    if (text === "") return;
    for (const line of text.split("\n")) {
      const call = parseLine(line);
      if (call === undefined) continue;
      if (!this.#calls.has(call.seq)) this.#count(call);
      this.#calls.set(call.seq, call);
      this.#lastSeq = Math.max(this.#lastSeq, call.seq);
    }
    this.#dropOld();
    this.#linesInFile = text.split("\n").length;
    // A torn last line is ended, so that the next one begins on a line of its own.
    if (!text.endsWith("\n")) await this.#env.host.appendFileDurable(this.#path, "\n");
  }

  async begin(call: Omit<CloudCall, "seq" | "atMs" | "outcome">, changes: boolean): Promise<number> {
    const seq = ++this.#lastSeq;
    const noted: CloudCall = { ...call, seq, atMs: this.#env.clock.monotonicMs(), outcome: "pending" };
    this.#calls.set(seq, noted);
    this.#count(noted);
    this.#dropOld();
    this.#note(noted);
    if (changes) await this.flush();
    return seq;
  }

  end(seq: number, outcome: CloudCall["outcome"]): void {
    const call = this.#calls.get(seq);
    if (call === undefined) return;
    const ended = { ...call, outcome };
    this.#calls.set(seq, ended);
    this.#note(ended);
  }

  since(seq: number): readonly CloudCall[] {
    return [...this.#calls.values()].filter((call) => call.seq > seq);
  }

  counters(): CallCounters {
    return {
      total: this.#lastSeq,
      dropped: this.#dropped,
      byCaller: [...this.#counts.values()].map((count) => ({ ...count })),
    };
  }

  flush(): Promise<void> {
    if (this.#unwritten.length === 0) return Promise.resolve();
    // Those who come while a write is under way share the next one.
    this.#writing = this.#writing.catch(() => {}).then(() => this.#writeBatch());
    return this.#writing;
  }

  async #writeBatch(): Promise<void> {
    const batch = this.#unwritten;
    if (batch.length === 0) return;
    this.#unwritten = [];
    try {
      if (this.#linesInFile + batch.length > 3 * this.#callsMax) return await this.#rewrite();
      await this.#env.host.appendFileDurable(this.#path, batch.join(""));
      this.#linesInFile += batch.length;
    } catch (error) {
      // The file's content is unknown now: the next write rewrites it from memory.
      this.#linesInFile = Number.POSITIVE_INFINITY;
      throw error;
    }
  }

  async #rewrite(): Promise<void> {
    const lines = [...this.#calls.values()].map((call) => `${JSON.stringify(call)}\n`);
    await this.#env.host.writeFileAtomic(this.#path, lines.join(""));
    this.#linesInFile = lines.length;
  }

  #note(call: CloudCall): void {
    this.#unwritten.push(`${JSON.stringify(call)}\n`);
    if (this.#flushIsSet) return;
    this.#flushIsSet = true;
    this.#env.clock.timer(flushAfterMs, () => {
      this.#flushIsSet = false;
      this.flush().catch((error) => this.#env.logger.warn("the call log could not be written", { error }));
    });
  }

  #count({ path, component, op, provider }: CloudCall): void {
    const key = `${path} ${component} ${op} ${provider ?? ""}`;
    const ofProvider = provider === undefined ? {} : { provider };
    const count = this.#counts.get(key) ?? { path, component, op, ...ofProvider, count: 0 };
    count.count++;
    this.#counts.set(key, count);
  }

  #dropOld(): void {
    for (const seq of this.#calls.keys()) {
      if (this.#calls.size <= this.#callsMax) return;
      this.#calls.delete(seq);
      this.#dropped++;
    }
  }
}

function parseLine(line: string): CloudCall | undefined {
  try {
    const call = JSON.parse(line) as CloudCall;
    return typeof call.seq === "number"
      ? { ...call, diskId: call.diskId, instanceId: call.instanceId }
      : undefined;
  } catch {
    return undefined;
  }
}
