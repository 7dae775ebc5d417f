/** Writes a crossing's journal: one write at a time, and of notes that come meanwhile only the newest. */
import { type Clock, errorChain, type Host, type Logger } from "@longshore/runtime";
import { type CrossingJournal, type RunRecord, writeJournal } from "./crossing-journal.ts";

/** What the keeper needs. */
export interface JournalEnv {
  readonly clock: Clock;
  readonly host: Host;
  readonly logger: Logger;
}

/**
 * Keeps the journal of one crossing, from which an interrupted run resumes. `write` is for what the next step relies on: it
 * is durable when it resolves, and rejects when it cannot be stored, which ends the run. `note` is for views: it never
 * fails the run. Writes happen one after another, in the order of the calls.
 */
export class JournalKeeper {
  readonly #env: JournalEnv;
  readonly #file: string;
  #journal: CrossingJournal;
  #last: Promise<void> = Promise.resolve();
  #noted = false;

  constructor(env: JournalEnv, file: string, journal: CrossingJournal) {
    this.#env = env;
    this.#file = file;
    this.#journal = journal;
  }

  get journal(): CrossingJournal {
    return this.#journal;
  }

  /** Durable when it resolves. */
  write(change: Partial<CrossingJournal>): Promise<void> {
    this.#journal = { ...this.#journal, ...change };
    return this.#queue(() => writeJournal(this.#env.host, this.#file, this.#journal));
  }

  /** Notes that a step begins, which waits for nothing yet. */
  begin(step: NonNullable<RunRecord["step"]>): void {
    const { waiting: _waiting, ...run } = this.#journal.run ?? { startedAt: step.since, aliveAt: step.since };
    this.#journal = { ...this.#journal, run };
    this.note({ step });
  }

  /** Notes how the run goes. That it may not be on disk is no reason to end the run. */
  note(change: Partial<RunRecord>): void {
    const aliveAt = this.#env.clock.now().toISOString();
    const run: RunRecord = { startedAt: aliveAt, ...this.#journal.run, aliveAt, ...change };
    this.#journal = { ...this.#journal, run };
    if (this.#noted) return;
    this.#noted = true;
    const write = async () => {
      // Before the write begins: what is noted during it needs a write of its own.
      this.#noted = false;
      await writeJournal(this.#env.host, this.#file, this.#journal);
    };
    this.#queue(write).catch((error: unknown) => {
      this.#env.logger.warn(`the journal ${this.#file} cannot be written`, { error: errorChain(error) });
    });
  }

  /** Resolves once nothing is being written. */
  async settled(): Promise<void> {
    await this.#last;
  }

  #queue(write: () => Promise<void>): Promise<void> {
    const written = this.#last.then(write);
    // A failed write must not fail those that are queued behind it.
    this.#last = written.catch(() => {});
    return written;
  }
}
