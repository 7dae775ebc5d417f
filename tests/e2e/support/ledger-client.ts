/** A client of PostgreSQL outside the cluster: inserts numbered rows and notes on its own disk which commits were acknowledged. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { systemClock } from "@longshore/runtime";
import { recordLine } from "../../../packages/local/src/records/records.ts";

/** Which server the client writes to, and where it notes what was acknowledged. */
export interface LedgerOptions {
  /** Directory of PostgreSQL's programs. */
  readonly programs: string;
  readonly port: number;
  readonly password: string;
  /** The file of acknowledgements, outside the cluster. */
  readonly file: string;
}

/** The name that the rows' checks are made with. */
export const ledgerName = "ledger";
const reconnectMs = 100;

/**
 * Inserts one row after the other, each in a transaction of its own, until it is stopped. After a lost connection it
 * connects again, for as long as it takes. A row whose commit was not acknowledged may be there or not: its number
 * is never used for another.
 */
export class LedgerClient {
  readonly #options: LedgerOptions;
  readonly #file: number;
  readonly #end = new AbortController();
  readonly #done: Promise<void>;
  #session: ChildProcess | undefined;
  #number = 0;
  #connections = 0;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#file = openSync(options.file, "a", 0o600);
    this.#done = this.#run();
  }

  /** The highest number that was sent, acknowledged or not. */
  get sent(): number {
    return this.#number;
  }

  /** How many connections have acknowledged a row. */
  get connections(): number {
    return this.#connections;
  }

  /** The acknowledgements, as lines `ack <number>`. */
  acknowledgements(): string {
    return readFileSync(this.#options.file, "utf8");
  }

  /** Ends the connection; resolves once nothing more is noted. */
  async stop(): Promise<void> {
    this.#end.abort();
    this.#session?.kill("SIGKILL");
    await this.#done;
    closeSync(this.#file);
  }

  async #run(): Promise<void> {
    const { signal } = this.#end;
    while (!signal.aborted) {
      await this.#connect();
      await systemClock.sleep(reconnectMs, signal).catch(() => {});
    }
  }

  /** One connection, until it is lost. */
  async #connect(): Promise<void> {
    const { programs, port, password } = this.#options;
    const target = `host=127.0.0.1 port=${port} user=postgres dbname=postgres connect_timeout=2`;
    const session = spawn(
      join(programs, "psql"),
      ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", target],
      { env: { PGPASSWORD: password }, stdio: ["pipe", "ignore", "pipe"] },
    );
    this.#session = session;
    const { stdin, stderr } = session;
    const ended = new Promise<void>((resolve) => session.on("close", () => resolve()));
    // What is written to a connection that was just lost is reported by its end.
    stdin.on("error", () => {});
    // psql comes to the next line only after the server has said that the statement before it is committed, and ends at an
    // error. What it warns of is not buffered.
    stdin.write(
      "CREATE TABLE IF NOT EXISTS ledger (n bigint PRIMARY KEY, line text NOT NULL);\n\\warn begin\n",
    );
    let isFirst = true;
    for await (const answer of createInterface(stderr)) {
      if (answer === `ack ${this.#number}`) {
        writeSync(this.#file, `${answer}\n`);
        fsyncSync(this.#file);
        if (isFirst) this.#connections++;
        isFirst = false;
      } else if (answer !== "begin") continue;
      if (this.#end.signal.aborted) break;
      const n = ++this.#number;
      stdin.write(`INSERT INTO ledger VALUES (${n}, '${recordLine(ledgerName, n)}');\n\\warn ack ${n}\n`);
    }
    session.kill("SIGKILL");
    await ended;
  }
}
