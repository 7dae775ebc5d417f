/** Which versions of a resource the server has, asked once and remembered for a while. */
import type { Clock } from "@longshore/runtime";
import type { KubeObject } from "../kube-objects.ts";
import type { Resource } from "../resources.ts";
import { groupVersionPath } from "./request-path.ts";

/** One resource of meta/v1 APIResourceList. */
export interface ApiResource {
  readonly name: string;
  /** Group of the body, where it is not that of the list: `policy` for `pods/eviction`. */
  readonly group?: string;
  readonly version?: string;
  readonly kind?: string;
}

/** Asks the server for the resources at a path; undefined: nothing is served there. */
export type FetchResources = (
  path: string,
  signal: AbortSignal,
) => Promise<readonly ApiResource[] | undefined>;

/** What is served changes when the server is upgraded: ask again after this time. */
const SERVED_MS = 600_000;
/** What is not served may come at any time (a custom resource, a starting server). */
const NOT_SERVED_MS = 30_000;

interface Answer {
  /** The signal of the caller that sent the request. */
  readonly signal: AbortSignal;
  readonly resources: Promise<readonly ApiResource[] | undefined>;
  validUntilMs: number;
}

/** Remembers what the server serves. */
export class Discovery {
  readonly #clock: Clock;
  readonly #fetch: FetchResources;
  readonly #answers = new Map<string, Answer>();

  constructor(clock: Clock, fetch: FetchResources) {
    this.#clock = clock;
    this.#fetch = fetch;
  }

  /** The first of the resource's versions that the server has, or undefined. */
  async servedVersion(resource: Resource<KubeObject>, signal: AbortSignal): Promise<string | undefined> {
    for (const version of resource.versions) {
      const served = await this.#resourcesOf(resource.group, version, signal);
      if (served?.some(({ name }) => name === resource.plural) === true) return version;
    }
    return undefined;
  }

  /** `group/version` in which the body of an eviction is understood (`pods/eviction` in the core group). */
  async evictionVersion(signal: AbortSignal): Promise<string> {
    const served = await this.#resourcesOf("", "v1", signal);
    const eviction = served?.find(({ name }) => name === "pods/eviction");
    return `policy/${eviction?.version ?? "v1beta1"}`;
  }

  async #resourcesOf(
    group: string,
    version: string,
    signal: AbortSignal,
  ): Promise<readonly ApiResource[] | undefined> {
    const path = groupVersionPath(group, version);
    const nowMs = this.#clock.monotonicMs();
    let answer = this.#answers.get(path);
    if (answer === undefined || nowMs >= answer.validUntilMs) {
      const resources = this.#fetch(path, signal);
      answer = { signal, resources, validUntilMs: nowMs + NOT_SERVED_MS };
      this.#answers.set(path, answer);
      const fresh = answer;
      resources.then(
        (found) => {
          if (found !== undefined) fresh.validUntilMs = nowMs + SERVED_MS;
        },
        () => {
          if (this.#answers.get(path) === fresh) this.#answers.delete(path);
        },
      );
    }
    try {
      return await answer.resources;
    } catch (error) {
      // The caller who had asked has gone: this one asks for itself.
      if (answer.signal === signal || !answer.signal.aborted || signal.aborted) throw error;
      return await this.#resourcesOf(group, version, signal);
    }
  }
}
