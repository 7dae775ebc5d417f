import { createApiServer, memoryStore } from "@longshore/apiserver";
import { isConflict, type PersistentVolume, resources, updateWithRetry } from "@longshore/kube";
import { virtualEnv } from "@longshore/testing/kube";
import { expect, test } from "vitest";

const signal = new AbortController().signal;
const ref = { name: "pv" };
const volume: PersistentVolume = {
  metadata: ref,
  spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/x" } },
};

async function world() {
  const kube = createApiServer(virtualEnv(), { store: memoryStore() }).client();
  await kube.create(resources.persistentVolumes, volume, { signal });
  /** Another client, which always writes first. */
  const interfere = async (value: string) => {
    await kube.patch(
      resources.persistentVolumes,
      ref,
      { type: "merge", body: { metadata: { labels: { [`other-${value}`]: "x" } } } },
      { signal },
    );
  };
  return { kube, interfere };
}

const labelled = (pv: PersistentVolume): PersistentVolume => ({
  ...pv,
  metadata: { ...pv.metadata, labels: { ...pv.metadata?.labels, ours: "y" } },
});

test("a lost race is run again on what is there now", async () => {
  const { kube, interfere } = await world();
  let passes = 0;
  const racing = new Proxy(kube, {
    get(target, name) {
      const method = (Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>).bind(target);
      if (name !== "update") return method;
      return async (...args: unknown[]) => {
        if (++passes <= 2) await interfere(String(passes));
        return await method(...args);
      };
    },
  });
  const stored = await updateWithRetry(racing, resources.persistentVolumes, ref, labelled, { signal });
  expect(stored?.metadata.labels).toEqual({ "other-1": "x", "other-2": "x", ours: "y" });
  expect(passes).toBe(3);
});

test("the conflict is thrown once the attempts are used up", async () => {
  const { kube, interfere } = await world();
  let count = 0;
  const racing = new Proxy(kube, {
    get(target, name) {
      const method = (Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>).bind(target);
      if (name !== "update") return method;
      return async (...args: unknown[]) => {
        await interfere(String(++count));
        return await method(...args);
      };
    },
  });
  const failure = await updateWithRetry(racing, resources.persistentVolumes, ref, labelled, {
    signal,
    attemptsMax: 3,
  }).catch((error: unknown) => error);
  expect(isConflict(failure)).toBe(true);
  expect(count).toBe(3);
});

test("nothing to do, and nothing there, write nothing", async () => {
  const { kube } = await world();
  const before = await kube.get(resources.persistentVolumes, ref, { signal });
  const same = await updateWithRetry(kube, resources.persistentVolumes, ref, () => undefined, { signal });
  expect(same?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
  const missing = await updateWithRetry(kube, resources.persistentVolumes, { name: "none" }, labelled, {
    signal,
  });
  expect(missing).toBeUndefined();
});

test("status is written apart", async () => {
  const { kube } = await world();
  const stored = await updateWithRetry(
    kube,
    resources.persistentVolumes,
    ref,
    (pv) => ({ ...labelled(pv), status: { phase: "Failed", reason: "Test" } }),
    { signal, subresource: "status" },
  );
  expect(stored?.status?.reason).toBe("Test");
  expect(stored?.spec).toEqual((await kube.get(resources.persistentVolumes, ref, { signal }))?.spec);
});
