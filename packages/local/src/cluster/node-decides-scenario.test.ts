/**
 * The attach/detach controller goes by the node's statement (docs/behaviour/migration-controllers.md B2): gates may flip in any
 * order. The whole cluster in one process, under the virtual clock.
 */
import { resources } from "@longshore/kube";
import { migratedPluginsAnnotation } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { classNameOf, clusterPlugin } from "../layout/plugins.ts";
import { onPodVolumesCluster } from "../testing/pod-volumes-cluster.ts";

const signal = new AbortController().signal;
const namespace = "default";
const plugin = clusterPlugin("aws-ebs");
const nodeName = "node-1";

type Side = "control plane" | "node";
const orders: readonly (readonly [Side, Side])[] = [
  ["control plane", "node"],
  ["node", "control plane"],
];
const journeys = orders.flatMap((on) => orders.map((off) => ({ on, off })));

describe.each(journeys)("on: $on; off: $off", ({ on, off }) => {
  it("after each flip a new pod has the volume, by the path that the node states, with all that was written (migration-controllers.md B2)", () =>
    onPodVolumesCluster(
      async (world) => {
        const { kube, platform, cloud } = world.cluster;
        const spec = {
          accessModes: ["ReadWriteOnce"],
          resources: { requests: { storage: "1Gi" } },
          storageClassName: classNameOf(plugin),
        };
        const claim = { metadata: { name: "c", namespace }, spec };
        await kube.create(resources.persistentVolumeClaims, claim, { signal });
        const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "c" } }];
        const statesMigrated = async () => {
          const csiNode = await kube.get(resources.csiNodes, { name: nodeName }, { signal });
          const listed = csiNode?.metadata.annotations?.[migratedPluginsAnnotation] ?? "";
          return listed.split(",").includes(plugin.inTreeName);
        };
        let written = "";
        /** Attaches that the provider was asked for while the pod was there, by path. */
        const runPod = async (name: string) => {
          const before = (await cloud.calls(0, signal)).length;
          await world.createPod(name, { volumes });
          const file = `${(await world.runs(name))("/data")}/f`;
          expect((await world.host.readFile(file)) ?? "").toBe(written);
          await world.host.appendFileDurable(file, name);
          written += name;
          await world.deletePod(name);
          const calls = (await cloud.calls(0, signal)).slice(before);
          const paths = new Set(calls.flatMap(({ op, path }) => (op === "attachDisk" ? [path] : [])));
          expect([name, ...paths]).toEqual([name, (await statesMigrated()) ? "csi" : "in-tree"]);
        };
        const flip = async (side: Side, isOn: boolean) => {
          const values = { [plugin.gate]: isOn };
          if (side === "control plane") return platform.setControlPlaneGates(values, signal);
          await platform.setNodeGates(nodeName, values, signal);
          await world.until("the node says so", async () => (await statesMigrated()) === isOn);
        };
        await runPod("a");
        for (const [index, side] of on.entries()) {
          await flip(side, true);
          await runPod(`on-${index}`);
        }
        expect(await statesMigrated()).toBe(true);
        for (const [index, side] of off.entries()) {
          await flip(side, false);
          await runPod(`off-${index}`);
        }
        expect(await statesMigrated()).toBe(false);
      },
      { plugins: ["aws-ebs"], nodeDecidesMigration: true },
    ));
});
