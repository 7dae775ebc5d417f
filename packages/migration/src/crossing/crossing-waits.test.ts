/** Each wait of a run: its words, its report every 30 s, its limit, and what the journal says of it. */
import {
  KubeApiError,
  type KubeObject,
  KubeTransportError,
  type PodDisruptionBudget,
  type Stored,
} from "@longshore/kube";
import { SimulatedHost, VirtualClock } from "@longshore/runtime";
import { describe, expect, test } from "vitest";
import type { CrossingEvent } from "./crossing-events.ts";
import { readJournal } from "./crossing-journal.ts";
import { crossingStatusOf } from "./crossing-status.ts";
import {
  aCluster,
  cross,
  type FakeCrossing,
  journalFile,
  pod,
  subject,
  tooManyRequests,
} from "./testing/fake-cluster.ts";
import { waitWords } from "./wait.ts";

const driver = subject.driverName;
const budget = (status: object): Stored<PodDisruptionBudget> =>
  ({
    metadata: { name: "b", namespace: "d", generation: 1 },
    spec: { selector: {} },
    status: { observedGeneration: 1, disruptionsAllowed: 0, ...status },
  }) as unknown as Stored<PodDisruptionBudget>;

/** Runs into the step's limit; returns the sentence, and the reported words with their times. */
async function waits(cluster: ReturnType<typeof aCluster>, fake: FakeCrossing = {}) {
  const clock = new VirtualClock();
  const reported: string[] = [];
  const onEvent = (event: CrossingEvent) => {
    if (event.kind === "waiting")
      reported.push(`${Math.floor(clock.monotonicMs() / 1000)}: ${waitWords(event.wait)}`);
  };
  const error = await cross(cluster.kube, { ...fake, clock, onEvent }).catch((e: unknown) => e);
  return { reported, error: error as Error, clock };
}

const refusing = () => {
  throw tooManyRequests;
};
const put = (cluster: ReturnType<typeof aCluster>, plural: string, ...objects: unknown[]) => {
  cluster.cluster.objects.set(plural, objects as KubeObject[]);
  return cluster;
};
const doubleBudgets = new KubeApiError({
  kind: "Status",
  apiVersion: "v1",
  status: "Failure",
  code: 500,
  reason: "InternalError",
  message: "This pod has more than one PodDisruptionBudget",
});

describe("a run waits, and says for what", () => {
  const drained = () => aCluster((c) => void c.objects.set("pods", []), [pod]);
  const csiNode = (annotations: object = {}) => ({
    metadata: { name: "n1", annotations },
    spec: { drivers: [{ name: driver }] },
  });
  test.each<readonly [string, () => ReturnType<typeof aCluster>, FakeCrossing, string, string]>([
    [
      "a pod that a budget holds back",
      () =>
        put(
          aCluster(refusing, [pod]),
          "poddisruptionbudgets",
          budget({ currentHealthy: 1, desiredHealthy: 1, expectedPods: 2 }),
        ),
      {},
      "drain",
      "Pod d/w-0 (PodDisruptionBudget d/b: it allows no disruption: 1 of 2 pods must be healthy, 1 is)",
    ],
    [
      "a pod whose eviction is refused for another reason",
      () => aCluster(refusing, [pod]),
      {},
      "drain",
      "Pod d/w-0 (its eviction is refused: no)",
    ],
    [
      "a pod that came under a second budget",
      () => {
        const cluster = aCluster(() => {
          put(cluster, "poddisruptionbudgets", budget({}), {
            ...budget({}),
            metadata: { name: "c", namespace: "d" },
          });
          throw doubleBudgets;
        }, [pod]);
        return cluster;
      },
      {},
      "drain",
      "Pod d/w-0 (it cannot be evicted: covered by PodDisruptionBudget d/b and PodDisruptionBudget d/c)",
    ],
    ["a pod that does not end", () => aCluster(() => {}, [pod]), {}, "drain", "Pod d/w-0 (evicted, to end)"],
    [
      "a volume that stays attached",
      () => {
        const cluster = drained();
        const [node] = cluster.cluster.objects.get("nodes") ?? [];
        const volumesAttached = [{ name: "kubernetes.io/aws-ebs/vol-1", devicePath: "" }];
        const { status } = node as { status?: object };
        return put(cluster, "nodes", { ...node, status: { ...status, volumesAttached } });
      },
      {},
      "volumes gone",
      "Node n1 (kubernetes.io/aws-ebs/vol-1 attached)",
    ],
    [
      "a VolumeAttachment that fails to go",
      () =>
        put(drained(), "volumeattachments", {
          metadata: { name: "csi-1" },
          spec: { attacher: driver, nodeName: "n1", source: {} },
          status: { attached: true, detachError: { message: "busy" } },
        }),
      {},
      "volumes gone",
      "VolumeAttachment csi-1 (status.detachError: busy)",
    ],
    [
      "an agent that does not come back",
      drained,
      {
        platform: {
          setNodeGates: (_n, _v, signal) => new Promise((_, no) => signal.addEventListener("abort", no)),
        },
      },
      "flip",
      "Node n1 (to run with the feature gates CSIMigration=true,CSIMigrationAWS=true)",
    ],
    [
      "a control plane that does not come back",
      drained,
      {
        platform: {
          setControlPlaneGates: (_v, s) => new Promise((_, no) => s.addEventListener("abort", no)),
        },
      },
      "control plane on",
      "control plane (to run with the feature gates CSIMigration=true,CSIMigrationAWS=true)",
    ],
    [
      "a CSINode that does not agree",
      () => put(drained(), "csinodes", csiNode()),
      {},
      "CSINode agrees",
      "CSINode n1 (waits for the plugin in the migrated-plugins annotation)",
    ],
    [
      "an API server that is unreachable",
      () => {
        const cluster = drained();
        const { get } = cluster.kube;
        let calls = 0;
        cluster.kube.get = (...call) => {
          if (++calls > 3) throw new KubeTransportError("connection refused");
          return get(...call);
        };
        return cluster;
      },
      {},
      "",
      "API server (does not answer: connection refused)",
    ],
    [
      "marks of the driver on the way back",
      () =>
        put(drained(), "persistentvolumes", {
          metadata: { name: "pv1", annotations: { "pv.kubernetes.io/migrated-to": driver } },
          spec: { awsElasticBlockStore: { volumeID: "vol-1" } },
        }),
      { direction: "rollback", platform: { nodeGates: async () => ({ CSIMigrationAWS: false }) } },
      "objects clean",
      "PersistentVolume pv1 (still has metadata.annotations[pv.kubernetes.io/migrated-to] of the driver)",
    ],
  ])("for %s", async (_what, cluster, fake, step, words) => {
    const made = cluster();
    if (fake.direction === "rollback") put(made, "csinodes", csiNode());
    const { reported, error, clock } = await waits(made, { ...fake, stepTimeoutMs: 100_000 });
    expect(error).toMatchObject({ name: "StepTimeoutError" });
    expect(error.message).toContain(`"${step}`);
    expect(error.message).toContain(`still waits after 100 s for ${words}`);
    const times = reported.filter((line) => line.endsWith(words)).map((line) => Number(line.split(":")[0]));
    const [beganAt = 0] = times;
    expect(beganAt).toBeLessThan(4);
    expect(times.map((time) => time - beganAt)).toEqual([0, 30, 60, 90]);
    expect(clock.monotonicMs()).toBeLessThan(105_000);
  });

  test("a pod past its grace period, with the finalizers that hold it", async () => {
    const deletionTimestamp = "2026-01-01T00:00:10Z";
    const cluster = aCluster(
      (c) => {
        const [ending] = c.objects.get("pods") ?? [];
        const metadata = { ...ending?.metadata, deletionTimestamp, finalizers: ["x/y"] };
        c.objects.set("pods", [{ ...ending, metadata } as KubeObject]);
      },
      [pod],
    );
    const { reported } = await waits(cluster);
    expect(reported).toEqual([
      "0: Pod d/w-0 (evicted, to end)",
      "1: Pod d/w-0 (to end, by 2026-01-01T00:00:10Z at the latest)",
      "10: Pod d/w-0 (should have ended at 2026-01-01T00:00:10Z; metadata.finalizers still has x/y)",
      "40: Pod d/w-0 (should have ended at 2026-01-01T00:00:10Z; metadata.finalizers still has x/y)",
    ]);
  });
});

describe("the journal says how the run goes", () => {
  const by = { user: "u", host: "h", pid: 7, processStartedAt: "1" };

  test("step, wait and since when, while it runs and after it has given up", async () => {
    const host = new SimulatedHost({ name: "operator" });
    const clock = new VirtualClock();
    const seen: unknown[] = [];
    clock.timer(45_000, async () => {
      const journal = await readJournal(host, journalFile);
      if (journal !== undefined) seen.push(crossingStatusOf(journal, () => true, clock.now()));
    });
    const { kube } = aCluster(refusing, [pod]);
    await expect(cross(kube, { clock, host, by })).rejects.toThrow("still waits");
    const facts = {
      plugin: subject.inTreeName,
      direction: "migrate",
      nodesDone: [],
      by,
      step: { name: "drain", nodeName: "n1", since: "2026-01-01T00:00:00.000Z" },
      waiting: {
        since: "2026-01-01T00:00:00.000Z",
        subjects: [{ kind: "Pod", namespace: "d", name: "w-0", why: "its eviction is refused: no" }],
      },
    };
    expect(seen).toMatchObject([{ state: "running", ...facts }]);
    const journal = await readJournal(host, journalFile);
    if (journal === undefined) throw new Error("no journal");
    expect(crossingStatusOf(journal, () => true, clock.now())).toMatchObject({
      state: "interrupted",
      ...facts,
      interruption: { how: "timedOut", at: "2026-01-01T00:01:00.000Z" },
    });
  });

  test("Ctrl-C, and that a run which came to its end is finished", async () => {
    const host = new SimulatedHost({ name: "operator" });
    const clock = new VirtualClock();
    const interrupted = new AbortController();
    clock.timer(5000, () => interrupted.abort(new Error("Ctrl-C")));
    const status = async () => {
      const journal = await readJournal(host, journalFile);
      return journal && crossingStatusOf(journal, () => false, clock.now());
    };
    const { kube, cluster } = aCluster(refusing, [pod]);
    await expect(cross(kube, { clock, host, by, signal: interrupted.signal })).rejects.toThrow("Ctrl-C");
    expect(await status()).toMatchObject({ state: "interrupted", interruption: { how: "interrupted" } });
    cluster.objects.set("pods", []);
    await cross(kube, { clock, host, by: { ...by, pid: 8 } });
    expect(await status()).toMatchObject({ state: "finished", by: { pid: 8 }, nodesDone: ["n1"] });
  });

  test.each([
    ["its process is gone", { by }, false, 0, "gone"],
    ["its process runs", { by }, true, 600_000, undefined],
    ["on another host, and it has written lately", { by }, undefined, 89_000, undefined],
    ["on another host, and it is silent", { by }, undefined, 91_000, "gone"],
    ["an earlier build's journal", undefined, undefined, 0, "gone"],
  ] as const)("interrupted or not: %s", (_what, run, alive, silentForMs, how) => {
    const aliveAt = "2026-01-01T00:00:00.000Z";
    const journal = {
      version: 1,
      platform: "p",
      plugin: subject.inTreeName,
      direction: "migrate",
      startedAt: aliveAt,
      nodesDone: [],
      ...(run === undefined ? {} : { run: { ...run, startedAt: aliveAt, aliveAt } }),
    } as const;
    const status = crossingStatusOf(journal, () => alive, new Date(Date.parse(aliveAt) + silentForMs));
    expect(status.state).toBe(how === undefined ? "running" : "interrupted");
    expect(status.interruption?.how).toBe(how);
  });
});
