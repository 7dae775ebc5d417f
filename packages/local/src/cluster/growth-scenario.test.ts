/** A StatefulSet's claim grows while its pod runs: the cluster in one process, on the virtual clock, with its components' rights. */
import { type PersistentVolumeClaim, resources } from "@longshore/kube";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
// Tests stand outside the floors.
import { type AccessLog, watchedClient } from "@longshore/testing/deployment";
import { expect, it } from "vitest";
import { clusterConfig } from "../layout/cluster-config.ts";
import { classNameOf, clusterPlugin } from "../layout/plugins.ts";
import { recordPrograms, writerProgram } from "../records/in-process-programs.ts";
import { writerSet } from "../records/writer-set.ts";
import { createInProcessCluster } from "./in-process-cluster.ts";

const signal = new AbortController().signal;
const claimRef = { namespace: "default", name: "data-writer-0" };
const podRef = { namespace: "default", name: "writer-0" };

it.each([
  ["in-tree", classNameOf(clusterPlugin("aws-ebs"))],
  ["of a driver", "csi"],
])("a running pod's claim grows in place, %s (node-agent.md 7.6)", async (_, storageClassName) => {
  const clock = new VirtualClock();
  const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const log: AccessLog = { asked: new Set(), refused: [] };
  const config = clusterConfig(1, "unprivileged");
  await clock.run(
    (async () => {
      const cluster = await createInProcessCluster(env, {
        config,
        programs: (host) => recordPrograms(clock, host),
        isolate: (_, seams) => ({ ...seams, kube: watchedClient(seams.kube, log) }),
      });
      const { kube } = cluster;
      const until = async (what: string, holds: () => Promise<boolean>) => {
        const untilMs = clock.monotonicMs() + 10 * 60_000;
        while (!(await holds())) {
          if (clock.monotonicMs() > untilMs) throw new Error(`not within 10 min: ${what}`);
          await clock.sleep(250, signal);
        }
      };
      const claim = () => kube.get(resources.persistentVolumeClaims, claimRef, { signal });
      const pod = () => kube.get(resources.pods, podRef, { signal });
      await kube.create(
        resources.storageClasses,
        {
          metadata: { name: "csi" },
          provisioner: clusterPlugin("aws-ebs").driverName,
          parameters: { "csi.storage.k8s.io/fstype": "ext4" },
          volumeBindingMode: "WaitForFirstConsumer",
          allowVolumeExpansion: true,
        },
        { signal },
      );
      const command = [writerProgram, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", "500"];
      const set = writerSet({ replicas: 1, command });
      await kube.create(resources.statefulSets, withClass(set, storageClassName), { signal });
      await until("the pod runs", async () => (await pod())?.status?.phase === "Running");
      const before = await pod();
      const fileSystems = async () => {
        const host = cluster.hostOf("node-1");
        const mounts = await host.listMounts(`/n/node-1/pods/${before?.metadata.uid}/volumes`);
        return Promise.all(mounts.map(async ({ target }) => (await host.usage(target)).totalBytes));
      };
      const [sizeBefore = 0] = await fileSystems();

      const body = { spec: { resources: { requests: { storage: "3Gi" } } } };
      await kube.patch(resources.persistentVolumeClaims, claimRef, { type: "merge", body }, { signal });
      await until("the claim has grown", async () => isGrown(await claim()));

      expect(await fileSystems()).toEqual([3 * 2 ** 30]);
      expect(sizeBefore).toBeLessThan(3 * 2 ** 30);
      expect((await claim())?.status?.conditions ?? []).toEqual([]);
      const after = await pod();
      expect(after?.metadata.uid).toBe(before?.metadata.uid);
      expect(after?.status?.containerStatuses).toEqual(before?.status?.containerStatuses);
      await cluster.stop();
    })(),
  );
  expect(log.refused).toEqual([]);
});

function isGrown(claim: PersistentVolumeClaim | undefined): boolean {
  return claim?.status?.capacity?.storage === "3Gi";
}

function withClass(set: ReturnType<typeof writerSet>, storageClassName: string) {
  const volumeClaimTemplates = set.spec?.volumeClaimTemplates?.map((template) => ({
    ...template,
    spec: { ...template.spec, storageClassName },
  }));
  return { ...set, spec: { ...set.spec, volumeClaimTemplates } } as ReturnType<typeof writerSet>;
}
