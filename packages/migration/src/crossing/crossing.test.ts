import type { KubeObject, PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { listBudgets } from "./list-budgets.ts";
import { objectsCarryingMarks } from "./marks.ts";
import { aCluster, cross, pod, subject } from "./testing/fake-cluster.ts";

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
