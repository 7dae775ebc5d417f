/**
 * The client, the informer and the leader election against the real API server: the contract that the
 * embedded one keeps too, and what only the real one shows, such as its restart.
 */
import { readFile } from "node:fs/promises";
import {
  createHttpClient,
  type HttpKubeClient,
  isExpired,
  loadKubeconfig,
  type PodDisruptionBudget,
  resources,
  startInformer,
  startLeaderElection,
} from "@longshore/kube";
import type { Host } from "@longshore/runtime";
import { realEnv } from "@longshore/testing/kube";
import { afterAll, beforeAll, expect, test } from "vitest";
import { kubeClientContract } from "../../packages/kube/src/testing/client.contract.ts";
import { type ControlPlane, eventually, startControlPlane } from "./support/index.ts";

const signal = new AbortController().signal;
let kubernetes: ControlPlane;
let kube: HttpKubeClient;

beforeAll(async () => {
  kubernetes = await startControlPlane();
  kube = await connect();
});
afterAll(async () => {
  await kube?.close();
  await kubernetes?.stop();
});

async function connect(): Promise<HttpKubeClient> {
  const host: Pick<Host, "readFile" | "runProgram"> = {
    readFile: (path) => readFile(path, "utf8"),
    runProgram: () => Promise.reject(new Error("no program is needed")),
  };
  return createHttpClient(realEnv, await loadKubeconfig(host, { path: kubernetes.kubeconfigPath }));
}

kubeClientContract("real Kubernetes", async () => {
  const client = await connect();
  return { client, close: () => client.close() };
});

test("what 1.20 serves is found: budgets and evictions in v1beta1, capacities not at all", async () => {
  expect(await kube.servedVersion(resources.podDisruptionBudgets, { signal })).toBe("v1beta1");
  expect(await kube.servedVersion(resources.csiDrivers, { signal })).toBe("v1");
  expect(await kube.servedVersion(resources.csiStorageCapacities, { signal })).toBeUndefined();
  const budget: PodDisruptionBudget = {
    metadata: { name: "web", namespace: "default" },
    spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
  };
  const stored = await kube.create(resources.podDisruptionBudgets, budget, { signal });
  expect(stored.spec?.minAvailable).toBe(1);
});

test("an informer follows the server through its restart", async () => {
  const informer = startInformer({ ...realEnv, kube }, resources.configMaps, { namespace: "default" });
  await informer.synced(signal);
  const write = (name: string) =>
    kube.create(resources.configMaps, { metadata: { name, namespace: "default" } }, { signal });
  await write("before-restart");
  await eventually("the change is in the cache", async () => informer.get("default/before-restart"));
  await kubernetes.restartApiServer();
  await write("after-restart");
  await eventually("the change after the restart is in the cache", async () =>
    informer.get("default/after-restart"),
  );
  const { items } = await kube.list(resources.configMaps, { signal, namespace: "default" });
  expect(
    informer
      .list()
      .map((o) => o.metadata.resourceVersion)
      .sort(),
  ).toEqual(items.map((o) => o.metadata.resourceVersion).sort());
  await informer.stop();
});

test("a version from before the server's restart is expired", async () => {
  const watching = (async () => {
    for await (const _ of kube.watch(resources.configMaps, {
      signal,
      resourceVersion: "1",
      timeoutSeconds: 5,
    })) {
      // Nothing is expected.
    }
  })().catch((error: unknown) => error);
  expect(isExpired(await watching)).toBe(true);
});

test("leadership passes from one candidate to the next", async () => {
  const leaders: string[] = [];
  const candidate = (identity: string) =>
    startLeaderElection(
      { ...realEnv, kube },
      {
        name: "test",
        namespace: "default",
        identity,
        retryPeriodMs: 200,
        async lead(term) {
          leaders.push(identity);
          await new Promise((resolve) => term.addEventListener("abort", resolve, { once: true }));
        },
      },
    );
  const a = candidate("a");
  await eventually("a leads", async () => a.isLeader());
  const b = candidate("b");
  await a.stop();
  await eventually("b leads", async () => b.isLeader());
  await b.stop();
  expect(leaders).toEqual(["a", "b"]);
});
