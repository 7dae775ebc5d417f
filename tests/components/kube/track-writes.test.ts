/** Reading one's own writes: over caches that lag, lose their watch, or follow a server that was restored. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import {
  type ConfigMap,
  interceptWrites,
  type KubeClient,
  KubeTransportError,
  resources,
  StaleCacheError,
  settled,
  sharedInformers,
  startWorkQueue,
  trackWrites,
} from "@longshore/kube";
import { SeededRandom } from "@longshore/runtime";
import { type Link, laggingClient, virtualEnv } from "@longshore/testing/kube";
import fc from "fast-check";
import { expect, test } from "vitest";

const signal = new AbortController().signal;
const ref = { name: "a", namespace: "default" };
const aConfigMap = (value: string, metadata: object = {}): ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { ...ref, ...metadata },
  data: { value },
});

/** A controller's environment whose watches deliver every event `lagMs` late. */
async function world(lagMs: number) {
  const base = virtualEnv();
  const server = createApiServer(base, { store: memoryStore() });
  const direct = server.client();
  const link: Link = { lagMs, isDead: false };
  const kube = laggingClient(base.clock, direct, link);
  const informers = sharedInformers({ ...base, kube });
  const env = trackWrites({ ...base, kube }, informers);
  const cache = informers.of(resources.configMaps);
  await base.clock.run(cache.synced(signal));
  const isSeen = async () => {
    const stop = new AbortController();
    const seen = env.ownWrites.seen(stop).then(
      () => true,
      () => false,
    );
    await base.clock.settle();
    stop.abort(new Error("not yet"));
    return seen;
  };
  return { env, clock: base.clock, direct, kube: env.kube, cache, informers, link, isSeen };
}

test("a pass begins once the cache shows what was written before", async () => {
  const { env, clock, cache, informers } = await world(300);
  const read: (string | undefined)[] = [];
  const queue = startWorkQueue(env, {
    name: "test",
    async reconcile({ signal: within }) {
      const cached = cache.get("default/a");
      read.push(cached?.data?.value);
      if (cached === undefined) {
        await env.kube.create(resources.configMaps, aConfigMap("1"), { signal: within });
      } else if (cached.data?.value !== "3") {
        const value = String(Number(cached.data?.value) + 1);
        await env.kube.update(resources.configMaps, { ...cached, data: { value } }, { signal: within });
      } else return settled;
      return { requeueAfterMs: 0 };
    },
  });
  queue.add("any");
  await clock.advance(5000);
  // Without the record every pass but the last would read what the one before had changed already.
  expect(read).toEqual([undefined, "1", "2", "3"]);
  await queue.stop();
  await informers.stop();
});

test("nothing written, or everything seen: no pass waits", async () => {
  const { clock, kube, informers, isSeen } = await world(100);
  expect(await isSeen()).toBe(true);
  await kube.create(resources.configMaps, aConfigMap("1"), { signal });
  expect(await isSeen()).toBe(false);
  await clock.advance(100);
  expect(await isSeen()).toBe(true);
  await informers.stop();
});

test("work that reads one object waits for the writes to that one alone", async () => {
  const { env, clock, kube, cache, informers, link } = await world(100);
  const other = { ...aConfigMap("1"), metadata: { name: "b", namespace: "default" } };
  await kube.create(resources.configMaps, other, { signal });
  await clock.advance(50);
  await kube.create(resources.configMaps, aConfigMap("1"), { signal });
  link.losesAnswers = true;
  const third = { ...other, metadata: { ...other.metadata, name: "c" } };
  await expect(kube.create(resources.configMaps, third, { signal })).rejects.toThrow(KubeTransportError);
  const seenOf = (name: string) => {
    const objects = [{ resource: resources.configMaps, key: `default/${name}` as const }];
    return env.ownWrites.seenOf(objects, { signal });
  };
  await clock.run(seenOf("b"));
  expect([clock.monotonicMs(), cache.list().length]).toEqual([100, 1]);
  link.losesAnswers = false;
  await clock.run(seenOf("a"));
  expect([clock.monotonicMs(), cache.get("default/a")?.data]).toEqual([150, { value: "1" }]);
  await seenOf("a");
  await clock.run(seenOf("c"));
  expect(cache.list()).toHaveLength(3);
  await informers.stop();
});

test("a later write to an object does not end the wait for the one before", async () => {
  const { env, clock, kube, cache, informers } = await world(100);
  const created = await kube.create(resources.configMaps, aConfigMap("1"), { signal });
  const read: (string | undefined)[] = [];
  const seen = env.ownWrites.seen({ signal }).then(() => read.push(cache.get("default/a")?.data?.value));
  await clock.advance(50);
  await kube.update(resources.configMaps, { ...created, data: { value: "2" } }, { signal });
  await clock.settle();
  expect(read).toEqual([]);
  await clock.run(seen);
  expect(read).toEqual(["2"]);
  await informers.stop();
});

test("an update that changed nothing is seen at once", async () => {
  const { clock, kube, informers, isSeen } = await world(100);
  const created = await kube.create(resources.configMaps, aConfigMap("1"), { signal });
  await clock.advance(100);
  await kube.update(resources.configMaps, created, { signal });
  expect(await isSeen()).toBe(true);
  await informers.stop();
});

test("a deletion is seen once the object is gone or deleting, also one that the cache never saw", async () => {
  const { clock, kube, informers, isSeen } = await world(100);
  const finalizers = ["longshore.dev/test"];
  const created = await kube.create(resources.configMaps, aConfigMap("1", { finalizers }), { signal });
  await kube.delete(resources.configMaps, ref, { signal });
  expect(await isSeen()).toBe(false);
  await clock.advance(300);
  expect(await isSeen()).toBe(true);
  // Taking the last finalizer off is what deletes it.
  const deleting = await kube.get(resources.configMaps, ref, { signal });
  if (deleting === undefined) throw new Error(`${created.metadata.name} is gone`);
  const { finalizers: _, ...metadata } = deleting.metadata;
  await kube.update(resources.configMaps, { ...deleting, metadata }, { signal });
  expect(await isSeen()).toBe(false);
  await clock.advance(300);
  expect(await isSeen()).toBe(true);
  expect(await kube.delete(resources.configMaps, ref, { signal })).toBe(false);
  expect(await isSeen()).toBe(true);
  await informers.stop();
});

test("an object created again under its old name", async () => {
  const { clock, kube, cache, informers, isSeen } = await world(100);
  await kube.create(resources.configMaps, aConfigMap("old"), { signal });
  await clock.advance(300);
  await kube.delete(resources.configMaps, ref, { signal });
  const made = await kube.create(resources.configMaps, aConfigMap("new"), { signal });
  expect(await isSeen()).toBe(false);
  await clock.advance(300);
  expect(await isSeen()).toBe(true);
  expect(cache.get("default/a")?.metadata.uid).toBe(made.metadata.uid);
  await informers.stop();
});

test("a write whose outcome is unknown is looked up", async () => {
  const { clock, kube, direct, informers, link, isSeen } = await world(100);
  link.losesAnswers = true;
  const lost = kube.create(resources.configMaps, aConfigMap("1"), { signal });
  await expect(lost).rejects.toThrow(KubeTransportError);
  link.losesAnswers = false;
  expect(await direct.get(resources.configMaps, ref, { signal })).toBeDefined();
  expect(await isSeen()).toBe(false);
  await clock.advance(100);
  expect(await isSeen()).toBe(true);
  await informers.stop();
});

test("a write whose outcome is unknown is looked up once, however many passes wait for it", async () => {
  const base = virtualEnv();
  const direct = createApiServer(base, { store: memoryStore() }).client();
  let reads = 0;
  const failing = interceptWrites(direct, () =>
    Promise.reject(new KubeTransportError("the answer was lost")),
  );
  const counting: KubeClient = {
    ...failing,
    get(...args: Parameters<KubeClient["get"]>) {
      reads++;
      return direct.get(...args);
    },
  } as KubeClient;
  const informers = sharedInformers({ ...base, kube: counting });
  const env = trackWrites({ ...base, kube: counting }, informers);
  await base.clock.run(informers.of(resources.configMaps).synced(signal));
  await expect(env.kube.create(resources.configMaps, aConfigMap("1"), { signal })).rejects.toThrow();
  await base.clock.run(Promise.all(Array.from({ length: 10 }, () => env.ownWrites.seen({ signal }))));
  expect(reads).toBe(1);
  await informers.stop();
});

test("a cache whose watch is dead is listed again", async () => {
  const { env, clock, kube, cache, informers, link } = await world(0);
  link.isDead = true;
  await kube.create(resources.configMaps, aConfigMap("1"), { signal });
  const seen = env.ownWrites.seen({ signal });
  link.isDead = false;
  await clock.run(seen);
  expect(cache.get("default/a")?.data).toEqual({ value: "1" });
  expect(clock.monotonicMs()).toBeLessThan(6000);
  await informers.stop();
});

test("after a restore from a backup no pass waits for versions that were lost", async () => {
  const base = virtualEnv();
  const before = createApiServer(base, { store: memoryStore() }).client();
  const after = createApiServer(base, { store: memoryStore() }).client();
  for (let i = 0; i < 50; i++) {
    await before.create(
      resources.configMaps,
      { ...aConfigMap("x"), metadata: { name: `f-${i}`, namespace: "default" } },
      { signal },
    );
  }
  let current: KubeClient = before;
  const kube = new Proxy(before, { get: (_, name) => Reflect.get(current, name).bind(current) });
  const link = { lagMs: 0, isDead: false };
  const informers = sharedInformers({ ...base, kube: laggingClient(base.clock, kube, link) });
  const env = trackWrites({ ...base, kube }, informers);
  const cache = informers.of(resources.configMaps);
  await base.clock.run(cache.synced(signal));
  link.isDead = true;
  await env.kube.create(resources.configMaps, aConfigMap("lost"), { signal });
  await base.clock.settle();
  current = after;
  link.isDead = false;
  await base.clock.run(env.ownWrites.seen({ signal }));
  expect(cache.list()).toEqual([]);
  await informers.stop();
});

test("a server that is gone is not waited for without end", async () => {
  const { env, clock, kube, informers, link } = await world(0);
  link.isDead = true;
  await kube.create(resources.configMaps, aConfigMap("1"), { signal });
  await expect(clock.run(env.ownWrites.seen({ signal }))).rejects.toThrow(StaleCacheError);
  expect(clock.monotonicMs()).toBeLessThan(31_000);
  await informers.stop();
});

test("of a cache with a selector only what it holds is remembered", async () => {
  const base = virtualEnv();
  const direct = createApiServer(base, { store: memoryStore() }).client();
  const kube = laggingClient(base.clock, direct, { lagMs: 100, isDead: false });
  const informers = sharedInformers({ ...base, kube });
  const env = trackWrites({ ...base, kube }, informers);
  const cache = informers.of(resources.configMaps, { labelSelector: "ours=true" });
  await base.clock.run(cache.synced(signal));
  const created = await env.kube.create(resources.configMaps, aConfigMap("1"), { signal });
  await env.ownWrites.seen({ signal });
  const labels = { ours: "true" };
  const labelled = await env.kube.update(
    resources.configMaps,
    { ...created, metadata: { ...created.metadata, labels } },
    { signal },
  );
  await base.clock.advance(100);
  expect(cache.list()).toHaveLength(1);
  await env.kube.update(resources.configMaps, { ...labelled, data: { value: "2" } }, { signal });
  await base.clock.run(env.ownWrites.seen({ signal }));
  expect(cache.get("default/a")?.data).toEqual({ value: "2" });
  await informers.stop();
});

test("whatever the link does, no pass sees less than was written before it", async () => {
  // Over all runs: in one of them the link may be dead nearly all the time.
  let allPasses = 0;
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const base = virtualEnv(seed);
      const random = new SeededRandom(seed).fork("test");
      const direct = createApiServer(base, { store: memoryStore() }).client();
      const link = { lagMs: 0, isDead: false, losesAnswers: false };
      const kube = laggingClient(base.clock, direct, link);
      const informers = sharedInformers({ ...base, kube });
      const env = trackWrites({ ...base, kube }, informers);
      const cache = informers.of(resources.configMaps);
      await base.clock.run(cache.synced(signal));
      /** Newest version, or undefined for gone, of each object at the end of the last write to it, and when that was. */
      const written = new Map<string, { readonly version: string | undefined; readonly atMs: number }>();
      const stale: string[] = [];
      const check = () => {
        for (const [name, { version, atMs }] of written) {
          if (atMs === base.clock.monotonicMs()) continue; // The pass may have begun just before.
          const cached = cache.get(`default/${name}`)?.metadata.resourceVersion;
          const isStale = version === undefined ? cached !== undefined : !(Number(cached) >= Number(version));
          if (isStale) stale.push(`${name}: ${cached} is older than ${version}`);
        }
      };
      const write = async (name: string, within: AbortSignal): Promise<string | undefined> => {
        const cached = cache.get(`default/${name}`);
        const metadata = { name, namespace: "default" };
        if (cached === undefined) {
          const object = { ...aConfigMap("1"), metadata };
          return (await env.kube.create(resources.configMaps, object, { signal: within })).metadata
            .resourceVersion;
        }
        if (random.below(3, "what") === 0) {
          await env.kube.delete(resources.configMaps, metadata, { signal: within });
          return undefined;
        }
        const changed = { ...cached, data: { value: String(passes) } };
        return (await env.kube.update(resources.configMaps, changed, { signal: within })).metadata
          .resourceVersion;
      };
      let passes = 0;
      const queue = startWorkQueue(env, {
        name: "test",
        workers: 3,
        backoff: { initialMs: 10, maximumMs: 1000 },
        async reconcile({ key: name, signal: within }) {
          passes++;
          check();
          written.delete(name); // Unknown, should the answer be lost.
          const version = await write(name, within);
          written.set(name, { version, atMs: base.clock.monotonicMs() });
          return { requeueAfterMs: random.below(50, "pause") };
        },
      });
      for (const name of ["a", "b", "c", "d"]) queue.add(name);
      for (let i = 0; i < 40; i++) {
        link.lagMs = random.below(400, "lag");
        link.losesAnswers = random.below(6, "loses") === 0;
        link.isDead = random.below(10, "dead") === 0;
        await base.clock.advance(random.below(2000, "time"));
      }
      expect(stale).toEqual([]);
      allPasses += passes;
      await queue.stop();
      await informers.stop();
    }),
    { numRuns: 15 },
  );
  expect(allPasses).toBeGreaterThan(15 * 20);
});
