import { type ConfigMap, resources, type StatefulSet } from "@longshore/kube";
import { noMeter, type RuntimeEnv, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { createApiServer, memoryStore } from "../index.ts";

const signal = new AbortController().signal;

async function world() {
  const clock = new VirtualClock();
  const env: RuntimeEnv = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const server = createApiServer(env, { store: memoryStore() });
  await server.start();
  const kube = server.client();
  const owner = await kube.create(resources.statefulSets, aStatefulSet, { signal });
  const owned: ConfigMap = {
    metadata: {
      name: "owned",
      namespace: "default",
      ownerReferences: [
        {
          apiVersion: "apps/v1",
          kind: "StatefulSet",
          name: "web",
          uid: owner.metadata.uid,
          blockOwnerDeletion: true,
        },
      ],
    },
  };
  await kube.create(resources.configMaps, owned, { signal });
  await clock.advance(1000);
  const find = (name: string) => kube.get(resources.configMaps, { namespace: "default", name }, { signal });
  return { clock, kube, find, ref: { namespace: "default", name: "web" } };
}

const aStatefulSet: StatefulSet = {
  metadata: { name: "web", namespace: "default" },
  spec: {
    serviceName: "web",
    selector: { matchLabels: { app: "web" } },
    template: {
      metadata: { labels: { app: "web" } },
      spec: { containers: [{ name: "main", image: "img:1" }] },
    },
  },
};

describe("the server's own controllers", () => {
  it("delete what has lost its owner", async () => {
    const { clock, kube, find, ref } = await world();
    expect(await find("owned")).toBeDefined();
    await kube.delete(resources.statefulSets, ref, { signal });
    await clock.advance(1000);
    expect(await find("owned")).toBeUndefined();
  });

  it("leave orphans behind when asked to", async () => {
    const { clock, kube, find, ref } = await world();
    await kube.delete(resources.statefulSets, ref, { signal, propagationPolicy: "Orphan" });
    await clock.advance(1000);
    expect((await find("owned"))?.metadata.ownerReferences).toBeUndefined();
    expect(await kube.get(resources.statefulSets, ref, { signal })).toBeUndefined();
  });

  it("hold an owner deleted in the foreground until its own are gone", async () => {
    const { clock, kube, find, ref } = await world();
    const held = { type: "merge", body: { metadata: { finalizers: ["example.com/hold"] } } } as const;
    await kube.patch(resources.configMaps, { namespace: "default", name: "owned" }, held, { signal });
    await kube.delete(resources.statefulSets, ref, { signal, propagationPolicy: "Foreground" });
    await clock.advance(1000);
    expect((await find("owned"))?.metadata.deletionTimestamp).toBeDefined();
    expect(await kube.get(resources.statefulSets, ref, { signal })).toBeDefined();
    const free = { type: "merge", body: { metadata: { finalizers: null } } } as const;
    await kube.patch(resources.configMaps, { namespace: "default", name: "owned" }, free, { signal });
    await clock.advance(1000);
    expect(await kube.get(resources.statefulSets, ref, { signal })).toBeUndefined();
  });

  it("say what a namespace that goes still waits for, and let services go too", async () => {
    const { kube, clock } = await world();
    await kube.create(resources.namespaces, { metadata: { name: "away" } }, { signal });
    const held = { name: "held", namespace: "away", finalizers: ["example.com/f"] };
    await kube.create(resources.configMaps, { metadata: held }, { signal });
    const service = { metadata: { name: "s", namespace: "away" }, spec: { ports: [{ port: 80 }] } };
    await kube.create(resources.services, service, { signal });
    await kube.delete(resources.namespaces, { name: "away" }, { signal });
    await clock.advance(1000);
    expect(await kube.get(resources.services, { namespace: "away", name: "s" }, { signal })).toBeUndefined();
    const namespace = await kube.get(resources.namespaces, { name: "away" }, { signal });
    expect(namespace?.status?.conditions?.filter(({ status }) => status === "True")).toMatchObject([
      { message: "Some resources are remaining: configmaps. has 1 resource instances" },
      {
        message:
          "Some content in the namespace has finalizers remaining: example.com/f in 1 resource instances",
      },
    ]);
  });

  it("empty a namespace before it goes", async () => {
    const { clock, kube } = await world();
    await kube.create(resources.namespaces, { metadata: { name: "away" } }, { signal });
    await kube.create(resources.configMaps, { metadata: { name: "c", namespace: "away" } }, { signal });
    await kube.delete(resources.namespaces, { name: "away" }, { signal });
    await clock.advance(1000);
    expect(await kube.get(resources.namespaces, { name: "away" }, { signal })).toBeUndefined();
    expect((await kube.list(resources.configMaps, { signal, namespace: "away" })).items).toEqual([]);
  });
});
