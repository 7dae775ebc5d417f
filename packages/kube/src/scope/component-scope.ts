/** Everything that one component has started: stopped as one. */
import { type Component, stopAll, TaskGroup } from "@longshore/runtime";

/** Holds the tasks and parts of a component, and ends them in the reverse order of their start. */
export class ComponentScope implements Component {
  readonly #tasks: TaskGroup;
  readonly #parts: Component[] = [];

  /** @param onError called when a task fails for another reason than being stopped */
  constructor(onError: (error: unknown) => void) {
    this.#tasks = new TaskGroup(onError);
  }

  /** Aborts when the component is stopped. */
  get signal(): AbortSignal {
    return this.#tasks.signal;
  }

  /** Runs `task` until it ends or the component is stopped. */
  spawn(task: (signal: AbortSignal) => Promise<void>): void {
    this.#tasks.spawn(task);
  }

  /** Stops these with the component, the last first. */
  own(...parts: readonly Component[]): void {
    this.#parts.push(...parts);
  }

  /** Calls these when the component is stopped: what ends a handler of a shared cache. */
  onStop(...ends: readonly (() => void)[]): void {
    this.#parts.push(...ends.map((end) => ({ stop: async () => end() })));
  }

  async stop(): Promise<void> {
    await this.#tasks.stop();
    await stopAll(this.#parts);
  }
}
