/** Volumes and the zones of their providers, before a migration, after it and after the way back: the whole cluster under the virtual clock. */
import { type PersistentVolume, resources } from "@longshore/kube";
import { expect, it } from "vitest";
import { classNameOf, clusterPlugin, clusterPlugins } from "../layout/plugins.ts";
import { onPodVolumesCluster, type PodVolumesCluster } from "../testing/pod-volumes-cluster.ts";

const signal = new AbortController().signal;
const namespace = "default";
const regionLabel = "topology.kubernetes.io/region";
const zoneLabel = "topology.kubernetes.io/zone";

/** What the scenarios do on the cluster. */
function on(world: PodVolumesCluster) {
  const { kube, platform, config, cloud } = world.cluster;
  const gates = config.plugins.map((name) => clusterPlugin(name).gate);
  return {
    cloud,
    /** Switches migration of all plugins on or off, everywhere; nothing is mounted meanwhile. */
    async setMigration(isOn: boolean) {
      const values = Object.fromEntries(gates.map((gate) => [gate, isOn]));
      const setNodes = () =>
        Promise.all(config.nodes.map(({ name }) => platform.setNodeGates(name, values, signal)));
      // The control plane goes first and comes back last.
      if (!isOn) await setNodes();
      await platform.setControlPlaneGates(values, signal);
      if (isOn) await setNodes();
    },
    createClaim: (name: string, storageClassName: string) =>
      kube.create(
        resources.persistentVolumeClaims,
        {
          metadata: { name, namespace },
          spec: {
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "1Gi" } },
            storageClassName,
          },
        },
        { signal },
      ),
    deleteClaim: (name: string) =>
      kube.delete(resources.persistentVolumeClaims, { name, namespace }, { signal }),
    async volumeOf(claim: string): Promise<PersistentVolume | undefined> {
      const { items } = await kube.list(resources.persistentVolumes, { signal });
      return items.find(({ spec }) => spec?.claimRef?.name === claim);
    },
    async nodeOf(pod: string): Promise<string> {
      return (await kube.get(resources.pods, { name: pod, namespace }, { signal }))?.spec?.nodeName ?? "";
    },
    /** Runs a pod with the claims, appends the text to each file, and removes the pod. @returns the files, and the pod's node */
    async use(pod: string, claims: readonly string[], zone?: string) {
      await world.createPod(pod, {
        volumes: claims.map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
        ...(zone === undefined ? {} : { spec: { nodeSelector: { [zoneLabel]: zone } } }),
      });
      const at = await world.runs(pod);
      const node = await this.nodeOf(pod);
      const host = world.cluster.hostOf(node);
      const files: string[] = [];
      for (const claim of claims) {
        await host.appendFileDurable(`${at(`/${claim}`)}/f`, `${pod} `);
        files.push((await host.readFile(`${at(`/${claim}`)}/f`)) ?? "");
      }
      await world.deletePod(pod);
      return { files, node };
    },
  };
}

it("volumes of all providers that are made after the migration find a node together, and on the way back (volume-plugins.md 8.4)", () =>
  onPodVolumesCluster(
    async (world) => {
      const cluster = on(world);
      await cluster.setMigration(true);
      const claims = clusterPlugins.map(({ name }) => name);
      for (const name of claims) await cluster.createClaim(name, classNameOf(clusterPlugin(name)));
      const { files, node } = await cluster.use("p", claims);
      expect(files).toEqual(claims.map(() => "p "));
      const { zone } = world.cluster.config.nodes.find(({ name }) => name === node) ?? {};
      // The zone has one name, and each in-tree object has the region of the node.
      for (const name of ["aws-ebs", "gce-pd"] as const) {
        expect((await cluster.volumeOf(name))?.metadata?.labels).toMatchObject({
          [zoneLabel]: zone,
          [regionLabel]: world.cluster.config.region,
        });
      }
      await cluster.setMigration(false);
      expect((await cluster.use("q", claims)).files).toEqual(claims.map(() => "p q "));
    },
    { nodes: 3, plugins: clusterPlugins.map(({ name }) => name) },
  ));

/** Zones and handle of the volume, as the two vocabularies have them. */
async function placesOf({ volumeOf }: ReturnType<typeof on>, claim: string) {
  const pv = await volumeOf(claim);
  const terms = pv?.spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const valuesOf = (key: string) => [
    ...new Set(
      terms.flatMap(({ matchExpressions = [] }) =>
        matchExpressions.flatMap((each) => (each.key === key ? (each.values ?? []) : [])),
      ),
    ),
  ];
  return {
    zones: valuesOf(zoneLabel).sort(),
    regions: valuesOf(regionLabel),
    label: pv?.metadata?.labels?.[zoneLabel],
  };
}

it.each([
  ["with GCE's own names of zones", ["gce-pd"] as const, "us-east1"],
  ["beside EBS, with the names of its zones", ["gce-pd", "aws-ebs"] as const, "us-east-1"],
])(
  "a regional disk serves the nodes of its two zones, through an outage, a migration and the way back, %s (volume-plugins.md 10)",
  (_names, plugins, region) =>
    onPodVolumesCluster(
      async (world) => {
        const cluster = on(world);
        const { cloud } = cluster;
        const [a = "", b = "", c = ""] = world.cluster.config.nodes.map(({ zone }) => zone);
        /** Puts zones out of order for whatever needs them. */
        const down = (downZones: readonly string[]) => cloud.setKnobs("*", { downZones }, signal);
        const disks = () => cloud.disks().filter(({ replicaZones }) => replicaZones !== undefined);

        await cluster.createClaim("made-in-tree", "pd-regional");
        await cluster.use("p1", ["made-in-tree"], a);
        const places = await placesOf(cluster, "made-in-tree");
        expect(places).toMatchObject({ zones: [a, expect.any(String)], regions: [region] });
        expect(places.label).toBe(places.zones.join("__"));
        const other = places.zones[1] === b ? b : c;
        const without = other === b ? c : b;

        // Its first zone is out of order: it goes on in the other one.
        await down([a]);
        expect((await cluster.use("p2", ["made-in-tree"], other)).files).toEqual(["p1 p2 "]);
        await down([]);

        await cluster.setMigration(true);
        expect((await cluster.use("p3", ["made-in-tree"], a)).files).toEqual(["p1 p2 p3 "]);
        await cluster.createClaim("made-by-csi", "pd-regional");
        await cluster.use("p4", ["made-by-csi"], a);
        const migrated = await placesOf(cluster, "made-by-csi");
        expect(migrated).toMatchObject({ zones: [a, expect.any(String)], regions: [region] });
        expect(migrated.label).toBe(migrated.zones.join("__"));
        expect(disks()).toHaveLength(2);
        await down([a]);
        expect((await cluster.use("p5", ["made-by-csi"], migrated.zones[1])).files).toEqual(["p4 p5 "]);
        await down([]);

        // No node of another zone gets it.
        await world.createPod("elsewhere", {
          volumes: [{ name: "data", persistentVolumeClaim: { claimName: "made-in-tree" } }],
          spec: { nodeSelector: { [zoneLabel]: without } },
        });
        await world.until("it is refused", async () =>
          (await world.warnings("elsewhere")).some((text) => text.includes("no available volume zone")),
        );
        await world.deletePod("elsewhere");

        await cluster.setMigration(false);
        const calls = (await cloud.calls(0, signal)).length;
        expect((await cluster.use("p6", ["made-in-tree"], a)).files).toEqual(["p1 p2 p3 p6 "]);
        expect((await cluster.use("p7", ["made-by-csi"], migrated.zones[1])).files).toEqual(["p4 p5 p7 "]);
        const attaches = (await cloud.calls(0, signal)).slice(calls).filter(({ op }) => op === "attachDisk");
        expect(new Set(attaches.map(({ path }) => path))).toEqual(new Set(["in-tree"]));

        for (const claim of ["made-in-tree", "made-by-csi"]) await cluster.deleteClaim(claim);
        await world.until("both disks are gone", async () => disks().length === 0);
      },
      { nodes: 3, plugins },
    ),
);
