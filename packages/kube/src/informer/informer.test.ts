import { SeededRandom } from "@longshore/runtime";
import { virtualEnv } from "@longshore/testing/kube";
import { expect, test } from "vitest";
import type { ConfigMap } from "../api-types.ts";
import { KubeApiError, type KubeClient, KubeTransportError } from "../kube-client.ts";
import { resources } from "../resources.ts";
import { AdversarialServer } from "../testing/adversarial-server.ts";
import { startInformer } from "./informer.ts";

const aConfigMap = (name: string, data: Record<string, string> = {}): ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "default" },
  data,
});

test("a deletion in a gap is reported as a tombstone with the last known object", async () => {
  const env = virtualEnv();
  const server = new AdversarialServer(env.clock, new SeededRandom(1));
  server.write("a", "1");
  const informer = startInformer({ ...env, kube: server.client() }, resources.configMaps);
  const calls: unknown[] = [];
  informer.onChange({ deleted: (object, how) => calls.push([object.data?.value, how.tombstone]) });
  await env.clock.advance(1000);
  const snapshot = server.snapshot();
  server.write("b", "1");
  await env.clock.advance(1000);
  server.restore({ ...snapshot, objects: new Map() });
  await env.clock.advance(10 * 60_000);
  expect(calls).toEqual([
    ["1", true],
    ["1", true],
  ]);
  expect(informer.list()).toEqual([]);
  await informer.stop();
});

test("a server that never answers is asked again, with growing pauses, and never twice at once", async () => {
  const env = virtualEnv();
  let lists = 0;
  const kube = {
    list: async () => {
      lists++;
      throw new KubeTransportError("connection refused");
    },
  } as unknown as KubeClient;
  const informer = startInformer({ ...env, kube }, resources.configMaps);
  await env.clock.advance(30 * 60_000);
  expect(informer.hasSynced()).toBe(false);
  // Thirty times in the first minute, and every 30 to 45 seconds in the end.
  expect(lists).toBeGreaterThan(65);
  expect(lists).toBeLessThan(105);
  await informer.stop();
  const before = lists;
  await env.clock.advance(30 * 60_000);
  expect(lists).toBe(before);
});

test("a server that is back, and has forgotten where we were, is not left waiting for its absence", async () => {
  const env = virtualEnv();
  let isAway = true;
  let watches = 0;
  const answer = () => {
    if (isAway) throw new KubeTransportError("the connection broke");
  };
  const kube = {
    async list() {
      answer();
      return { items: [], resourceVersion: "9", continue: undefined };
    },
    async *watch() {
      answer();
      if (++watches === 1) return;
      if (watches === 2) {
        throw new KubeApiError({
          kind: "Status",
          apiVersion: "v1",
          status: "Failure",
          code: 410,
          reason: "Expired",
        });
      }
      await new Promise<never>(() => {});
    },
  } as unknown as KubeClient;
  const informer = startInformer({ ...env, kube }, resources.configMaps);
  isAway = false;
  await env.clock.advance(0);
  isAway = true;
  await env.clock.advance(20_000);
  isAway = false;
  await env.clock.advance(3_000); // Two for the next attempt, and less than one for the answer that all has expired.
  expect(watches).toBe(3);
  await informer.stop();
});

test("an object created again under its name in a gap is reported as deleted and added", async () => {
  const env = virtualEnv();
  const server = new AdversarialServer(env.clock, new SeededRandom(1));
  server.write("a", "old");
  const before = server.snapshot();
  server.delete("a");
  server.write("a", "new");
  const informer = startInformer({ ...env, kube: server.client() }, resources.configMaps);
  const calls: string[] = [];
  informer.onChange({
    added: (object) => calls.push(`added ${object.data?.value}`),
    updated: () => calls.push("updated"),
    deleted: (object, { tombstone }) => calls.push(`deleted ${object.data?.value} ${tombstone}`),
  });
  await env.clock.advance(1000);
  server.restore(before);
  await env.clock.advance(10 * 60_000);
  expect(calls).toEqual(["added new", "deleted new true", "added old"]);
  await informer.stop();
});

test("an event that is older than what was seen is a repetition and changes nothing", async () => {
  const env = virtualEnv();
  const version = (resourceVersion: string) => ({
    ...aConfigMap("a", { version: resourceVersion }),
    metadata: { name: "a", namespace: "default", uid: "u", resourceVersion },
  });
  const never = new Promise<never>(() => {});
  const kube = {
    list: async () => ({ items: [], resourceVersion: "9", continue: undefined }),
    async *watch() {
      yield { type: "ADDED", object: version("10") };
      yield { type: "MODIFIED", object: version("100") };
      yield { type: "MODIFIED", object: version("10") };
      yield { type: "DELETED", object: version("11") };
      await never;
    },
  } as unknown as KubeClient;
  const informer = startInformer({ ...env, kube }, resources.configMaps);
  await env.clock.advance(1000);
  expect(informer.get("default/a")?.data).toEqual({ version: "100" });
  await informer.stop();
});
