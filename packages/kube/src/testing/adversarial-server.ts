/**
 * A list and watch server for tests of the informer that does everything a server and a network may do,
 * and some of what they may not: it fails, hangs, cuts off, repeats, expires, ends early, and can be
 * restored to an older state. All of it is drawn from a seed, on the virtual clock.
 */
import type { Clock, Random } from "@longshore/runtime";
import type { ConfigMap } from "../api-types.ts";
import {
  KubeApiError,
  type KubeClient,
  KubeTransportError,
  type ListOptions,
  type ListPage,
  type WatchEvent,
  type WatchOptions,
} from "../kube-client.ts";
import type { KubeObject, Stored } from "../kube-objects.ts";
import type { Resource } from "../resources.ts";

type Change = { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: Stored<ConfigMap> };

interface State {
  readonly version: number;
  readonly objects: ReadonlyMap<string, Stored<ConfigMap>>;
  readonly log: readonly Change[];
}

interface Snapshot {
  readonly version: number;
  readonly objects: ReadonlyMap<string, Stored<ConfigMap>>;
}

const expired = () =>
  new KubeApiError({
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code: 410,
    reason: "Expired",
    message: "too old resource version",
  });
const refused = () =>
  new KubeApiError({
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code: 422,
    reason: "Invalid",
    message: "sendInitialEvents: Forbidden",
  });
const broken = () => new KubeTransportError("the connection broke");

/** The server, with knobs for the test. */
export class AdversarialServer {
  readonly #clock: Clock;
  readonly #random: Random;
  #state: State = { version: 10, objects: new Map(), log: [] };
  /** Versions at or before this one have been compacted away. */
  #compacted = 0;
  /** Incremented by a restore: open watches belong to the old server, and get no events of the new one. */
  #generation = 0;
  #uids = 0;
  /** After a restore: a write before the next client request would be indistinguishable from the old history. */
  #isFrozen = false;
  /** 0: no faults; otherwise one in so many steps goes wrong. */
  faultRate = 0;
  /** Whether a watch may begin with the state. */
  streams = true;
  listsInFlight = 0;
  listsInFlightMax = 0;
  lists = 0;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  get objects(): ReadonlyMap<string, Stored<ConfigMap>> {
    return this.#state.objects;
  }

  snapshot(): Snapshot {
    return { version: this.#state.version, objects: this.#state.objects };
  }

  restore(snapshot: Snapshot): void {
    this.#generation++;
    this.#isFrozen = true;
    this.#state = { ...snapshot, log: [] };
    this.#compacted = snapshot.version;
  }

  compact(): void {
    this.#compacted = this.#state.version;
  }

  /** Creates or changes the object. */
  write(name: string, value: string): void {
    if (this.#isFrozen) return;
    const before = this.#state.objects.get(name);
    const version = this.#state.version + 1;
    const object: Stored<ConfigMap> = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        name,
        uid: before?.metadata.uid ?? `uid-${++this.#uids}`,
        resourceVersion: String(version),
      },
      data: { value },
    };
    this.#commit(version, { type: before === undefined ? "ADDED" : "MODIFIED", object });
  }

  delete(name: string): void {
    const before = this.#state.objects.get(name);
    if (before === undefined || this.#isFrozen) return;
    const version = this.#state.version + 1;
    const metadata = { ...before.metadata, resourceVersion: String(version) };
    this.#commit(version, { type: "DELETED", object: { ...before, metadata } });
  }

  #commit(version: number, change: Change): void {
    const objects = new Map(this.#state.objects);
    if (change.type === "DELETED") objects.delete(change.object.metadata.name);
    else objects.set(change.object.metadata.name, change.object);
    this.#state = { version, objects, log: [...this.#state.log, change] };
  }

  /** As a client; only list and watch are there. */
  client(): KubeClient {
    const client: Pick<KubeClient, "list" | "watch"> = {
      list: (resource, options) => this.#list(resource, options) as Promise<ListPage<never>>,
      watch: (_resource, options) => this.#watch(options) as AsyncIterable<WatchEvent<never>>,
    };
    return client as KubeClient;
  }

  #fails(): boolean {
    return this.faultRate > 0 && this.#random.below(this.faultRate, "fault") === 0;
  }

  async #list(_resource: Resource<KubeObject>, options: ListOptions): Promise<ListPage<ConfigMap>> {
    this.lists++;
    this.listsInFlight++;
    this.listsInFlightMax = Math.max(this.listsInFlightMax, this.listsInFlight);
    try {
      await this.#clock.sleep(this.#random.below(50, "list time"), options.signal);
      if (this.#fails()) throw broken();
      if (this.#fails()) await this.#clock.sleep(3_600_000, options.signal);
      return this.#page(options);
    } finally {
      this.listsInFlight--;
    }
  }

  /** A page of the state at the version of the first page, which the token carries. */
  #page(options: ListOptions): ListPage<ConfigMap> {
    const [version, after] = (options.continue ?? `${this.#state.version}:`).split(":");
    if (options.continue !== undefined && Number(version) !== this.#state.version) throw expired();
    this.#isFrozen = false;
    const names = [...this.#state.objects.keys()].sort().filter((name) => name > (after ?? ""));
    // Pages smaller than requested, so that a few objects make several.
    const size = options.limit === undefined ? names.length : Math.min(options.limit, 3);
    const page = names.slice(0, size);
    return {
      items: page.map((name) => this.#state.objects.get(name) as Stored<ConfigMap>),
      resourceVersion: version ?? "",
      continue: names.length > size ? `${version}:${page.at(-1)}` : undefined,
    };
  }

  async *#watch(options: WatchOptions): AsyncGenerator<WatchEvent<ConfigMap>> {
    const generation = this.#generation;
    const endsMs = this.#clock.monotonicMs() + (options.timeoutSeconds ?? 300) * 1000;
    let position = Number(options.resourceVersion);
    const sent: Change[] = [];
    if (this.#fails()) throw broken();
    if (options.sendInitialEvents === true) {
      if (!this.streams) throw refused();
      await this.#clock.sleep(this.#random.below(50, "stream time"), options.signal);
      const state = this.#state;
      this.#isFrozen = false;
      for (const object of state.objects.values()) {
        yield { type: "ADDED", object };
        if (this.#fails()) throw broken();
        if (this.#fails()) await this.#clock.sleep(36_000_000, options.signal);
      }
      position = state.version;
      yield { type: "BOOKMARK", resourceVersion: String(position), initialEventsEnd: true };
    }
    if (position < this.#compacted || this.#fails()) throw expired();
    let nextBookmarkMs = this.#clock.monotonicMs() + 60_000;
    while (this.#clock.monotonicMs() < endsMs) {
      await this.#clock.sleep(1 + this.#random.below(200, "watch step"), options.signal);
      if (generation !== this.#generation) {
        // The old server is gone: half of the watches fail, the others hang.
        if (this.#random.below(2, "restore is noticed") === 0) throw broken();
        await this.#clock.sleep(36_000_000, options.signal);
      }
      if (this.#fails()) throw broken();
      if (this.#fails()) return;
      if (this.#fails()) await this.#clock.sleep(36_000_000, options.signal);
      if (position < this.#compacted && this.#fails()) throw expired();
      const changes = this.#state.log.filter((change) => versionOf(change.object) > position);
      for (const change of changes.slice(0, 1 + this.#random.below(4, "batch"))) {
        yield change;
        position = versionOf(change.object);
        sent.push(change);
        if (this.#fails()) yield sent[this.#random.below(sent.length, "repeated")] ?? change;
        if (this.#fails()) throw broken();
      }
      if (this.#clock.monotonicMs() >= nextBookmarkMs && changes.length === 0) {
        nextBookmarkMs += 60_000;
        position = Math.max(position, this.#state.version);
        yield { type: "BOOKMARK", resourceVersion: String(position) };
      }
    }
  }
}

function versionOf(object: Stored<KubeObject>): number {
  return Number(object.metadata.resourceVersion);
}
