/** Writes a crossing's journal: one write at a time, and of notes that come meanwhile only the newest. */
import { type Clock, errorChain, type Logger, withDeadline } from "@longshore/runtime";
import type { CrossingJournal, RunRecord } from "./crossing-journal.ts";
import type { JournalStore } from "./journal-store.ts";

/** What the keeper needs. */
export interface JournalEnv {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A note that cannot be stored in this time, in milliseconds, is given up: the next one says more. */
const noteMs = 5000;

/**
 * Keeps the journal of one crossing, from which an interrupted run resumes. `write` is for what the next step relies on: it
 * is durable when it resolves, and rejects when it cannot be stored. `note` is for views: it never
 * fails the run. Writes happen one after another, in the order of the calls.
 */
export class JournalKeeper {
  readonly #env: JournalEnv;
  readonly #store: JournalStore;
  #journal: CrossingJournal;
  #last: Promise<void> = Promise.resolve();
  #noted = false;

  constructor(env: JournalEnv, store: JournalStore, journal: CrossingJournal) {
    this.#env = env;
    this.#store = store;
    this.#journal = journal;
  }

  get journal(): CrossingJournal {
    return this.#journal;
  }

  /** Durable when it resolves. */
  write(change: Partial<CrossingJournal>, signal: AbortSignal): Promise<void> {
    this.#journal = { ...this.#journal, ...change };
    return this.#queue(() => this.#store.write(this.#counted(), signal));
  }

  /** Stores how the run goes. Durable when it resolves. */
  record(change: Partial<RunRecord>, signal: AbortSignal): Promise<void> {
    return this.write({ run: this.#runWith(change) }, signal);
  }

  /** Notes that a step begins, which waits for nothing yet. */
  begin(step: NonNullable<RunRecord["step"]>): void {
    this.#forgetWait();
    this.note({ step });
  }

  /** Stores that a step begins, which waits for nothing yet. Durable when it resolves. */
  begun(step: NonNullable<RunRecord["step"]>, signal: AbortSignal): Promise<void> {
    this.#forgetWait();
    return this.record({ step }, signal);
  }

  /** Notes how the run goes. That it may not be stored is no reason to end the run. */
  note(change: Partial<RunRecord>): void {
    this.#journal = { ...this.#journal, run: this.#runWith(change) };
    if (this.#noted) return;
    this.#noted = true;
    const write = async () => {
      // Before the write begins: what is noted during it needs a write of its own.
      this.#noted = false;
      await withDeadline(this.#env.clock, noteMs, new AbortController().signal, (signal) =>
        this.#store.write(this.#counted(), signal),
      );
    };
    this.#queue(write).catch((error: unknown) => {
      this.#env.logger.warn(`the journal ${this.#store.place} cannot be written`, {
        error: errorChain(error),
      });
    });
  }

  /** Resolves once nothing is being written. */
  async settled(): Promise<void> {
    await this.#last;
  }

  #counted(): CrossingJournal {
    this.#journal = { ...this.#journal, writes: (this.#journal.writes ?? 0) + 1 };
    return this.#journal;
  }

  #runWith(change: Partial<RunRecord>): RunRecord {
    const aliveAt = this.#env.clock.now().toISOString();
    return { startedAt: aliveAt, ...this.#journal.run, aliveAt, ...change };
  }

  #forgetWait(): void {
    if (this.#journal.run === undefined) return;
    const { waiting: _waiting, ...run } = this.#journal.run;
    this.#journal = { ...this.#journal, run };
  }

  #queue(write: () => Promise<void>): Promise<void> {
    const written = this.#last.then(write);
    // A failed write must not fail those that are queued behind it.
    this.#last = written.catch(() => {});
    return written;
  }
}
