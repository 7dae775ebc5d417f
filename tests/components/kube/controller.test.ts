/** The shape of controllers: what wakes them, when they begin, how a pass ends. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import {
  type ConfigMap,
  type ControllerOptions,
  forResource,
  observeAgain,
  owns,
  resources,
  type Stored,
  settled,
  sharedInformers,
  source,
  startController,
  trackWrites,
  type Wake,
  watches,
} from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { laggingClient, virtualEnv } from "@longshore/testing/kube";
import { expect, test, vi } from "vitest";

const signal = new AbortController().signal;
const configMap = (name: string, value: string, metadata: object = {}): ConfigMap => ({
  metadata: { name, namespace: "default", ...metadata },
  data: { value },
});

/** Passes that only write down when they observed what. */
interface Seen {
  readonly value: string | undefined;
}

function world(lagMs = 0) {
  const base = virtualEnv();
  const direct = createApiServer(base, { store: memoryStore() }).client();
  const kube = lagMs === 0 ? direct : laggingClient(base.clock, direct, { lagMs, isDead: false });
  const informers = sharedInformers({ ...base, kube });
  const env = trackWrites({ ...base, kube }, informers);
  const cache = informers.of(resources.configMaps);
  const passes: string[] = [];
  const started = (
    sources: ControllerOptions<Seen, { step: "note" }>["sources"],
    more: Partial<ControllerOptions<Seen, { step: "note" }>> = {},
  ) =>
    startController<Seen, { step: "note" }>(env, {
      name: "test",
      sources,
      observe: (key) => ({ value: cache.get(key as "default/a")?.data?.value }),
      decide: () => ({ step: "note" }),
      actions: {
        note(_step, { value }, { key }) {
          passes.push(`${base.clock.monotonicMs()} ${key} ${value ?? "-"}`);
          return settled;
        },
      },
      ...more,
    });
  return { env, clock: base.clock, direct, kube: env.kube, cache, informers, passes, started };
}

test("its own objects wake it: listed ones, new ones, changed ones, deleted ones", async () => {
  const { clock, direct, cache, passes, started } = world();
  await direct.create(resources.configMaps, configMap("a", "1"), { signal });
  const controller = started([forResource(cache)]);
  await clock.advance(100);
  await direct.create(resources.configMaps, configMap("b", "1"), { signal });
  await clock.advance(100);
  await direct.patch(
    resources.configMaps,
    { name: "a", namespace: "default" },
    { type: "merge", body: { data: { value: "2" } } },
    { signal },
  );
  await clock.advance(100);
  await direct.delete(resources.configMaps, { name: "b", namespace: "default" }, { signal });
  await clock.advance(100);
  expect(passes.map((pass) => pass.slice(pass.indexOf(" ") + 1))).toEqual([
    "default/a 1",
    "default/b 1",
    "default/a 2",
    "default/b -",
  ]);
  await controller.stop();
});

test("no pass begins before every cache has synced, and nothing that woke it before is lost", async () => {
  const { clock, cache, passes, started } = world();
  let sync: () => void = () => {};
  const slow = new Promise<void>((resolve) => {
    sync = resolve;
  });
  const controller = started([forResource(cache)], { caches: [{ synced: () => slow }] });
  controller.wake("default/early");
  controller.wake("default/early", "background");
  await clock.advance(5_000);
  expect(passes).toEqual([]);
  expect(controller.length).toBe(1);
  sync();
  await clock.advance(1);
  expect(passes).toEqual(["5000 default/early -"]);
  await controller.stop();
});

test("an object that was listed first wakes in the background", async () => {
  const { clock, direct, cache } = world();
  await direct.create(resources.configMaps, configMap("a", "1"), { signal });
  await clock.run(cache.synced(signal));
  const woken: unknown[] = [];
  const queue = { wake: (...call: unknown[]) => woken.push(call), forget: () => {} };
  const end = forResource(cache).subscribe(queue);
  await direct.create(resources.configMaps, configMap("b", "1"), { signal });
  await clock.advance(10);
  end();
  expect(woken).toEqual([
    ["default/a", "background"],
    ["default/b", "fresh"],
  ]);
});

test("a changed object does not wait behind the first list", async () => {
  const { clock, direct, cache, passes, started } = world();
  // Reported as a first list is.
  const listed = Array.from({ length: 20 }, (_, i) => `default/listed-${i}`);
  const first = source((wake) => {
    for (const key of listed) wake(key, "background");
    return () => {};
  });
  const controller = started([first, forResource(cache)], {
    actions: {
      async note(_step, _observed, { key, signal: within }) {
        passes.push(key);
        await clock.sleep(1_000, within);
        return settled;
      },
    },
  });
  await clock.advance(1_500);
  await direct.create(resources.configMaps, configMap("new", "1"), { signal });
  await clock.advance(2_000);
  expect(passes.slice(0, 4)).toContain("default/new");
  await controller.stop();
});

test("selects, changed and deleted say which events count", async () => {
  const { clock, direct, cache, passes, started } = world();
  const isOurs = (object: Stored<ConfigMap>) => object.metadata.name !== "foreign";
  const dataOf = (object: Stored<ConfigMap>) => object.data?.value;
  const controller = started([
    forResource(cache, {
      selects: isOurs,
      changed: (before, after) => dataOf(before) !== dataOf(after),
      deleted: "forget",
    }),
  ]);
  const ref = { name: "a", namespace: "default" };
  await direct.create(resources.configMaps, configMap("foreign", "1"), { signal });
  await direct.create(resources.configMaps, configMap("a", "1"), { signal });
  await clock.advance(10);
  const touch = { type: "merge", body: { metadata: { labels: { touched: "yes" } } } } as const;
  await direct.patch(resources.configMaps, ref, touch, { signal });
  await clock.advance(10);
  await direct.delete(resources.configMaps, ref, { signal });
  await clock.advance(10);
  expect(passes.map((pass) => pass.split(" ")[1])).toEqual(["default/a"]);
  await controller.stop();
});

test("an owned object wakes the owner that controls it; a watched one the keys before and after its change", async () => {
  const { clock, direct, cache, informers, passes, started } = world();
  const secrets = informers.of(resources.secrets);
  const controller = started([
    owns(cache, "Workspace"),
    watches(secrets, (secret) => [`for/${secret.metadata.labels?.key ?? "none"}`]),
  ]);
  await clock.advance(10);
  const owner = { apiVersion: "example.dev/v1", kind: "Workspace", name: "w", uid: "1", controller: true };
  await direct.create(resources.configMaps, configMap("a", "1", { ownerReferences: [owner] }), { signal });
  const secret = { metadata: { name: "s", namespace: "default", labels: { key: "x" } } };
  await direct.create(resources.secrets, secret, { signal });
  await clock.advance(10);
  const body = { metadata: { labels: { key: "y" } } };
  await direct.patch(
    resources.secrets,
    { name: "s", namespace: "default" },
    { type: "merge", body },
    { signal },
  );
  await clock.advance(10);
  const keys = passes.map((pass) => pass.split(" ")[1]);
  expect(keys).toEqual(["default/w", "for/x", "for/x", "for/y"]);
  await controller.stop();
});

test("all of its own objects are looked at again at each resync", async () => {
  const { clock, direct, cache, passes, started } = world();
  await direct.create(resources.configMaps, configMap("a", "1"), { signal });
  const controller = started([forResource(cache)], { resyncMs: 60_000 });
  await clock.advance(150_000);
  expect(passes).toHaveLength(3);
  await controller.stop();
});

test("any other source wakes keys until the controller stops", async () => {
  const { clock, passes, started } = world();
  let wake: Wake = () => {};
  const end = vi.fn();
  const controller = started([
    source((given) => {
      wake = given;
      return end;
    }),
  ]);
  await clock.settle();
  wake("k");
  await clock.advance(1);
  await controller.stop();
  wake("after the stop");
  await clock.advance(1_000);
  expect(passes.map((pass) => pass.split(" ")[1])).toEqual(["k"]);
  expect(end).toHaveBeenCalledOnce();
});

test("an observation shows what the pass has written, also over a cache that lags", async () => {
  const { env, clock, kube, cache } = world(300);
  const values: (string | undefined)[] = [];
  const controller = startController<Seen, { step: "create" | "done" }>(env, {
    name: "test",
    sources: [],
    caches: [cache],
    observe: (key) => {
      const value = cache.get(key as "default/a")?.data?.value;
      values.push(value);
      return { value };
    },
    decide: pureDecision(({ value }: Seen) => ({ step: value === undefined ? "create" : "done" })),
    actions: {
      async create(_step, _observed, pass) {
        await kube.create(resources.configMaps, configMap("a", "1"), { signal: pass.signal });
        return observeAgain;
      },
      done: () => settled,
    },
  });
  controller.wake("default/a");
  await clock.advance(2_000);
  expect(values).toEqual([undefined, "1"]);
  await controller.stop();
});

test("steps are counted by controller and step", async () => {
  const { env, clock } = world();
  const added: unknown[] = [];
  const meter = {
    ...env.meter,
    counter: () => ({ add: (_: number, labels?: object) => added.push(labels) }),
  };
  const controller = startController<Seen, { step: "note" }>(
    { ...env, meter },
    {
      name: "counted",
      sources: [],
      observe: () => ({ value: "1" }),
      decide: () => ({ step: "note" }),
      actions: { note: () => settled },
    },
  );
  controller.wake("k");
  await clock.advance(1);
  expect(added).toContainEqual({ controller: "counted", step: "note" });
  await controller.stop();
});

test("a pass over its time fails and is retried with a delay", async () => {
  const { clock, passes, started } = world();
  const controller = started([], {
    passTimeoutMs: 500,
    backoff: { initialMs: 1_000, maximumMs: 1_000 },
    actions: {
      async note(_step, _observed, pass) {
        passes.push(String(clock.monotonicMs()));
        await clock.sleep(60_000, pass.signal);
        return settled;
      },
    },
  });
  controller.wake("k");
  await clock.advance(2_500);
  expect(passes).toEqual(["0", "1500"]);
  await controller.stop();
});
