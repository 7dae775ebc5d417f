/** Snapshots on a cluster of real processes: what a pod wrote before, and only that, is in a volume made from one. */
import { type PersistentVolumeClaim, type Pod, resources } from "@longshore/kube";
import { readPodLogs } from "@longshore/local";
import { snapshotResources } from "@longshore/storage";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestCluster } from "./support/test-cluster.ts";

const never = new AbortController().signal;
const namespace = "default";
const { volumeSnapshots, volumeSnapshotContents, volumeGroupSnapshots } = snapshotResources;

describe("a local cluster", () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await TestCluster.empty();
    await cluster.kube.create(
      resources.storageClasses,
      {
        metadata: { name: "csi" },
        provisioner: "ebs.csi.aws.com",
        volumeBindingMode: "WaitForFirstConsumer",
      },
      { signal: never },
    );
  });
  afterAll(() => cluster.down());

  const aClaim = (
    name: string,
    storageClassName: string,
    more: Partial<PersistentVolumeClaim["spec"]> = {},
  ) =>
    cluster.kube.create(
      resources.persistentVolumeClaims,
      {
        metadata: { name, namespace, labels: { app: "db" } },
        spec: {
          accessModes: ["ReadWriteOnce"],
          storageClassName,
          resources: { requests: { storage: "1Gi" } },
          ...more,
        },
      },
      { signal: never },
    );

  /** Runs a program on the claim's volume, to its end; returns its output. */
  async function onVolume(podName: string, claimName: string, script: string): Promise<string> {
    const pod: Pod = {
      metadata: { name: podName, namespace },
      spec: {
        restartPolicy: "Never",
        terminationGracePeriodSeconds: 0,
        containers: [
          {
            name: "main",
            image: "host",
            command: ["/bin/sh", "-c", script],
            volumeMounts: [{ name: "data", mountPath: "/data" }],
          },
        ],
        volumes: [{ name: "data", persistentVolumeClaim: { claimName } }],
      },
    };
    const ref = { name: podName, namespace };
    await cluster.kube.create(resources.pods, pod, { signal: never });
    await cluster.until(`${podName} is done`, async () => {
      return (await cluster.pod(podName))?.status?.phase === "Succeeded";
    });
    const { host } = cluster.env;
    const said = await readPodLogs(host, cluster.cluster.layout.podLogDir, namespace, podName);
    await cluster.kube.delete(resources.pods, ref, { signal: never });
    await cluster.until(`${podName} is gone`, async () => (await cluster.pod(podName)) === undefined);
    return said.join("");
  }

  const file = "$(LONGSHORE_MOUNT_DATA)/file";
  const isReady = (name: string) =>
    cluster.until(`${name} is ready`, async () => {
      const snapshot = await cluster.kube.get(volumeSnapshots, { name, namespace }, { signal: never });
      return snapshot?.status?.readyToUse === true;
    });
  const restoredFrom = (name: string) => ({
    dataSource: { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name },
  });

  test.each(["gp2", "csi"])("restores what was written before, class %s", async (className) => {
    const { kube } = cluster;
    const [data, restored, name] = [`data-${className}`, `restored-${className}`, `of-${className}`];
    await aClaim(data, className);
    await onVolume(`writer-${className}`, data, `echo before > ${file} && sync`);
    await kube.create(
      volumeSnapshots,
      { metadata: { name, namespace }, spec: { source: { persistentVolumeClaimName: data } } },
      { signal: never },
    );
    await isReady(name);
    await onVolume(`rewriter-${className}`, data, `echo after > ${file} && sync`);
    await aClaim(restored, "csi", restoredFrom(name));
    expect(await onVolume(`reader-${className}`, restored, `cat ${file}`)).toContain("before");
    expect(await onVolume(`source-${className}`, data, `cat ${file}`)).toContain("after");

    await kube.delete(volumeSnapshots, { name, namespace }, { signal: never });
    await cluster.until("the snapshot is gone", async () => {
      const { items } = await kube.list(volumeSnapshotContents, { signal: never });
      return items.length === 0;
    });
    expect(await cluster.cluster.cloud.listSnapshots(never)).toEqual([]);
    expect(await onVolume(`again-${className}`, restored, `cat ${file}`)).toContain("before");
  });

  test("takes both volumes at once", async () => {
    const { kube } = cluster;
    const selector = { matchLabels: { app: "db" } };
    await kube.patch(
      resources.persistentVolumeClaims,
      { name: "restored-gp2", namespace },
      { type: "merge", body: { metadata: { labels: { app: null } } } },
      { signal: never },
    );
    await kube.patch(
      resources.persistentVolumeClaims,
      { name: "restored-csi", namespace },
      { type: "merge", body: { metadata: { labels: { app: null } } } },
      { signal: never },
    );
    const ref = { name: "both", namespace };
    await kube.create(
      volumeGroupSnapshots,
      { metadata: ref, spec: { source: { selector } } },
      { signal: never },
    );
    await cluster.until("the group is ready", async () => {
      const group = await kube.get(volumeGroupSnapshots, ref, { signal: never });
      return group?.status?.readyToUse === true;
    });
    const { items } = await kube.list(volumeSnapshots, { signal: never });
    expect(items.map(({ spec }) => spec.source.persistentVolumeClaimName).sort()).toEqual([
      "data-csi",
      "data-gp2",
    ]);
    const member = items.find(({ spec }) => spec.source.persistentVolumeClaimName === "data-csi");
    await isReady(member?.metadata.name ?? "");
    await aClaim("of-member", "csi", restoredFrom(member?.metadata.name ?? ""));
    expect(await onVolume("member", "of-member", `cat ${file}`)).toContain("after");
    await kube.delete(volumeGroupSnapshots, ref, { signal: never });
    await cluster.until("all of the group is gone", async () => {
      const left = await kube.list(volumeSnapshotContents, { signal: never });
      return left.items.length === 0 && (await cluster.cluster.cloud.listSnapshots(never)).length === 0;
    });
  });

  test("survives a kill of driver and controllers while it makes one", async () => {
    const { kube } = cluster;
    const ref = { name: "in-the-storm", namespace };
    await kube.create(
      volumeSnapshots,
      { metadata: ref, spec: { source: { persistentVolumeClaimName: "data-csi" } } },
      { signal: never },
    );
    cluster.signal("csi-controller", "SIGKILL");
    cluster.signal("controller-manager", "SIGKILL");
    await isReady(ref.name);
    expect(await cluster.cluster.cloud.listSnapshots(never)).toHaveLength(1);
    await kube.delete(volumeSnapshots, ref, { signal: never });
    await cluster.until("gone", async () => (await cluster.cluster.cloud.listSnapshots(never)).length === 0);
  });
});
