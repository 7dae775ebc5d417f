import type {
  Informer,
  KubeClient,
  KubeObject,
  Node,
  Pod,
  Resource,
  SharedInformers,
  Stored,
} from "@longshore/kube";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { expect, it } from "vitest";
import { startScheduler } from "./scheduler.ts";

const node = {
  metadata: { name: "n1" },
  status: { conditions: [{ type: "Ready", status: "True" }] },
} as unknown as Stored<Node>;
const aPod = (uid: string) =>
  ({ metadata: { name: "w-0", namespace: "d", uid }, spec: { containers: [] } }) as unknown as Stored<Pod>;

type Handlers = { updated?: (before: unknown, after: unknown) => void };

it("schedules the next pod of a name although it was never seen that the last one was bound (controllers.md B7)", async () => {
  const clock = new VirtualClock();
  let pod = aPod("first");
  const podHandlers: Handlers[] = [];
  const updated = (before: unknown, after: unknown) => {
    for (const handlers of podHandlers) handlers.updated?.(before, after);
  };
  const bound: unknown[] = [];
  const cacheOf = (resource: Resource<KubeObject>) => ({
    list: () => (resource.plural === "pods" ? [pod] : resource.plural === "nodes" ? [node] : []),
    get: () => (resource.plural === "pods" ? pod : undefined),
    byIndex: () => [],
    synced: async () => {},
    onChange: (handlers: Handlers) => {
      if (resource.plural === "pods") podHandlers.push(handlers);
      return () => {};
    },
  });
  const informers = {
    of: (r: Resource<KubeObject>) => cacheOf(r) as unknown as Informer<KubeObject>,
    started: () => [],
  };
  const kube = {
    createSubresource: async (_r: unknown, _ref: unknown, _s: unknown, body: KubeObject) => {
      bound.push(body.metadata?.uid);
    },
    create: async (_r: unknown, object: unknown) => object,
    servedVersion: async () => undefined,
  } as unknown as KubeClient;
  const env = {
    clock,
    random: new SeededRandom(1),
    logger: silentLogger,
    meter: noMeter,
    kube,
    informers: informers as unknown as SharedInformers,
  };
  const scheduler = startScheduler(env, { migrates: () => false });
  const never = new AbortController().signal;
  const settle = () => clock.run(clock.sleep(1000, never));
  await settle();
  updated(pod, pod);
  await settle();
  expect(bound).toEqual(["first"]);
  updated(pod, pod); // Not seen as bound yet: not bound again.
  await settle();
  expect(bound).toEqual(["first"]);
  const before = pod;
  pod = aPod("second"); // The watch was broken while the first was bound and deleted.
  updated(before, pod);
  await settle();
  expect(bound).toEqual(["first", "second"]);
  await clock.run(scheduler.stop());
});
