import { createApiServer, memoryStore } from "@longshore/apiserver";
import {
  createEventRecorder,
  type Event,
  involvedObject,
  type KubeClient,
  KubeTransportError,
  type Pod,
  resources,
} from "@longshore/kube";
import { virtualEnv } from "@longshore/testing/kube";
import { expect, test } from "vitest";

const signal = new AbortController().signal;
const pod: Pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web-0", namespace: "default", uid: "u1", resourceVersion: "7" },
};

function world() {
  const env = virtualEnv();
  const kube = createApiServer(env, { store: memoryStore() }).client();
  const recorder = createEventRecorder({ ...env, kube }, { component: "test", host: "node-1" });
  const events = async (): Promise<readonly Event[]> => {
    await env.clock.run(recorder.flush(signal));
    return (await kube.list(resources.events, { signal })).items;
  };
  return { env, kube, recorder, events };
}

test("an event of an object with a long name has a name that the API takes", async () => {
  const { recorder, events } = world();
  // Cut to 253 characters, the name would begin with the dash.
  const name = `${"a".repeat(17)}-${"b".repeat(235)}`;
  recorder.event({ ...pod, metadata: { ...pod.metadata, name } }, "Normal", "Test", "x");
  expect((await events())[0]?.metadata?.name).toMatch(/^b{235}\.[0-9a-f]{16}$/);
});

test("an event names the object, the reporter and the time", async () => {
  const { recorder, events } = world();
  recorder.event(pod, "Warning", "FailedMount", "it does not mount");
  expect(await events()).toMatchObject([
    {
      metadata: { namespace: "default", name: expect.stringMatching(/^web-0\.[0-9a-f]{16}$/) },
      involvedObject: { apiVersion: "v1", kind: "Pod", name: "web-0", namespace: "default", uid: "u1" },
      type: "Warning",
      reason: "FailedMount",
      message: "it does not mount",
      source: { component: "test", host: "node-1" },
      count: 1,
      firstTimestamp: "2026-01-01T00:00:00Z",
      lastTimestamp: "2026-01-01T00:00:00Z",
    },
  ]);
  await recorder.stop();
});

test("what is said again raises the count of the same event, also when it was deleted meanwhile", async () => {
  const { env, kube, recorder, events } = world();
  recorder.event(pod, "Normal", "Again", "the same");
  recorder.event(pod, "Normal", "Again", "the same");
  await env.clock.advance(5000);
  recorder.event(pod, "Normal", "Again", "the same");
  const [event] = await events();
  expect(event).toMatchObject({ count: 3, lastTimestamp: "2026-01-01T00:00:05Z" });
  await kube.delete(resources.events, { name: event?.metadata.name ?? "", namespace: "default" }, { signal });
  recorder.event(pod, "Normal", "Again", "the same");
  expect(await events()).toMatchObject([{ count: 1 }]);
  await recorder.stop();
});

test("one object cannot cause more than its share, others are not touched", async () => {
  const { env, recorder, events } = world();
  for (let i = 0; i < 200; i++) recorder.event(pod, "Normal", `Reason${i}`, "spam");
  recorder.event({ kind: "Node", apiVersion: "v1", name: "node-1" }, "Normal", "Other", "heard");
  const recorded = await events();
  expect(recorded.filter((event) => event.involvedObject.kind === "Pod")).toHaveLength(25);
  expect(recorded.filter((event) => event.involvedObject.kind === "Node")).toHaveLength(1);
  await env.clock.advance(300_000);
  recorder.event(pod, "Normal", "Later", "one more");
  expect(await events()).toHaveLength(27);
  await recorder.stop();
});

test("many messages of one reason become one event", async () => {
  const { recorder, events } = world();
  for (let i = 0; i < 20; i++) recorder.event(pod, "Normal", "Busy", `attempt ${i}`);
  const recorded = await events();
  expect(recorded).toHaveLength(11);
  expect(recorded.find((event) => event.message?.startsWith("(combined"))).toMatchObject({ count: 10 });
  await recorder.stop();
});

test("an event about a cluster-scoped object is in the default namespace", async () => {
  const { recorder, events } = world();
  const reference = involvedObject(resources.persistentVolumes, { metadata: { name: "pv-1", uid: "u2" } });
  expect(reference).toEqual({ apiVersion: "v1", kind: "PersistentVolume", name: "pv-1", uid: "u2" });
  recorder.event(reference, "Normal", "Reported", "x");
  expect((await events())[0]?.metadata.namespace).toBe("default");
  await recorder.stop();
});

test("an unreachable server is tried again, one that refuses is not, and no caller waits", async () => {
  const env = virtualEnv();
  let attempts = 0;
  const kube = {
    async create() {
      attempts++;
      throw new KubeTransportError("away");
    },
  } as unknown as KubeClient;
  const recorder = createEventRecorder({ ...env, kube }, { component: "test" });
  recorder.event(pod, "Normal", "Lost", "x");
  expect(attempts).toBe(0);
  await env.clock.run(recorder.flush(signal));
  expect(attempts).toBe(6);
  recorder.event(pod, "Normal", "Lost", "y");
  await recorder.stop();
});
