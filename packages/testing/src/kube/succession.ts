/** A component that dies at given points, and those that take its place. */
import type { Component } from "@longshore/runtime";
import type { CrashPoint } from "./crash-points.ts";
import { Life } from "./mortal-client.ts";

/** One life after the other; the one after the last point lives on. */
export class Succession implements Component {
  readonly #points: readonly CrashPoint[];
  readonly #start: (life: Life) => Component;
  readonly #pause: () => Promise<unknown>;
  readonly #lives: Life[] = [];
  #current: { readonly life: Life; readonly component: Component } | undefined;
  #heir: Promise<void> = Promise.resolve();

  /** @param pause what happens between a death and the start of the next; left out: nothing */
  constructor(
    points: readonly CrashPoint[],
    start: (life: Life) => Component,
    pause: () => Promise<unknown> = async () => {},
  ) {
    this.#points = points;
    this.#start = start;
    this.#pause = pause;
    this.#begin();
  }

  /** What the calls of each life were; fewer lives than points and one more: a point was not reached. */
  get calls(): readonly (readonly string[])[] {
    return this.#lives.map(({ log }) => log);
  }

  /** Stops the one that lives. What is dead cannot be stopped: its heir is waited for. */
  async stop(): Promise<void> {
    for (;;) {
      const current = this.#current;
      if (current === undefined) await this.#heir;
      else {
        await Promise.race([current.component.stop(), current.life.death]);
        if (!current.life.dead) return;
      }
    }
  }

  #begin(): void {
    const { at, side } = this.#points[this.#lives.length] ?? {};
    const life = new Life(at, side);
    this.#lives.push(life);
    this.#current = { life, component: this.#start(life) };
    void life.death.then(() => {
      this.#current = undefined;
      this.#heir = this.#pause().then(() => this.#begin());
    });
  }
}
