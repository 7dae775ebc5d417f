/** Informers against the embedded API server. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type ConfigMap, resources, sharedInformers, startInformer } from "@longshore/kube";
import { virtualEnv } from "@longshore/testing/kube";
import { expect, test } from "vitest";

const signal = new AbortController().signal;

const aConfigMap = (name: string, data: Record<string, string> = {}): ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "default" },
  data,
});

function world() {
  const env = virtualEnv();
  const kube = createApiServer(env, { store: memoryStore() }).client();
  return { ...env, kube };
}

test("a late handler gets what is cached; an unregistered one gets nothing more", async () => {
  const env = world();
  await env.kube.create(resources.configMaps, aConfigMap("a"), { signal });
  const informer = startInformer(env, resources.configMaps);
  await env.clock.run(informer.synced(signal));
  const calls: string[] = [];
  const leave = informer.onChange({
    added: (object) => calls.push(`added ${object.metadata.name}`),
    deleted: (object, { tombstone }) => calls.push(`deleted ${object.metadata.name} ${tombstone}`),
  });
  expect(calls).toEqual(["added a"]);
  await env.kube.delete(resources.configMaps, { name: "a", namespace: "default" }, { signal });
  await env.clock.settle();
  expect(calls).toEqual(["added a", "deleted a false"]);
  leave();
  await env.kube.create(resources.configMaps, aConfigMap("b"), { signal });
  await env.clock.settle();
  expect(calls).toHaveLength(2);
  expect(informer.get("default/b")?.metadata.name).toBe("b");
  await informer.stop();
});

test("a handler that throws harms neither the others nor the cache", async () => {
  const env = world();
  const informer = startInformer(env, resources.configMaps);
  const calls: string[] = [];
  informer.onChange({
    added() {
      throw new Error("no");
    },
  });
  informer.onChange({ added: (object) => calls.push(object.metadata.name) });
  await env.kube.create(resources.configMaps, aConfigMap("a"), { signal });
  await env.clock.run(informer.synced(signal));
  expect(calls).toEqual(["a"]);
  expect(informer.list()).toHaveLength(1);
  await informer.stop();
});

test("managed fields are dropped and objects shrunk before they are kept", async () => {
  const env = world();
  const metadata = { name: "a", namespace: "default", managedFields: [{ manager: "someone" }] };
  await env.kube.create(resources.configMaps, { ...aConfigMap("a", { large: "x" }), metadata }, { signal });
  const informer = startInformer(env, resources.configMaps, {
    transform: ({ data: _, ...rest }) => rest,
  });
  await env.clock.run(informer.synced(signal));
  const kept = informer.get("default/a");
  expect(kept?.metadata).not.toHaveProperty("managedFields");
  expect(kept).not.toHaveProperty("data");
  await informer.stop();
});

test("resync reports every object again", async () => {
  const env = world();
  await env.kube.create(resources.configMaps, aConfigMap("a"), { signal });
  const informer = startInformer(env, resources.configMaps, { resyncMs: 60_000 });
  let updates = 0;
  informer.onChange({ updated: (before, after) => expect(++updates && before).toBe(after) });
  await env.clock.advance(150_000);
  expect(updates).toBe(2);
  await informer.stop();
});

test("shared informers start each list once and gather indexes", async () => {
  const env = world();
  await env.kube.create(resources.configMaps, aConfigMap("a", { owner: "x" }), { signal });
  const informers = sharedInformers(env);
  const first = informers.of(resources.configMaps);
  const second = informers.of(resources.configMaps, { indexes: { owner: (o) => [o.data?.owner ?? ""] } });
  expect(second).toBe(first);
  expect(informers.of(resources.configMaps, { namespace: "other" })).not.toBe(first);
  await env.clock.run(informers.synced(signal));
  expect(first.byIndex("owner", "x").map((o) => o.metadata.name)).toEqual(["a"]);
  expect(() => first.byIndex("unknown", "x")).toThrow(/no index "unknown"/);
  await informers.stop();
});
