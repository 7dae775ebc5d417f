/** Snapshots on the cluster in one process, on the virtual clock, with no more rights than its components have. */
import { fileURLToPath } from "node:url";
import { readDefinitions } from "@longshore/apiserver";
import { resources } from "@longshore/kube";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { snapshotCrdsUrl, snapshotResources } from "@longshore/storage";
// Tests stand outside the floors.
import { type AccessLog, watchedClient } from "@longshore/testing/deployment";
import { expect, it } from "vitest";
import { clusterConfig } from "../layout/cluster-config.ts";
import { createInProcessCluster } from "./in-process-cluster.ts";

const { volumeSnapshots, volumeGroupSnapshots, volumeSnapshotContents } = snapshotResources;
const signal = new AbortController().signal;
const namespace = "default";

it("a claim is restored from a snapshot, and a group of them comes and goes (sidecars.md 5)", async () => {
  const snapshotDefinitions = await readDefinitions([fileURLToPath(snapshotCrdsUrl)]);
  const clock = new VirtualClock();
  const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const log: AccessLog = { asked: new Set(), refused: [] };
  await clock.run(
    (async () => {
      const config = clusterConfig(1, "unprivileged");
      const cluster = await createInProcessCluster(env, {
        config,
        programs: () => ({}),
        snapshotDefinitions,
        isolate: (_, seams) => ({ ...seams, kube: watchedClient(seams.kube, log) }),
      });
      const { kube } = cluster;
      const until = async (what: string, holds: () => Promise<boolean>) => {
        const untilMs = clock.monotonicMs() + 5 * 60_000;
        while (!(await holds())) {
          if (clock.monotonicMs() > untilMs) throw new Error(`not within 5 min: ${what}`);
          await clock.sleep(250, signal);
        }
      };
      const aBoundClaim = async (name: string, dataSource?: string) => {
        const source = { apiGroup: volumeSnapshots.group, kind: "VolumeSnapshot", name: dataSource ?? "" };
        await kube.create(
          resources.persistentVolumeClaims,
          {
            metadata: { name, namespace, labels: { app: "db" } },
            spec: {
              accessModes: ["ReadWriteOnce"],
              storageClassName: "csi",
              resources: { requests: { storage: "1Gi" } },
              ...(dataSource === undefined ? {} : { dataSource: source }),
            },
          },
          { signal },
        );
        await until(`${name} is bound`, async () => {
          const claim = await kube.get(resources.persistentVolumeClaims, { name, namespace }, { signal });
          return claim?.status?.phase === "Bound";
        });
      };
      await kube.create(
        resources.storageClasses,
        { metadata: { name: "csi" }, provisioner: "ebs.csi.aws.com", volumeBindingMode: "Immediate" },
        { signal },
      );
      await aBoundClaim("data");
      const metadata = { name: "s", namespace };
      const spec = { source: { persistentVolumeClaimName: "data" } };
      await kube.create(volumeSnapshots, { metadata, spec }, { signal });
      await until("the snapshot is ready", async () => {
        return (await kube.get(volumeSnapshots, metadata, { signal }))?.status?.readyToUse === true;
      });
      await aBoundClaim("restored", "s");
      await kube.delete(volumeSnapshots, metadata, { signal });

      const group = { name: "g", namespace };
      const selector = { matchLabels: { app: "db" } };
      await kube.create(
        volumeGroupSnapshots,
        { metadata: group, spec: { source: { selector } } },
        { signal },
      );
      await until("the group is ready", async () => {
        return (await kube.get(volumeGroupSnapshots, group, { signal }))?.status?.readyToUse === true;
      });
      expect((await kube.list(volumeSnapshots, { signal })).items).toHaveLength(2);
      await kube.delete(volumeGroupSnapshots, group, { signal });
      await until("nothing is left", async () => {
        const contents = await kube.list(volumeSnapshotContents, { signal });
        return contents.items.length === 0;
      });
      const provider = cluster.cloud.forCaller({ path: "csi", component: "test" });
      expect(await provider.listSnapshots(signal)).toEqual([]);
      await cluster.stop();
    })(),
  );
  expect(log.refused).toEqual([]);
});
