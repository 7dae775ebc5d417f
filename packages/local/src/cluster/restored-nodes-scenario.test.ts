/**
 * The API server is restored from a backup while the nodes run on: they serve a plugin by another path than their objects say
 * (docs/playbooks/control-plane-restored-mid-crossing.md). The whole cluster in one process, under the virtual clock.
 */
import { resources } from "@longshore/kube";
import { SeededRandom } from "@longshore/runtime";
import { migratedPluginsAnnotation } from "@longshore/storage";
import { expect, it } from "vitest";
import { classNameOf, clusterPlugin } from "../layout/plugins.ts";
import { onPodVolumesCluster, type PodVolumesCluster } from "../testing/pod-volumes-cluster.ts";
import type { InProcessClusterOptions } from "./in-process-cluster.ts";

const signal = new AbortController().signal;
const namespace = "default";
const plugin = clusterPlugin("aws-ebs");
const nodeName = "node-1";
const actors = ["controller-manager", "csi-controller"];

const statesMigrated = async ({ cluster: { kube } }: PodVolumesCluster) => {
  const csiNode = await kube.get(resources.csiNodes, { name: nodeName }, { signal });
  return csiNode?.metadata.annotations?.[migratedPluginsAnnotation] === plugin.inTreeName;
};

/** A claim, and pods that use it. */
async function withPod(world: PodVolumesCluster, claimName = "c") {
  const spec = {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
    storageClassName: classNameOf(plugin),
  };
  const claim = { metadata: { name: claimName, namespace }, spec };
  await world.cluster.kube.create(resources.persistentVolumeClaims, claim, { signal });
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName } }];
  const file = async (pod: string) => {
    await world.createPod(pod, { volumes });
    return `${(await world.runs(pod))("/data")}/f`;
  };
  return { file };
}

/** A crossing of the node to CSI, or back. */
async function crossTo(world: PodVolumesCluster, isOn: boolean) {
  await world.cluster.platform.setNodeGates(nodeName, { [plugin.gate]: isOn }, signal);
  await world.until("the node says so", async () => (await statesMigrated(world)) === isOn);
}

/** The restore, in which the control plane stands still until the node's agent has seen it. */
async function restore(
  world: PodVolumesCluster,
  backup: ReturnType<PodVolumesCluster["cluster"]["backUp"]>,
  isOn: boolean,
) {
  const { cluster, clock } = world;
  for (const name of actors) await cluster.shutDown(name);
  cluster.restore(backup, new SeededRandom(77));
  expect(await statesMigrated(world)).toBe(!isOn);
  await clock.sleep(61_000, signal);
  expect(await statesMigrated(world)).toBe(isOn);
  for (const name of actors) await cluster.start(name);
}

/** Takes down the names of disks that anything detaches. */
function countingDetaches(detached: string[]): NonNullable<InProcessClusterOptions["isolate"]> {
  return (_component, seams) => ({
    ...seams,
    cloudFor: (caller) => {
      const cloud = seams.cloudFor(caller);
      return {
        ...cloud,
        detachDisk: (diskId, ...rest) => {
          detached.push(diskId);
          return cloud.detachDisk(diskId, ...rest);
        },
      };
    },
  });
}

const paths = [
  ["CSI", true],
  ["in-tree", false],
] as const;
const options = { plugins: ["aws-ebs"], nodeDecidesMigration: true } as const;

it.each(paths)(
  "a node that has crossed to %s since the backup says so again, and its pods have their volume (contract.md C1)",
  (_path, isOn) =>
    onPodVolumesCluster(async (world) => {
      await world.cluster.platform.setControlPlaneGates({ [plugin.gate]: true }, signal);
      await crossTo(world, !isOn);
      const { file } = await withPod(world);
      await world.host.appendFileDurable(await file("a"), "kept");
      const backup = world.cluster.backUp();
      await world.deletePod("a");
      await crossTo(world, isOn);

      await restore(world, backup, isOn);

      await world.deletePod("a");
      expect(await world.host.readFile(await file("b"))).toBe("kept");
    }, options),
);

it.each(paths)(
  "a disk that a node has mounted by %s since the backup, whose objects say otherwise, is not detached under its mount (contract.md C2)",
  (_path, isOn) => {
    const detached: string[] = [];
    return onPodVolumesCluster(
      async (world) => {
        const { cluster } = world;
        await cluster.platform.setControlPlaneGates({ [plugin.gate]: true }, signal);
        await crossTo(world, !isOn);
        const { file } = await withPod(world);
        await world.host.appendFileDurable(await file("a"), "kept");
        const backup = cluster.backUp();
        await world.deletePod("a");
        await crossTo(world, isOn);
        await file("a");

        await restore(world, backup, isOn);

        detached.length = 0;
        await world.clock.sleep(180_000, signal);
        expect(detached).toEqual([]);
        await world.deletePod("a");
        expect(await world.host.readFile(await file("b"))).toBe("kept");
      },
      { ...options, isolate: countingDetaches(detached) },
    );
  },
);

it("a node that runs on mounts no disk by the device that its restored list names: another disk may have it by now (contract.md C1)", () =>
  onPodVolumesCluster(async (world) => {
    const { cluster } = world;
    const first = await withPod(world);
    await world.host.appendFileDurable(await first.file("a"), "first");
    const { file } = await withPod(world, "d");
    await world.host.appendFileDurable(await file("b"), "second");
    await world.deletePod("b");
    const backup = cluster.backUp();
    await world.deletePod("a");
    await world.host.readFile(await file("b"));

    for (const name of actors) await cluster.shutDown(name);
    cluster.restore(backup, new SeededRandom(77));
    await world.clock.sleep(61_000, signal);
    for (const name of actors) await cluster.start(name);

    // The pod's status, too, is that of the backup.
    const kept = `${(await world.runs("a"))("/data")}/f`;
    await world.until("a volume is mounted", async () => (await world.host.readFile(kept)) !== undefined);
    expect(await world.host.readFile(kept)).toBe("first");
  }, options));
