import { isConflict, isExpired, isNotFound, type Pod, resources } from "@longshore/kube";
import { noMeter, type RuntimeEnv, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { createApiServer, memoryStore } from "./index.ts";

const signal = new AbortController().signal;

function world() {
  const clock = new VirtualClock();
  const env: RuntimeEnv = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const server = createApiServer(env, { store: memoryStore() });
  return { clock, server, kube: server.client() };
}

const aPod = (name: string): Pod => ({
  metadata: { name, namespace: "default", labels: { app: "web" } },
  spec: { containers: [{ name: "main", image: "img" }] },
});

describe("the embedded API server, in process", () => {
  it("gives a new object its identity, and gives it back", async () => {
    const { kube } = world();
    const made = await kube.create(resources.pods, aPod("a"), { signal });
    expect(made).toMatchObject({ apiVersion: "v1", kind: "Pod", status: { phase: "Pending" } });
    expect(made.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(made.metadata.creationTimestamp).toBe("2026-01-01T00:00:00Z");
    expect(await kube.get(resources.pods, { namespace: "default", name: "a" }, { signal })).toBe(made);
    expect(await kube.get(resources.pods, { namespace: "default", name: "b" }, { signal })).toBeUndefined();
  });

  it("lets a stale writer lose", async () => {
    const { kube } = world();
    const made = await kube.create(resources.pods, aPod("a"), { signal });
    const labelled = { ...made, metadata: { ...made.metadata, labels: { app: "db" } } };
    const updated = await kube.update(resources.pods, labelled, { signal });
    expect(updated.metadata.labels).toEqual({ app: "db" });
    await expect(kube.update(resources.pods, made, { signal })).rejects.toSatisfy(isConflict);
  });

  it("holds an object until its last finalizer is gone", async () => {
    const { kube } = world();
    const name = "pv-1";
    await kube.create(
      resources.persistentVolumes,
      {
        metadata: { name },
        spec: {
          capacity: { storage: "1Gi" },
          accessModes: ["ReadWriteOnce"],
          awsElasticBlockStore: { volumeID: "vol-1" },
        },
      },
      { signal },
    );
    expect(await kube.delete(resources.persistentVolumes, { name }, { signal })).toBe(true);
    const held = await kube.get(resources.persistentVolumes, { name }, { signal });
    expect(held?.metadata.deletionTimestamp).toBe("2026-01-01T00:00:00Z");
    expect(held?.metadata.finalizers).toEqual(["kubernetes.io/pv-protection"]);
    await kube.patch(
      resources.persistentVolumes,
      { name },
      { type: "merge", body: { metadata: { finalizers: null } } },
      { signal },
    );
    expect(await kube.get(resources.persistentVolumes, { name }, { signal })).toBeUndefined();
    expect(await kube.delete(resources.persistentVolumes, { name }, { signal })).toBe(false);
  });

  it("binds a pod, and gives it time to end", async () => {
    const { kube } = world();
    await kube.create(resources.pods, aPod("a"), { signal });
    const ref = { namespace: "default", name: "a" };
    const binding = { target: { kind: "Node", name: "node-1" } };
    await kube.createSubresource(resources.pods, ref, "binding", binding as never, { signal });
    const bound = await kube.get(resources.pods, ref, { signal });
    expect(bound?.spec?.nodeName).toBe("node-1");
    await kube.createSubresource(resources.pods, ref, "eviction", { metadata: { name: "a" } }, { signal });
    const going = await kube.get(resources.pods, ref, { signal });
    expect(going?.metadata).toMatchObject({
      deletionTimestamp: "2026-01-01T00:00:30Z",
      deletionGracePeriodSeconds: 30,
    });
    await kube.delete(resources.pods, ref, { signal, gracePeriodSeconds: 0 });
    expect(await kube.get(resources.pods, ref, { signal })).toBeUndefined();
  });

  it("changes the status only through its sub-resource", async () => {
    const { kube } = world();
    const made = await kube.create(resources.pods, aPod("a"), { signal });
    await kube.update(resources.pods, { ...made, status: { phase: "Running" } }, { signal });
    const ref = { namespace: "default", name: "a" };
    expect((await kube.get(resources.pods, ref, { signal }))?.status?.phase).toBe("Pending");
    await kube.updateStatus(resources.pods, { ...made, status: { phase: "Running" } }, { signal });
    expect((await kube.get(resources.pods, ref, { signal }))?.status?.phase).toBe("Running");
  });

  it("sends a watch the changes after the version it names", async () => {
    const { kube, server } = world();
    await kube.create(resources.pods, aPod("a"), { signal });
    const { resourceVersion } = await kube.list(resources.pods, { signal });
    const seen: string[] = [];
    const watching = (async () => {
      const events = kube.watch(resources.pods, { signal, resourceVersion, labelSelector: "app=web" });
      for await (const event of events) {
        if (event.type !== "BOOKMARK") seen.push(`${event.type} ${event.object.metadata.name}`);
      }
    })();
    const b = await kube.create(resources.pods, aPod("b"), { signal });
    await kube.update(resources.pods, { ...b, metadata: { ...b.metadata, labels: {} } }, { signal });
    await kube.delete(resources.pods, { namespace: "default", name: "a" }, { signal });
    await server.stop();
    await watching;
    // A pod that goes at once is marked first.
    expect(seen).toEqual(["ADDED b", "DELETED b", "MODIFIED a", "DELETED a"]);
  });

  it("says so when a version is no longer known", async () => {
    const { kube, server } = world();
    await kube.create(resources.pods, aPod("a"), { signal });
    server.registry.context.store.compact(server.registry.context.store.revision);
    const watch = kube.watch(resources.pods, { signal, resourceVersion: "1" })[Symbol.asyncIterator]();
    await expect(watch.next()).rejects.toSatisfy(isExpired);
  });

  it("pages a list as it was when the first page was given", async () => {
    const { kube } = world();
    for (const name of ["a", "b", "c"]) await kube.create(resources.pods, aPod(name), { signal });
    const first = await kube.list(resources.pods, { signal, limit: 2 });
    await kube.delete(resources.pods, { namespace: "default", name: "c" }, { signal });
    await kube.create(resources.pods, aPod("d"), { signal });
    const second = await kube.list(resources.pods, { signal, limit: 2, continue: first.continue ?? "" });
    expect([...first.items, ...second.items].map((p) => p.metadata.name)).toEqual(["a", "b", "c"]);
    expect(second.resourceVersion).toBe(first.resourceVersion);
  });

  it("makes objects only in namespaces that exist", async () => {
    const { kube } = world();
    const pod = { ...aPod("a"), metadata: { name: "a", namespace: "nowhere" } };
    await expect(kube.create(resources.pods, pod, { signal })).rejects.toSatisfy(isNotFound);
  });
});
