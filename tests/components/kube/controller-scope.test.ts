/** What a controller begins with: whose caches are stopped with it, and that it sees its own writes. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { controllerScope, resources, sharedInformers } from "@longshore/kube";
import { laggingClient, virtualEnv } from "@longshore/testing/kube";
import { expect, test, vi } from "vitest";

const { signal } = new AbortController();

function world(lagMs = 0) {
  const base = virtualEnv();
  const direct = createApiServer(base, { store: memoryStore() }).client();
  return { ...base, kube: laggingClient(base.clock, direct, { lagMs, isDead: false }) };
}

test("its own caches are stopped with it, after all else", async () => {
  const { scope, env } = controllerScope(world(), "test");
  const stopped: string[] = [];
  vi.spyOn(env.informers, "stop").mockImplementation(async () => void stopped.push("caches"));
  scope.own({ stop: async () => void stopped.push("controller") });
  await scope.stop();
  expect(stopped).toEqual(["controller", "caches"]);
});

test("shared caches stay when it is stopped", async () => {
  const given = world();
  const informers = sharedInformers(given);
  const stop = vi.spyOn(informers, "stop");
  const { scope, env } = controllerScope({ ...given, informers }, "test");
  expect(env.informers).toBe(informers);
  await scope.stop();
  expect(stop).not.toHaveBeenCalled();
});

test("what was written through its client is seen once its caches show it", async () => {
  const { scope, env } = controllerScope(world(500), "test");
  const cache = env.informers.of(resources.configMaps);
  await env.clock.run(cache.synced(signal));
  await env.kube.create(resources.configMaps, { metadata: { name: "a", namespace: "default" } }, { signal });
  expect(cache.get("default/a")).toBeUndefined();
  await env.clock.run(env.ownWrites.seen({ signal }));
  expect(cache.get("default/a")).toBeDefined();
  await scope.stop();
});

test("a task that fails is logged with the name", async () => {
  const given = world();
  const error = vi.fn();
  const { scope } = controllerScope({ ...given, logger: { ...given.logger, error } }, "the test");
  scope.spawn(async () => {
    throw new Error("no");
  });
  await given.clock.advance(0);
  expect(error).toHaveBeenCalledWith("the test failed", { error: new Error("no") });
  await scope.stop();
});
