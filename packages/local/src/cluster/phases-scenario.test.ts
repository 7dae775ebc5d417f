/** Which side serves a volume in each phase of a migration, for each plugin: the whole cluster in one process, under the virtual clock. */
import { resources } from "@longshore/kube";
import { volumeGates } from "@longshore/volumes";
import { describe, expect, it } from "vitest";
import { firstGates, initialGates, UnservedPluginError } from "../layout/cluster-config.ts";
import { type ClusterPlugin, classNameOf, clusterPlugin, clusterPlugins } from "../layout/plugins.ts";
import { onPodVolumesCluster, type PodVolumesClusterOptions } from "../testing/pod-volumes-cluster.ts";

const signal = new AbortController().signal;
const namespace = "default";
const pluginNames = clusterPlugins.map(({ name }) => name);

type Phase = (plugin: ClusterPlugin) => Omit<PodVolumesClusterOptions, "plugins">;

/** Source: docs/behaviour/volume-plugins.md 7.4. */
const phases: readonly [string, "in-tree" | "csi", Phase][] = [
  ["0: the gates are off", "in-tree", () => ({})],
  ["1: migration is on", "csi", ({ gate }) => ({ gates: { ...initialGates, [gate]: true } })],
  [
    "2: migration is complete",
    "csi",
    ({ gate, completeGate }) => ({ gates: { ...initialGates, [gate]: true, [completeGate]: true } }),
  ],
  [
    "2: the in-tree plugin is not registered",
    "csi",
    ({ gate }) => ({ gates: { ...initialGates, [gate]: true, [unregisterGateOf(gate)]: true } }),
  ],
  ["4: there is no in-tree code", "csi", () => ({ withoutInTreePlugins: true })],
];

function unregisterGateOf(gate: string): string {
  const name = gate.replace(/^CSIMigration(.*)$/, "InTreePlugin$1Unregister");
  expect(volumeGates).toHaveProperty(name);
  return name;
}

describe.each(phases)("phase %s", (_phase, path, optionsOf) => {
  it.each(pluginNames)(
    `a volume of %s is made, attached, mounted, kept and deleted by ${path} calls alone (volume-plugins.md 7.4)`,
    (name) => {
      const plugin = clusterPlugin(name);
      return onPodVolumesCluster(
        async (world) => {
          const { kube, cloud } = world.cluster;
          const volumes = async () => (await kube.list(resources.persistentVolumes, { signal })).items;
          await kube.create(
            resources.persistentVolumeClaims,
            {
              metadata: { name: "c", namespace },
              spec: {
                accessModes: ["ReadWriteOnce"],
                resources: { requests: { storage: "1Gi" } },
                storageClassName: classNameOf(plugin),
              },
            },
            { signal },
          );
          const data = [{ name: "data", persistentVolumeClaim: { claimName: "c" } }];
          await world.createPod("p", { volumes: data });
          await world.host.appendFileDurable(`${(await world.runs("p"))("/data")}/f`, "kept");
          // Its object is the in-tree one, also where the driver has made it.
          expect((await volumes())[0]?.spec).toHaveProperty(plugin.source);
          await world.deletePod("p");
          await world.createPod("q", { volumes: data });
          expect(await world.host.readFile(`${(await world.runs("q"))("/data")}/f`)).toBe("kept");
          await world.deletePod("q");
          await kube.delete(resources.persistentVolumeClaims, { name: "c", namespace }, { signal });
          await world.until("the volume is gone", async () => (await volumes()).length === 0);
          const calls = await cloud.calls(0, signal);
          // A share that is mounted is never detached.
          const effects = [
            "createDisk",
            "attachDisk",
            ...(plugin.isShared ? [] : ["detachDisk"]),
            "deleteDisk",
          ];
          for (const effect of effects) {
            const paths = new Set(calls.flatMap((call) => (call.op === effect ? [call.path] : [])));
            expect([effect, ...paths]).toEqual([effect, path]);
          }
          // Drivers look around in each phase; in-tree code does not once it is out of use.
          if (path === "csi") expect(calls.filter((call) => call.path === "in-tree")).toEqual([]);
        },
        { plugins: [name], ...optionsOf(plugin) },
      );
    },
  );
});

describe("without in-tree code", () => {
  it("the gates are on from the start, of the cluster's plugins alone (volume-plugins.md 7.4)", () => {
    const gates = firstGates({ plugins: ["gce-pd", "rbd"], withoutInTreePlugins: true });
    expect(Object.keys(gates).filter((name) => gates[name])).toEqual([
      "CSIMigration",
      "CSIMigrationGCE",
      "CSIMigrationRBD",
    ]);
  });

  it("there is no way back to in-tree code (volume-plugins.md 7.4)", () =>
    onPodVolumesCluster(
      async ({ cluster }) => {
        const goBack = (values: Readonly<Record<string, boolean>>) =>
          cluster.platform.setNodeGates("node-1", values, signal);
        await expect(goBack({ CSIMigrationRBD: false })).rejects.toThrow(UnservedPluginError);
        await expect(goBack({ CSIMigration: false })).rejects.toThrow(
          "no in-tree plugin kubernetes.io/rbd: CSIMigration and CSIMigrationRBD stay on",
        );
        await goBack({ CSIMigrationAWS: true });
      },
      { plugins: ["rbd"], withoutInTreePlugins: true },
    ));

  it("a volume whose driver is not installed says which is missing (volume-plugins.md 7.4)", () =>
    onPodVolumesCluster(
      async (world) => {
        const { kube } = world.cluster;
        await world.createPod("p", {
          volumes: [{ name: "data", gcePersistentDisk: { pdName: "pd-1" } }],
          spec: { nodeName: "node-1" },
        });
        const missing =
          "kubernetes.io/gce-pd is migrated on node node-1 but driver pd.csi.storage.gke.io is not installed";
        await world.until("it says so", async () =>
          (await world.warnings("p")).some((text) => text.includes(missing)),
        );
        const pod = await kube.get(resources.pods, { name: "p", namespace }, { signal });
        expect(pod?.status?.phase).not.toBe("Running");
      },
      {
        plugins: ["gce-pd"],
        withoutInTreePlugins: true,
        isolate: (name, seams) => {
          // No driver on the node from the start: its sockets never appear.
          if (name !== "csi-node/node-1") return seams;
          const serve = async (endpoint: string) => ({ endpoint, close: async () => {} });
          return { ...seams, listener: { serve, serveRegistration: serve } };
        },
      },
    ));
});
