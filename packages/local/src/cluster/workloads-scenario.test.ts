/** Deployments, StatefulSets, DaemonSets and Jobs on the cluster in one process, on the virtual clock, with no more rights than its components have. */
import {
  type KubeClient,
  type KubeObject,
  type Pod,
  type Resource,
  resources,
  type Stored,
} from "@longshore/kube";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
// Tests stand outside the floors.
import { type AccessLog, watchedClient } from "@longshore/testing/deployment";
import { afterEach, expect, it } from "vitest";
import type { Program } from "../containers/program-pod-runtime.ts";
import { clusterConfig } from "../layout/cluster-config.ts";
import { createInProcessCluster, type InProcessCluster } from "./in-process-cluster.ts";

const signal = new AbortController().signal;
const namespace = "default";

/**
 * A node's second write about a pod that is gone, whose name a pod of another node has by now: its rights to the name ended with
 * its pod, and the precondition on the UID is looked at later.
 */
const lateWrite = /can only (delete pods|update pod status for pods) with spec\.nodeName set to itself$/;

class World {
  readonly clock = new VirtualClock();
  readonly log: AccessLog = { asked: new Set(), refused: [] };
  /** Ends of the program `flaky`, the first run first. */
  readonly exitCodes: number[] = [];
  readonly starts: number[] = [];
  #cluster: InProcessCluster | undefined;

  get kube(): KubeClient {
    if (this.#cluster === undefined) throw new Error("the cluster has not started");
    return this.#cluster.kube;
  }

  async run(nodes: number, work: () => Promise<void>): Promise<void> {
    const { clock, log } = this;
    const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
    const serve: Program = async ({ signal: ended }) => {
      await clock.sleep(86_400_000, ended);
      return 0;
    };
    const flaky: Program = async ({ signal: ended }) => {
      this.starts.push(clock.monotonicMs());
      await clock.sleep(2000, ended);
      return this.exitCodes.shift() ?? 0;
    };
    await clock.run(
      (async () => {
        this.#cluster = await createInProcessCluster(env, {
          config: clusterConfig(nodes, "unprivileged"),
          programs: () => ({ serve, flaky }),
          isolate: (_, seams) => ({ ...seams, kube: watchedClient(seams.kube, log) }),
        });
        await work();
        await this.#cluster.stop();
      })(),
    );
    expect(log.refused.filter((message) => !lateWrite.test(message))).toEqual([]);
  }

  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const untilMs = this.clock.monotonicMs() + 20 * 60_000;
    while (!(await holds())) {
      if (this.clock.monotonicMs() > untilMs) throw new Error(`not within 20 min: ${what}`);
      await this.clock.sleep(100, signal);
    }
  }

  create<T extends KubeObject>(resource: Resource<T>, object: T): Promise<Stored<T>> {
    return this.kube.create(resource, object, { signal });
  }

  get<T extends KubeObject>(resource: Resource<T>, name: string): Promise<Stored<T> | undefined> {
    return this.kube.get(resource, { name, namespace }, { signal });
  }

  patch<T extends KubeObject>(resource: Resource<T>, name: string, body: object): Promise<Stored<T>> {
    return this.kube.patch(resource, { name, namespace }, { type: "merge", body }, { signal });
  }

  async pods(app: string): Promise<readonly Stored<Pod>[]> {
    const { items } = await this.kube.list(resources.pods, {
      namespace,
      labelSelector: `app=${app}`,
      signal,
    });
    return items.filter((pod) => pod.metadata.deletionTimestamp === undefined);
  }
}

const templateOf = (app: string, command: readonly string[], more: object = {}) => ({
  metadata: { labels: { app } },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [{ name: "main", image: "none", command: [...command] }],
    ...more,
  },
});

let world = new World();
afterEach(() => {
  world = new World();
});

it("a Deployment rolls out, keeps what it promises meanwhile, and is rolled back", async () => {
  await world.run(2, async () => {
    const { deployments, replicaSets, pods } = resources;
    await world.create(deployments, {
      metadata: { name: "web", namespace },
      spec: {
        replicas: 4,
        selector: { matchLabels: { app: "web" } },
        strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } },
        template: templateOf("web", ["serve", "1"]),
      },
    });
    const isRolledOut = async () => {
      const found = await world.get(deployments, "web");
      const { status } = found ?? {};
      return (
        status?.observedGeneration === found?.metadata.generation &&
        status?.updatedReplicas === 4 &&
        status.replicas === 4 &&
        status.availableReplicas === 4
      );
    };
    await world.until("the first rollout", isRolledOut);
    const first = (await world.pods("web")).map(({ metadata }) => metadata.name);
    expect(first).toHaveLength(4);

    // An own pod of the same labels is left to its owner; a pod that nothing owns is adopted and is one too many.
    const setsThen = (await world.kube.list(replicaSets, { namespace, signal })).items;
    expect(setsThen).toHaveLength(1);
    const hash = setsThen[0]?.metadata.labels?.["pod-template-hash"] ?? "";
    await world.create(pods, {
      metadata: { name: "orphan", namespace, labels: { app: "web", "pod-template-hash": hash } },
      spec: { containers: [{ name: "main", image: "none", command: ["serve"] }] },
    });
    await world.until("four again", async () => (await world.pods("web")).length === 4);

    await world.patch(deployments, "web", { spec: { template: templateOf("web", ["serve", "2"]) } });
    const seen: { readonly all: number; readonly ready: number }[] = [];
    await world.until("the second rollout", async () => {
      const now = await world.pods("web");
      const ready = now.filter(({ status }) =>
        status?.conditions?.some((c) => c.type === "Ready" && c.status === "True"),
      );
      seen.push({ all: now.length, ready: ready.length });
      return isRolledOut();
    });
    expect(Math.max(...seen.map(({ all }) => all))).toBeLessThanOrEqual(5);
    expect(Math.min(...seen.map(({ ready }) => ready))).toBeGreaterThanOrEqual(3);
    const revisions = async () =>
      (await world.kube.list(replicaSets, { namespace, signal })).items
        .map(({ metadata, spec }) => [
          metadata.annotations?.["deployment.kubernetes.io/revision"],
          spec?.replicas,
        ])
        .sort();
    expect(await revisions()).toEqual([
      ["1", 0],
      ["2", 4],
    ]);

    // As `kubectl rollout undo` does it.
    await world.patch(deployments, "web", { spec: { template: templateOf("web", ["serve", "1"]) } });
    await world.until("the way back", isRolledOut);
    expect(await revisions()).toEqual([
      ["2", 0],
      ["3", 4],
    ]);
    expect((await world.get(deployments, "web"))?.metadata.annotations).toMatchObject({
      "deployment.kubernetes.io/revision": "3",
    });

    await world.kube.delete(
      deployments,
      { name: "web", namespace },
      { propagationPolicy: "Background", signal },
    );
    await world.until("everything is gone", async () => {
      const sets = (await world.kube.list(replicaSets, { namespace, signal })).items;
      return sets.length === 0 && (await world.pods("web")).length === 0;
    });
  });
});

it("with Recreate no old pod is there when a new one is made", async () => {
  await world.run(1, async () => {
    const { deployments } = resources;
    await world.create(deployments, {
      metadata: { name: "one", namespace },
      spec: {
        replicas: 2,
        strategy: { type: "Recreate" },
        selector: { matchLabels: { app: "one" } },
        template: templateOf("one", ["serve", "1"]),
      },
    });
    const available = async () => (await world.get(deployments, "one"))?.status?.availableReplicas === 2;
    await world.until("it is there", available);
    await world.patch(deployments, "one", { spec: { template: templateOf("one", ["serve", "2"]) } });
    const versions = async () => {
      const { items } = await world.kube.list(resources.pods, {
        namespace,
        labelSelector: "app=one",
        signal,
      });
      return new Set(items.map(({ spec }) => spec?.containers[0]?.command?.[1]));
    };
    const mixed: number[] = [];
    await world.until("it is replaced", async () => {
      mixed.push((await versions()).size);
      return [...(await versions())].join() === "2" && available();
    });
    expect(Math.max(...mixed)).toBe(1);
  });
});

/** What a StatefulSet's tests look at. */
const setOf = (name: string) => ({
  async isRolledOut() {
    const found = await world.get(resources.statefulSets, name);
    const { status, metadata, spec } = found ?? {};
    const wanted = spec?.replicas ?? 0;
    return (
      status?.observedGeneration === metadata?.generation &&
      status?.currentRevision === status?.updateRevision &&
      status?.updatedReplicas === wanted &&
      status.availableReplicas === wanted
    );
  },
  /** Ordinal, argument of the command and UID of each pod that is there. */
  async pods() {
    const pods = await world.pods(name);
    return pods
      .map(({ metadata, spec }) => ({
        name: metadata.name,
        version: spec?.containers[0]?.command?.[1],
        uid: metadata.uid,
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  },
  async versions() {
    return (await this.pods()).map(({ version }) => version).join("");
  },
  roll: (version: string, strategy: object = { type: "RollingUpdate", rollingUpdate: { partition: 0 } }) =>
    world.patch(resources.statefulSets, name, {
      spec: { updateStrategy: strategy, template: templateOf(name, ["serve", version]) },
    }),
  revisions: async () =>
    (await world.kube.list(resources.controllerRevisions, { namespace, signal })).items
      .map(({ metadata, revision }) => ({ name: metadata.name, revision }))
      .sort((a, b) => a.revision - b.revision),
});
const aStatefulSet = (name: string, version: string, spec: object = {}) => ({
  metadata: { name, namespace },
  spec: {
    serviceName: name,
    replicas: 3,
    selector: { matchLabels: { app: name } },
    template: templateOf(name, ["serve", version]),
    ...spec,
  },
});

it("a StatefulSet rolls out from the highest ordinal on, by its partition, on deletion, and back", async () => {
  await world.run(2, async () => {
    const db = setOf("db");
    await world.create(resources.statefulSets, aStatefulSet("db", "1"));
    await world.until("the first rollout", db.isRolledOut);
    expect(await db.versions()).toBe("111");

    await db.roll("2", { type: "RollingUpdate", rollingUpdate: { partition: 2 } });
    await world.until("the canary", async () => (await db.versions()) === "112");
    const [first, second] = await db.revisions();
    await world.until("it is counted", async () => {
      const status = (await world.get(resources.statefulSets, "db"))?.status;
      return status?.availableReplicas === 3 && status.updatedReplicas === 1 && status.currentReplicas === 2;
    });
    expect((await world.get(resources.statefulSets, "db"))?.status).toMatchObject({
      currentRevision: first?.name,
      updateRevision: second?.name,
    });
    // Below the partition a pod comes back as it was.
    await world.kube.delete(resources.pods, { name: "db-0", namespace }, { signal });
    await world.until("it is there again", async () => (await db.versions()) === "112");

    await db.roll("2");
    const seen = new Set<string>();
    await world.until("the whole rollout", async () => {
      seen.add(await db.versions());
      return db.isRolledOut();
    });
    // One pod is missing at a time, and the highest goes first.
    expect([...seen].filter((versions) => versions.length < 2)).toEqual([]);
    expect([...seen]).not.toContain("212");
    expect(await db.versions()).toBe("222");

    await db.roll("3", { type: "OnDelete", rollingUpdate: null });
    await world.clock.sleep(60_000, signal);
    expect(await db.versions()).toBe("222");
    await world.kube.delete(resources.pods, { name: "db-1", namespace }, { signal });
    await world.until("what was deleted is new", async () => (await db.versions()) === "232");

    // As `kubectl rollout undo` does it: the revision is the last one again.
    await db.roll("1");
    await world.until("the way back", db.isRolledOut);
    expect(await db.versions()).toBe("111");
    expect((await db.revisions()).at(-1)).toEqual({ name: first?.name, revision: 4 });
  });
});

it("a StatefulSet in order is stuck on a template whose pods never are ready, until its pod is deleted", async () => {
  await world.run(1, async () => {
    const stuck = setOf("stuck");
    await world.create(resources.statefulSets, aStatefulSet("stuck", "1", { replicas: 2 }));
    await world.until("the first rollout", stuck.isRolledOut);
    const broken = templateOf("stuck", ["absent", "2"]);
    await world.patch(resources.statefulSets, "stuck", { spec: { template: broken } });
    await world.until("the broken pod", async () => (await stuck.versions()) === "12");
    await stuck.roll("1");
    await world.clock.sleep(300_000, signal);
    expect(await stuck.versions()).toBe("12");
    await world.kube.delete(resources.pods, { name: "stuck-1", namespace }, { signal });
    await world.until("it has recovered", stuck.isRolledOut);
    expect(await stuck.versions()).toBe("11");
  });
});

it("a StatefulSet that is made again around its pods keeps them, and their revision", async () => {
  await world.run(2, async () => {
    const kept = setOf("kept");
    await world.create(resources.statefulSets, aStatefulSet("kept", "1"));
    await world.until("the first rollout", kept.isRolledOut);
    await kept.roll("2");
    await world.until("the second rollout", kept.isRolledOut);
    const before = { pods: await kept.pods(), revisions: await kept.revisions() };
    const status = (await world.get(resources.statefulSets, "kept"))?.status;

    const ref = { name: "kept", namespace };
    await world.kube.delete(resources.statefulSets, ref, { propagationPolicy: "Orphan", signal });
    await world.until(
      "it is gone",
      async () => (await world.get(resources.statefulSets, "kept")) === undefined,
    );
    const again = await world.create(
      resources.statefulSets,
      aStatefulSet("kept", "2", { podManagementPolicy: "Parallel" }),
    );
    await world.until("it has its pods", kept.isRolledOut);
    await world.clock.sleep(60_000, signal);
    expect({ pods: await kept.pods(), revisions: await kept.revisions() }).toEqual(before);
    expect((await world.get(resources.statefulSets, "kept"))?.status).toMatchObject({
      currentRevision: status?.currentRevision,
      updateRevision: status?.updateRevision,
    });
    const owners = (await world.pods("kept")).map(({ metadata }) => metadata.ownerReferences?.[0]?.uid);
    expect(new Set(owners)).toEqual(new Set([again.metadata.uid]));
  });
});

it("a DaemonSet has a pod on each node that it selects, and replaces them one by one", async () => {
  await world.run(3, async () => {
    const { daemonSets } = resources;
    await world.create(daemonSets, {
      metadata: { name: "agent", namespace },
      spec: { selector: { matchLabels: { app: "agent" } }, template: templateOf("agent", ["serve", "1"]) },
    });
    const ready = async (count: number) => {
      const found = await world.get(daemonSets, "agent");
      return (
        found?.status?.observedGeneration === found?.metadata.generation &&
        found?.status?.desiredNumberScheduled === count &&
        found.status.numberAvailable === count &&
        found.status.updatedNumberScheduled === count
      );
    };
    await world.until("three", () => ready(3));
    const nodesOf = async () => (await world.pods("agent")).map(({ spec }) => spec?.nodeName).sort();
    expect(await nodesOf()).toEqual(["node-1", "node-2", "node-3"]);

    await world.patch(daemonSets, "agent", { spec: { template: templateOf("agent", ["serve", "2"]) } });
    const fewest: number[] = [];
    await world.until("all are replaced", async () => {
      const now = await world.pods("agent");
      fewest.push(now.filter(({ status }) => status?.phase === "Running").length);
      return ready(3);
    });
    expect(Math.min(...fewest)).toBeGreaterThanOrEqual(2);
    expect((await world.pods("agent")).map(({ spec }) => spec?.containers[0]?.command?.[1])).toEqual([
      "2",
      "2",
      "2",
    ]);

    const nodeSelector = { "topology.kubernetes.io/zone": "us-east-1b" };
    await world.patch(daemonSets, "agent", { spec: { template: { spec: { nodeSelector } } } });
    await world.until("one", () => ready(1));
    await world.until("only there", async () => (await nodesOf()).join() === "node-2");
  });
});

it("a Job repeats what fails with growing pauses until enough have succeeded, and is deleted after its time", async () => {
  await world.run(1, async () => {
    const { jobs } = resources;
    world.exitCodes.push(1, 1);
    await world.create(jobs, {
      metadata: { name: "task", namespace },
      spec: {
        completions: 2,
        parallelism: 1,
        ttlSecondsAfterFinished: 60,
        template: templateOf("task", ["flaky"], { restartPolicy: "Never" }),
      },
    });
    const status = async () => (await world.get(jobs, "task"))?.status;
    await world.until("it is complete", async () => {
      const conditions = (await status())?.conditions ?? [];
      return conditions.some(({ type, status: value }) => type === "Complete" && value === "True");
    });
    expect(await status()).toMatchObject({ succeeded: 2, failed: 2, completionTime: expect.any(String) });
    const [first = 0, second = 0, third = 0] = world.starts;
    // Counted from the end of the pod, of which the API has the second in which it was.
    expect(second - first).toBeGreaterThan(11_000);
    expect(third - second).toBeGreaterThan(21_000);
    expect(world.starts).toHaveLength(4);
    await world.until("it is deleted", async () => (await world.get(jobs, "task")) === undefined);
    await world.until("with its pods", async () => (await world.pods("task")).length === 0);
  });
});

it("a Job that fails too often has failed", async () => {
  await world.run(1, async () => {
    const { jobs } = resources;
    world.exitCodes.push(1, 1, 1, 1, 1);
    await world.create(jobs, {
      metadata: { name: "bad", namespace },
      spec: { backoffLimit: 1, template: templateOf("bad", ["flaky"], { restartPolicy: "Never" }) },
    });
    await world.until("it has failed", async () => {
      const conditions = (await world.get(jobs, "bad"))?.status?.conditions ?? [];
      return conditions.some(({ type, reason }) => type === "Failed" && reason === "BackoffLimitExceeded");
    });
    expect(world.starts).toHaveLength(2);
  });
});

it("an indexed Job runs each index once", async () => {
  await world.run(2, async () => {
    const { jobs } = resources;
    await world.create(jobs, {
      metadata: { name: "all", namespace },
      spec: {
        completions: 3,
        parallelism: 2,
        completionMode: "Indexed",
        template: templateOf("all", ["flaky"], { restartPolicy: "Never" }),
      },
    });
    await world.until("it is complete", async () => (await world.get(jobs, "all"))?.status?.succeeded === 3);
    await world.until(
      "all indexes are named",
      async () => (await world.get(jobs, "all"))?.status?.completedIndexes === "0-2",
    );
    expect(world.starts).toHaveLength(3);
  });
});
