import type { KubeObject, Node, PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { SimulatedHost } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { crossingSubject } from "./crossing-subject.ts";
import { listBudgets } from "./list-budgets.ts";
import { objectsCarryingMarks } from "./marks.ts";
import { orderOfCrossings } from "./order-of-crossings.ts";
import type { CrossingMark } from "./platform.ts";
import { aCluster, cross, fakePlatform, pod, subject } from "./testing/fake-cluster.ts";

const driver = subject.driverName;

describe("runCrossing", () => {
  it("flips no node while a volume may be attached there that its status does not list any more", async () => {
    const { kube, cluster } = aCluster(() => {});
    const [node] = cluster.objects.get("nodes") ?? [];
    const name = `${subject.inTreeName}/vol-1`;
    Object.assign(node?.metadata ?? {}, { annotations: { "longshore.dev/volumes-uncertain": name } });
    const flips: string[] = [];
    await expect(cross(kube, { onFlip: (flipped) => flips.push(flipped) })).rejects.toMatchObject({
      name: "StepTimeoutError",
      message: expect.stringMatching(`^"volumes gone" on node n1 .*${name} perhaps attached`),
    });
    expect(flips).toEqual([]);
  });

  // An administrator drained the node for a while during the crossing, and lifted the cordon of both: the pods came back as fast as the
  // crossing evicted them, ten times in a second.
  it("cordons a node again whose cordon was lifted while it is drained", async () => {
    let evictions = 0;
    const { kube, cluster } = aCluster(
      (c) => {
        const [node] = c.objects.get("nodes") ?? [];
        if (++evictions === 1) Object.assign(node ?? {}, { spec: {} });
        const isCordoned = (node as Stored<Node> | undefined)?.spec?.unschedulable === true;
        c.objects.set("pods", isCordoned ? [] : [pod]);
      },
      [pod],
    );
    const flips: string[] = [];
    await cross(kube, { onFlip: (node) => flips.push(node) });
    expect({ flips, evictions }).toEqual({ flips: ["n1"], evictions: 2 });
    expect(cluster.objects.get("nodes")).toMatchObject([{ spec: {}, metadata: { annotations: {} } }]);
  });

  it("asks more and more seldom for the evictions of pods that come to a cordoned node nevertheless", async () => {
    let evictions = 0;
    const { kube } = aCluster(() => void evictions++, [pod]);
    await expect(cross(kube)).rejects.toMatchObject({ name: "StepTimeoutError" });
    // In a step's minute.
    expect(evictions).toBeLessThan(20);
  });

  it("also carries a node across that joins while it runs", async () => {
    const { kube, cluster } = aCluster((c) => void c.objects.set("pods", []), [pod]);
    const flips: string[] = [];
    await cross(kube, {
      onFlip: (node) => {
        flips.push(node);
        if (node === "n1") cluster.addNode("n0");
      },
    });
    expect(flips).toEqual(["n1", "n0"]);
  });

  it("also carries a node across that is deleted at its turn, and comes back while the run goes on", async () => {
    const { kube, cluster } = aCluster(
      (c) => {
        const nodes = c.objects.get("nodes") ?? [];
        c.objects.set(
          "nodes",
          nodes.filter(({ metadata }) => metadata?.name !== "n1"),
        );
        c.objects.set("pods", []);
      },
      [pod],
    );
    cluster.addNode("n2");
    const flips: string[] = [];
    await cross(kube, {
      onFlip: (node) => {
        flips.push(node);
        if (node === "n2") cluster.addNode("n1");
      },
    });
    expect(flips).toEqual(["n2", "n1"]);
  });

  it("flips no node again that an earlier run has carried across", async () => {
    const { kube } = aCluster(() => {});
    const flips: string[] = [];
    const platform = fakePlatform((node) => void flips.push(node));
    await cross(kube, { platform });
    await cross(kube, { platform });
    expect(flips).toEqual(["n1"]);
  });

  it("marks a node once it is migrated, and before it returns", async () => {
    const { kube, cluster } = aCluster(() => {});
    const story: string[] = [];
    const platform = {
      ...fakePlatform((node) => {
        story.push(`flip ${node}`);
        const [csiNode] = cluster.objects.get("csinodes") ?? [];
        if (story.includes("nodeReturning n1")) Object.assign(csiNode?.metadata ?? {}, { annotations: {} });
      }),
      noteMark: async (mark: CrossingMark) => {
        if ("nodeName" in mark) story.push(`${mark.kind} ${mark.nodeName}`);
      },
    };
    await cross(kube, { platform });
    await cross(kube, { platform, direction: "rollback" });
    expect(story).toEqual(["flip n1", "nodeMigrated n1", "nodeReturning n1", "flip n1"]);
  });
});

describe("journals of several plugins", () => {
  const journal = (plugin: string, finishedAt?: string) =>
    JSON.stringify({
      version: 1,
      platform: "fake",
      plugin,
      direction: "migrate",
      startedAt: "2026-01-01T00:00:00Z",
      nodesDone: [],
      ...(finishedAt === undefined ? {} : { finishedAt }),
    });
  const other = "/other.json";
  const run = async (text: string) => {
    const host = new SimulatedHost({ name: "operator" });
    await host.writeFileAtomic(other, text);
    const flips: string[] = [];
    const { kube } = aCluster((c) => void c.objects.set("pods", []), [pod]);
    const onFlip = (node: string) => flips.push(node);
    const ended = await cross(kube, { host, onFlip, otherJournalFiles: [other] }).then(
      () => undefined,
      (error: unknown) => error,
    );
    return { ended, flips };
  };

  it("a crossing does not begin while another plugin's is unfinished", async () => {
    const { ended, flips } = await run(journal("kubernetes.io/gce-pd"));
    expect(ended).toMatchObject({
      name: "JournalError",
      message: `an unfinished crossing of kubernetes.io/gce-pd on fake is in ${other}: finish it or roll it back first`,
    });
    expect(flips).toEqual([]);
  });

  it("one that has come to its end is no obstacle", async () => {
    const { ended, flips } = await run(journal("kubernetes.io/gce-pd", "2026-01-02T00:00:00Z"));
    expect(ended).toBeUndefined();
    expect(flips).toEqual(["n1"]);
  });

  it("the unfinished one comes first, the others in the order that was given", async () => {
    const host = new SimulatedHost({ name: "operator" });
    const subjects = ["aws-ebs", "gce-pd", "rbd", "cinder"].map(crossingSubject);
    const fileOf = ({ shortName }: { readonly shortName: string }) => `/${shortName}.json`;
    await host.writeFileAtomic("/aws-ebs.json", journal("kubernetes.io/aws-ebs", "2026-01-02T00:00:00Z"));
    await host.writeFileAtomic("/rbd.json", journal("kubernetes.io/rbd"));
    const ordered = await orderOfCrossings(host, subjects, fileOf);
    expect(ordered.map(({ shortName }) => shortName)).toEqual(["rbd", "aws-ebs", "gce-pd", "cinder"]);
  });
});

describe("objectsCarryingMarks", () => {
  it("finds the plugin's volumes and claims, also a claim that is not bound yet", () => {
    const annotations = { "pv.kubernetes.io/migrated-to": driver };
    const volumes = [
      { metadata: { name: "pv1", annotations }, spec: { awsElasticBlockStore: { volumeID: "vol-1" } } },
      { metadata: { name: "pv2" }, spec: { awsElasticBlockStore: { volumeID: "vol-2" } } },
    ] as unknown as Stored<PersistentVolume>[];
    const finalizers = ["longshore.dev/provisioning"];
    const claims = [
      { metadata: { name: "bound", namespace: "d", finalizers }, spec: { volumeName: "pv2" } },
      {
        metadata: {
          name: "pending",
          namespace: "d",
          annotations: { "volume.kubernetes.io/migrated-to": driver, ...annotations },
        },
      },
      { metadata: { name: "other", namespace: "d", finalizers } },
    ] as unknown as Stored<PersistentVolumeClaim>[];
    expect(objectsCarryingMarks(subject, volumes, claims)).toEqual([
      {
        kind: "PersistentVolume",
        name: "pv1",
        why: "still has metadata.annotations[pv.kubernetes.io/migrated-to] of the driver",
      },
      {
        kind: "PersistentVolumeClaim",
        namespace: "d",
        name: "bound",
        why: "still has longshore.dev/provisioning of the driver",
      },
      {
        kind: "PersistentVolumeClaim",
        namespace: "d",
        name: "pending",
        why: "still has metadata.annotations[pv.kubernetes.io/migrated-to] of the driver",
      },
    ]);
  });
});

it("a budget of policy/v1beta1 with an empty selector covers nothing, one of policy/v1 everything", async () => {
  const { kube, cluster } = aCluster(() => {});
  const budgets = [{ selector: {} }, {}, { selector: { matchLabels: { app: "w" } } }];
  cluster.objects.set(
    "poddisruptionbudgets",
    budgets.map((spec, i) => ({ metadata: { name: `b${i}` }, spec }) as unknown as KubeObject),
  );
  const names = async (version: string | undefined) => {
    const served = { ...kube, servedVersion: async () => version };
    return (await listBudgets(served, new AbortController().signal)).map(({ metadata }) => metadata.name);
  };
  expect(await names("v1")).toEqual(["b0", "b1", "b2"]);
  expect(await names("v1beta1")).toEqual(["b2"]);
  expect(await names(undefined)).toEqual([]);
});
