/**
 * The contract of every KubeClient, for any server: run against the embedded API server in process
 * and over HTTPS, and against a real one. Uses only objects that it creates.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type ConfigMap,
  isAlreadyExists,
  isConflict,
  isInvalid,
  isNotFound,
  type KubeClient,
  type KubeObject,
  type PersistentVolume,
  type Resource,
  resources,
  type WatchEvent,
} from "../index.ts";

/** A client to test, and the way to end what was started for it. */
export interface ClientUnderTest {
  readonly client: KubeClient;
  close(): Promise<void>;
}

const signal = new AbortController().signal;
const namespace = "default";

function aConfigMap(name: string, data: Record<string, string>, labels?: Record<string, string>): ConfigMap {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace, ...(labels === undefined ? {} : { labels }) },
    data,
  };
}

function aVolume(name: string): PersistentVolume {
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Retain",
      awsElasticBlockStore: { volumeID: "vol-1" },
    },
  };
}

/** Registers the suite under `name`. */
export function kubeClientContract(name: string, open: () => Promise<ClientUnderTest>): void {
  describe(`KubeClient contract: ${name}`, () => {
    let under: ClientUnderTest;
    let kube: KubeClient;
    const run = randomUUID().slice(0, 8);
    let count = 0;
    const unique = () => `contract-${run}-${++count}`;

    beforeAll(async () => {
      under = await open();
      kube = under.client;
    });
    afterAll(async () => {
      await under?.close();
    });

    it("creates, reads, updates and deletes", async () => {
      const ref = { name: unique(), namespace };
      const created = await kube.create(resources.configMaps, aConfigMap(ref.name, { a: "1" }), { signal });
      expect(created.metadata.uid).not.toBe("");
      expect(created.metadata.resourceVersion).toMatch(/^[0-9]+$/);
      const read = await kube.get(resources.configMaps, ref, { signal });
      expect(read).toMatchObject({ apiVersion: "v1", kind: "ConfigMap", data: { a: "1" } });
      const updated = await kube.update(resources.configMaps, { ...created, data: { a: "2" } }, { signal });
      expect(updated.data).toEqual({ a: "2" });
      expect(updated.metadata.resourceVersion).not.toBe(created.metadata.resourceVersion);
      expect(await kube.delete(resources.configMaps, ref, { signal })).toBe(true);
      expect(await kube.delete(resources.configMaps, ref, { signal })).toBe(false);
      expect(await kube.get(resources.configMaps, ref, { signal })).toBeUndefined();
    });

    it("distinguishes failures", async () => {
      const name = unique();
      const created = await kube.create(resources.configMaps, aConfigMap(name, {}), { signal });
      const again = kube.create(resources.configMaps, aConfigMap(name, {}), { signal });
      expect(isAlreadyExists(await again.catch((error: unknown) => error))).toBe(true);
      await kube.update(resources.configMaps, { ...created, data: { a: "1" } }, { signal });
      const stale = kube.update(resources.configMaps, { ...created, data: { a: "2" } }, { signal });
      expect(isConflict(await stale.catch((error: unknown) => error))).toBe(true);
      const invalid = kube.create(resources.configMaps, aConfigMap("Not_A_Name", {}), { signal });
      expect(isInvalid(await invalid.catch((error: unknown) => error))).toBe(true);
      const missing = kube.update(
        resources.configMaps,
        { ...created, metadata: { name: unique(), namespace } },
        { signal },
      );
      const failure = await missing.catch((error: unknown) => error);
      expect(isNotFound(failure) || isConflict(failure)).toBe(true);
      const wrongUid = kube.delete(resources.configMaps, { name, namespace }, { signal, uid: randomUUID() });
      expect(isConflict(await wrongUid.catch((error: unknown) => error))).toBe(true);
    });

    it("lists in pages, with kinds, by labels and by name", async () => {
      const label = unique();
      const names = Array.from({ length: 5 }, () => unique());
      for (const name of names) {
        await kube.create(resources.configMaps, aConfigMap(name, {}, { run: label }), { signal });
      }
      const seen: string[] = [];
      let token: string | undefined;
      do {
        const page = await kube.list(resources.configMaps, {
          signal,
          namespace,
          labelSelector: `run=${label}`,
          limit: 2,
          ...(token === undefined ? {} : { continue: token }),
        });
        expect(page.items.length).toBeLessThanOrEqual(2);
        for (const item of page.items) {
          expect(item).toMatchObject({ apiVersion: "v1", kind: "ConfigMap" });
          seen.push(item.metadata.name);
        }
        token = page.continue;
      } while (token !== undefined);
      expect(seen.sort()).toEqual(names.sort());
      const byName = await kube.list(resources.configMaps, {
        signal,
        fieldSelector: `metadata.name=${names[0]}`,
      });
      expect(byName.items.map((item) => item.metadata.name)).toEqual([names[0]]);
    });

    it("patches in every form", async () => {
      const ref = { name: unique(), namespace };
      await kube.create(resources.configMaps, aConfigMap(ref.name, { a: "1", b: "1" }), { signal });
      const merged = await kube.patch(
        resources.configMaps,
        ref,
        { type: "merge", body: { data: { a: null, c: "1" } } },
        { signal },
      );
      expect(merged.data).toEqual({ b: "1", c: "1" });
      const json = await kube.patch(
        resources.configMaps,
        ref,
        { type: "json", body: [{ op: "replace", path: "/data/b", value: "2" }] },
        { signal },
      );
      expect(json.data).toEqual({ b: "2", c: "1" });
      const strategic = await kube.patch(
        resources.configMaps,
        ref,
        { type: "strategic", body: { metadata: { labels: { x: "y" } } } },
        { signal },
      );
      expect(strategic.metadata.labels).toEqual({ x: "y" });
      const missing = kube.patch(
        resources.configMaps,
        { name: unique(), namespace },
        { type: "merge", body: {} },
        { signal },
      );
      expect(isNotFound(await missing.catch((error: unknown) => error))).toBe(true);
    });

    it("applies, reports conflicts with other managers, and overrules them when forced", async () => {
      const ref = { name: unique(), namespace };
      const apply = (value: string, fieldManager: string, force?: boolean) => {
        const body = { ...aConfigMap(ref.name, { a: value }) };
        const options = { fieldManager, ...(force === undefined ? {} : { force }) };
        return kube.patch(resources.configMaps, ref, { type: "apply", body, ...options }, { signal });
      };
      expect((await apply("1", "one")).data).toEqual({ a: "1" });
      expect(isConflict(await apply("2", "two").catch((error: unknown) => error))).toBe(true);
      expect((await apply("2", "two", true)).data).toEqual({ a: "2" });
    });

    it("keeps spec and status apart", async () => {
      const created = await kube.create(resources.persistentVolumes, aVolume(unique()), { signal });
      const withStatus = await kube.updateStatus(
        resources.persistentVolumes,
        {
          ...created,
          spec: { ...created.spec, persistentVolumeReclaimPolicy: "Delete" },
          status: { phase: "Released", reason: "Contract" },
        },
        { signal },
      );
      expect(withStatus.status?.reason).toBe("Contract");
      expect(withStatus.spec?.persistentVolumeReclaimPolicy).toBe("Retain");
      await kube.delete(resources.persistentVolumes, { name: created.metadata.name }, { signal });
    });

    it("keeps an object with a finalizer until the finalizer is gone", async () => {
      const ref = { name: unique(), namespace };
      const object = aConfigMap(ref.name, {});
      await kube.create(
        resources.configMaps,
        { ...object, metadata: { ...object.metadata, finalizers: ["longshore.dev/contract"] } },
        { signal },
      );
      expect(await kube.delete(resources.configMaps, ref, { signal })).toBe(true);
      const deleting = await kube.get(resources.configMaps, ref, { signal });
      if (deleting === undefined) throw new Error("gone in spite of its finalizer");
      expect(deleting.metadata.deletionTimestamp).toBeDefined();
      const { finalizers: _, ...metadata } = deleting.metadata;
      await kube.update(resources.configMaps, { ...deleting, metadata }, { signal });
      expect(await kube.get(resources.configMaps, ref, { signal })).toBeUndefined();
    });

    it("watches what happens after a version, in order, and ends when aborted", async () => {
      const label = unique();
      const name = unique();
      const labels = { run: label };
      const selection = { namespace, labelSelector: `run=${label}` };
      const { resourceVersion } = await kube.list(resources.configMaps, { signal, ...selection });
      const stop = new AbortController();
      const events: WatchEvent<ConfigMap>[] = [];
      const watching = (async () => {
        for await (const event of kube.watch(resources.configMaps, {
          signal: stop.signal,
          ...selection,
          resourceVersion,
        })) {
          if (event.type !== "BOOKMARK") events.push(event);
          if (event.type === "DELETED") stop.abort(new Error("enough"));
        }
      })().then(
        () => "ended in good order",
        (error: unknown) => error,
      );
      const created = await kube.create(
        resources.configMaps,
        aConfigMap(name, { text: "größer €𝄞\n" }, labels),
        {
          signal,
        },
      );
      await kube.update(
        resources.configMaps,
        { ...created, data: { text: "\u2028ü".repeat(2000) } },
        { signal },
      );
      await kube.delete(resources.configMaps, { name, namespace }, { signal });
      expect(await watching).toBe(stop.signal.reason);
      expect(events.map((event) => event.type)).toEqual(["ADDED", "MODIFIED", "DELETED"]);
      const texts = events.map((event) => ("object" in event ? event.object.data?.text : undefined));
      expect(texts[0]).toBe("größer €𝄞\n");
      expect(texts[1]).toBe("\u2028ü".repeat(2000));
      for (const event of events) {
        if ("object" in event) expect(event.object).toMatchObject({ apiVersion: "v1", kind: "ConfigMap" });
      }
    });

    it("ends a watch in good order after its time", async () => {
      const { resourceVersion } = await kube.list(resources.configMaps, { signal, namespace });
      const started = performance.now();
      for await (const _ of kube.watch(resources.configMaps, {
        signal,
        namespace,
        resourceVersion,
        labelSelector: `run=${unique()}`,
        timeoutSeconds: 1,
      })) {
        // Bookmarks only.
      }
      expect(performance.now() - started).toBeLessThan(10_000);
    });

    it("lets the reader of a watch leave early", async () => {
      const name = unique();
      await kube.create(resources.configMaps, aConfigMap(name, {}), { signal });
      for await (const event of kube.watch(resources.configMaps, {
        signal,
        namespace,
        fieldSelector: `metadata.name=${name}`,
      })) {
        expect(event.type).toBe("ADDED");
        break;
      }
    });

    it("gives only the metadata where that is all that is wanted", async () => {
      const name = unique();
      const labels = { run: name };
      await kube.create(resources.configMaps, aConfigMap(name, { a: "1" }, labels), { signal });
      const selection = { signal, namespace, labelSelector: `run=${name}`, metadataOnly: true };
      const { items } = await kube.list(resources.configMaps, selection);
      expect(items).toHaveLength(1);
      expect(items[0]).toMatchObject({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels } });
      expect(items[0]).not.toHaveProperty("data");
      for await (const event of kube.watch(resources.configMaps, selection)) {
        if (event.type === "BOOKMARK") continue;
        expect(event.object).toMatchObject({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });
        expect(event.object).not.toHaveProperty("data");
        break;
      }
    });

    it("begins a watch with the state, or refuses to", async () => {
      const names = [unique(), unique()];
      const labels = { run: names[0] ?? "" };
      for (const name of names) {
        await kube.create(resources.configMaps, aConfigMap(name, {}, labels), { signal });
      }
      const seen: string[] = [];
      const watching = (async () => {
        for await (const event of kube.watch(resources.configMaps, {
          signal,
          namespace,
          labelSelector: `run=${labels.run}`,
          sendInitialEvents: true,
        })) {
          if (event.type !== "BOOKMARK") seen.push(event.object.metadata.name);
          else if (event.initialEventsEnd === true) return "complete";
        }
        return "ended";
      })().catch((error: unknown) => error);
      const outcome = await watching;
      if (outcome === "complete") expect(seen.sort()).toEqual(names.sort());
      else expect(isInvalid(outcome)).toBe(true); // A server from before watch-list.
    });

    it("rejects with the reason of an aborted signal", async () => {
      const reason = new Error("not now");
      const aborted = AbortSignal.abort(reason);
      await expect(kube.list(resources.configMaps, { signal: aborted, namespace })).rejects.toBe(reason);
      await expect(
        kube.get(resources.configMaps, { name: "a", namespace }, { signal: aborted }),
      ).rejects.toBe(reason);
    });

    it("knows which versions are served", async () => {
      expect(await kube.servedVersion(resources.pods, { signal })).toBe("v1");
      const budgets = await kube.servedVersion(resources.podDisruptionBudgets, { signal });
      expect(["v1", "v1beta1"]).toContain(budgets);
      const unknown: Resource<KubeObject> = {
        group: "longshore.dev",
        versions: ["v1"],
        kind: "Nothing",
        plural: "nothings",
        namespaced: false,
      };
      expect(await kube.servedVersion(unknown, { signal })).toBeUndefined();
    });
  });
}
