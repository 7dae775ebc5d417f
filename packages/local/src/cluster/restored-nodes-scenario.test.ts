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

const signal = new AbortController().signal;
const namespace = "default";
const plugin = clusterPlugin("aws-ebs");
const nodeName = "node-1";
const actors = ["controller-manager", "csi-controller"];

const statesMigrated = async ({ cluster: { kube } }: PodVolumesCluster) => {
  const csiNode = await kube.get(resources.csiNodes, { name: nodeName }, { signal });
  return csiNode?.metadata.annotations?.[migratedPluginsAnnotation] === plugin.inTreeName;
};

it.each([
  ["CSI", true],
  ["in-tree", false],
] as const)(
  "a node that has crossed to %s since the backup says so again, and its pods have their volume (contract.md C1)",
  (_path, isOn) =>
    onPodVolumesCluster(
      async (world) => {
        const { cluster } = world;
        const { kube, platform } = cluster;
        const setNode = async (value: boolean) => {
          await platform.setNodeGates(nodeName, { [plugin.gate]: value }, signal);
          await world.until("the node says so", async () => (await statesMigrated(world)) === value);
        };
        await platform.setControlPlaneGates({ [plugin.gate]: true }, signal);
        await setNode(!isOn);
        const spec = {
          accessModes: ["ReadWriteOnce"],
          resources: { requests: { storage: "1Gi" } },
          storageClassName: classNameOf(plugin),
        };
        const claim = { metadata: { name: "c", namespace }, spec };
        await kube.create(resources.persistentVolumeClaims, claim, { signal });
        const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "c" } }];
        await world.createPod("a", { volumes });
        const file = `${(await world.runs("a"))("/data")}/f`;
        await world.host.appendFileDurable(file, "kept");
        const backup = cluster.backUp();
        await world.deletePod("a");
        await setNode(isOn);

        for (const name of actors) await cluster.shutDown(name);
        cluster.restore(backup, new SeededRandom(77));
        expect(await statesMigrated(world)).toBe(!isOn);
        await world.clock.sleep(61_000, signal);
        expect(await statesMigrated(world)).toBe(isOn);
        for (const name of actors) await cluster.start(name);

        await world.deletePod("a");
        await world.createPod("b", { volumes });
        const again = `${(await world.runs("b"))("/data")}/f`;
        expect(await world.host.readFile(again)).toBe("kept");
      },
      { plugins: ["aws-ebs"], nodeDecidesMigration: true },
    ),
);
