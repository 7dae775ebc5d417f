/** Questions to the container runtime, which lists all containers of the node for each answer. */
import type { ContainerRuntime } from "../../../framework/ports.ts";

/** Asks on behalf of many pods at once. */
export class RunningPods {
  readonly #runtime: ContainerRuntime;
  #current: Promise<ReadonlySet<string>> | undefined;
  #next: Promise<ReadonlySet<string>> | undefined;

  constructor(runtime: ContainerRuntime) {
    this.#runtime = runtime;
  }

  /**
   * UIDs of the pods that have running containers, by a question that is asked after this call: one that is under
   * way already may have missed a container. All calls that come during one question share the next.
   */
  ask(signal: AbortSignal): Promise<ReadonlySet<string>> {
    if (this.#current === undefined) return this.#ask(signal);
    this.#next ??= this.#current
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.#ask(signal);
      });
    return this.#next;
  }

  #ask(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const question = this.#runtime.podsWithRunningContainers(signal).finally(() => {
      this.#current = undefined;
    });
    this.#current = question;
    return question;
  }
}
