/** Processes that components run: each ends with the component, or when the component kills it. */
import { abortable } from "@longshore/runtime";
import type { Life } from "../cut.ts";

/** Of all components of one world. */
export class DriverProcesses {
  readonly #running = new Map<string, Set<Life>>();

  /** Runs a process with a life of its own for the component. @throws the reason of the signal, which kills it */
  async run<T>(component: string, life: Life, signal: AbortSignal, main: () => Promise<T>): Promise<T> {
    const ofComponent = this.#running.get(component) ?? new Set();
    this.#running.set(component, ofComponent.add(life));
    try {
      return await abortable(main(), signal);
    } finally {
      life.cut();
      ofComponent.delete(life);
    }
  }

  /** The component has crashed, and all that it ran with it. */
  end(component: string): void {
    for (const life of this.#running.get(component) ?? []) life.cut();
    this.#running.delete(component);
  }
}
