/** Volumes from the claim to the disk and back: the whole cluster in one process, under the virtual clock. */
import { type PersistentVolumeClaim, resources } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { ephemeralVolumesDir } from "../components/csi-driver.ts";
import { initialGates } from "../layout/cluster-config.ts";
import { classNameOf, clusterPlugin, clusterPlugins } from "../layout/plugins.ts";
import {
  onPodVolumesCluster,
  type PodVolumesCluster,
  type PodVolumesClusterOptions,
} from "../testing/pod-volumes-cluster.ts";

const signal = new AbortController().signal;
const namespace = "default";
const ofDisks = classNameOf(clusterPlugin("aws-ebs"));
const data = (claimName = "c") => [{ name: "data", persistentVolumeClaim: { claimName } }];

function aClaim(storageClassName: string | undefined, spec: Partial<PersistentVolumeClaim["spec"]> = {}) {
  return {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
    ...(storageClassName === undefined ? {} : { storageClassName }),
    ...spec,
  };
}

/** What the scenarios ask of the cluster. */
function on({ cluster }: PodVolumesCluster) {
  const { kube } = cluster;
  const createClaim = (name: string, spec: PersistentVolumeClaim["spec"]) =>
    kube.create(
      resources.persistentVolumeClaims,
      { metadata: { name, namespace }, ...(spec && { spec }) },
      { signal },
    );
  const claim = (name: string) => kube.get(resources.persistentVolumeClaims, { name, namespace }, { signal });
  const volumes = async () => (await kube.list(resources.persistentVolumes, { signal })).items;
  const pod = (name: string) => kube.get(resources.pods, { name, namespace }, { signal });
  const attachedTo = async (node: string) =>
    ((await kube.get(resources.nodes, { name: node }, { signal }))?.status?.volumesAttached ?? []).length;
  return { kube, createClaim, claim, volumes, pod, attachedTo };
}

describe("a generic ephemeral volume", () => {
  it("is made for its pod, and claim, volume and disk go with it (controllers.md Part D)", () =>
    onPodVolumesCluster(async (world) => {
      const { claim, volumes } = on(world);
      const volumeClaimTemplate = { spec: aClaim(ofDisks) };
      await world.createPod("p", { volumes: [{ name: "data", ephemeral: { volumeClaimTemplate } }] });
      const at = await world.runs("p");
      await world.host.writeFileAtomic(`${at("/data")}/f`, "x");
      expect((await claim("p-data"))?.status?.phase).toBe("Bound");
      expect(await volumes()).toHaveLength(1);
      await world.deletePod("p");
      await world.until("the claim is gone", async () => (await claim("p-data")) === undefined);
      await world.until("the volume is gone", async () => (await volumes()).length === 0);
    }));
});

describe("a volume that a pod has of a driver itself", () => {
  const csi = (driver = clusterPlugin("aws-ebs").driverName) => [
    { name: "data", csi: { driver, volumeAttributes: { size: "16Mi" } } },
  ];

  it.each(clusterPlugins.map(({ name, driverName }) => ({ name, driverName })))(
    "is made by $driverName on the node, and is gone with the pod (csi-plugin.md 9.3)",
    ({ name, driverName }) =>
      onPodVolumesCluster(
        async (world) => {
          const { volumes } = on(world);
          const made = ephemeralVolumesDir(world.cluster.rootDirOf(world.host.name), driverName);
          for (const pod of ["p", "q"]) await world.createPod(pod, { volumes: csi(driverName) });
          const [p, q] = [await world.runs("p"), await world.runs("q")];
          await world.host.writeFileAtomic(`${p("/data")}/f`, "x");
          expect(await world.host.readFile(`${q("/data")}/f`)).toBeUndefined();
          expect(await world.host.readDirectory(made)).toHaveLength(2);
          expect(await volumes()).toEqual([]);
          expect(world.cluster.objects(resources.volumeAttachments)).toEqual([]);
          for (const pod of ["p", "q"]) await world.deletePod(pod);
          expect(await world.host.readDirectory(made)).toEqual([]);
        },
        { plugins: [name] },
      ),
  );

  it("with an attribute that the driver does not know is refused, and the pod has the reason (csi-plugin.md 9.3)", () =>
    onPodVolumesCluster(async (world) => {
      const [volume] = csi();
      const volumes = [
        { name: "data", csi: { driver: volume?.csi.driver ?? "", volumeAttributes: { colour: "blue" } } },
      ];
      await world.createPod("p", { volumes });
      await world.until("the pod has the reason", async () =>
        (await world.warnings("p")).some((message) => message.includes("volume_context colour")),
      );
    }));
});

describe("a claim", () => {
  it("that waits for its first pod keeps its data from pod to pod (controllers.md B3; contract.md C3)", () =>
    onPodVolumesCluster(async (world) => {
      const { createClaim, claim } = on(world);
      await createClaim("c", aClaim(ofDisks));
      await world.clock.sleep(60_000, signal);
      expect((await claim("c"))?.status?.phase).toBe("Pending");
      await world.createPod("p", { volumes: data() });
      await world.host.writeFileAtomic(`${(await world.runs("p"))("/data")}/f`, "kept");
      await world.deletePod("p");
      await world.createPod("q", { volumes: data() });
      expect(await world.host.readFile(`${(await world.runs("q"))("/data")}/f`)).toBe("kept");
    }));

  it("that is deleted under its pod stays until the pod has gone (controllers.md Part D)", () =>
    onPodVolumesCluster(async (world) => {
      const { kube, createClaim, claim, volumes } = on(world);
      await createClaim("c", aClaim(ofDisks));
      await world.createPod("p", { volumes: data() });
      await world.runs("p");
      await kube.delete(resources.persistentVolumeClaims, { name: "c", namespace }, { signal });
      await world.clock.sleep(300_000, signal);
      expect((await claim("c"))?.status?.phase).toBe("Bound");
      expect(await volumes()).toHaveLength(1);
      await world.deletePod("p");
      await world.until("claim and volume are gone", async () => (await volumes()).length === 0);
      expect(await claim("c")).toBeUndefined();
    }));

  it("without a class gets the default class when there is one (controllers.md B3)", () =>
    onPodVolumesCluster(async (world) => {
      const { kube, createClaim, claim } = on(world);
      const marked = (isDefault: string) =>
        kube.patch(
          resources.storageClasses,
          { name: ofDisks },
          {
            type: "merge",
            body: { metadata: { annotations: { "storageclass.kubernetes.io/is-default-class": isDefault } } },
          },
          { signal },
        );
      await marked("false");
      await createClaim("c", aClaim(undefined));
      await world.createPod("p", { volumes: data() });
      await world.clock.sleep(60_000, signal);
      expect((await claim("c"))?.spec?.storageClassName).toBeUndefined();
      await marked("true");
      await world.runs("p");
      expect((await claim("c"))?.spec?.storageClassName).toBe(ofDisks);
    }));

  it("that is deleted leaves its disk where its volume is kept (controllers.md B5; contract.md C3)", () =>
    onPodVolumesCluster(async (world) => {
      const { kube, createClaim, claim, volumes } = on(world);
      await createClaim("c", aClaim(ofDisks));
      await world.createPod("p", { volumes: data() });
      await world.host.writeFileAtomic(`${(await world.runs("p"))("/data")}/f`, "kept");
      const name = (await claim("c"))?.spec?.volumeName ?? "";
      const body = { spec: { persistentVolumeReclaimPolicy: "Retain" } };
      await kube.patch(resources.persistentVolumes, { name }, { type: "merge", body }, { signal });
      await world.deletePod("p");
      await kube.delete(resources.persistentVolumeClaims, { name: "c", namespace }, { signal });
      await world.until("released", async () => (await volumes())[0]?.status?.phase === "Released");
      // An administrator makes it available, and the next claim names it.
      const freed = { spec: { claimRef: null } };
      await kube.patch(resources.persistentVolumes, { name }, { type: "merge", body: freed }, { signal });
      await createClaim("next", aClaim(ofDisks, { volumeName: name }));
      await world.createPod("q", { volumes: data("next") });
      expect(await world.host.readFile(`${(await world.runs("q"))("/data")}/f`)).toBe("kept");
    }));
});

describe("a volume that is there already", () => {
  it("is found for a pod by its node's name, and the pod goes there (controllers.md B7; pod-volumes.md 8.1)", () =>
    onPodVolumesCluster(
      async (world) => {
        const { kube, createClaim, pod, claim } = on(world);
        await world.cluster.hostOf("node-2").makeDirectory("/srv/disk");
        await kube.create(
          resources.storageClasses,
          {
            metadata: { name: "local" },
            provisioner: "kubernetes.io/no-provisioner",
            volumeBindingMode: "WaitForFirstConsumer",
          },
          { signal },
        );
        const matchExpressions = [{ key: "kubernetes.io/hostname", operator: "In", values: ["node-2"] }];
        await kube.create(
          resources.persistentVolumes,
          {
            metadata: { name: "on-node-2" },
            spec: {
              accessModes: ["ReadWriteOnce"],
              capacity: { storage: "1Gi" },
              local: { path: "/srv/disk" },
              storageClassName: "local",
              persistentVolumeReclaimPolicy: "Retain",
              nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
            },
          },
          { signal },
        );
        await createClaim("c", aClaim("local"));
        await world.createPod("p", { volumes: data() });
        await world.runs("p");
        expect((await pod("p"))?.spec?.nodeName).toBe("node-2");
        expect((await claim("c"))?.spec?.volumeName).toBe("on-node-2");
      },
      { nodes: 3 },
    ));

  it("keeps a pod unscheduled whose claim names none that exists (controllers.md B7)", () =>
    onPodVolumesCluster(async (world) => {
      const { createClaim, pod, claim } = on(world);
      await createClaim("c", aClaim("", { volumeName: "no-such-volume" }));
      await world.createPod("p", { volumes: data() });
      await world.clock.sleep(60_000, signal);
      expect((await pod("p"))?.spec?.nodeName).toBeUndefined();
      expect((await claim("c"))?.status?.phase).toBe("Pending");
      expect((await world.warnings("p")).join()).toMatch(/pod has unbound immediate PersistentVolumeClaims/);
    }));
});

describe("two pods and one volume", () => {
  it("of ReadWriteOncePod: the second waits unscheduled, saying why, until the first has gone (controllers.md B7)", () =>
    onPodVolumesCluster(async (world) => {
      const { kube, createClaim, pod } = on(world);
      // Only drivers make volumes of this mode: the in-tree plugins refuse it.
      const ofDriver = {
        metadata: { name: "of-driver" },
        provisioner: clusterPlugin("aws-ebs").driverName,
        volumeBindingMode: "WaitForFirstConsumer" as const,
      };
      await kube.create(resources.storageClasses, ofDriver, { signal });
      await createClaim("c", aClaim("of-driver", { accessModes: ["ReadWriteOncePod"] }));
      await world.createPod("p", { volumes: data() });
      await world.host.writeFileAtomic(`${(await world.runs("p"))("/data")}/f`, "kept");
      await world.createPod("q", { volumes: data() });
      await world.clock.sleep(120_000, signal);
      expect((await pod("q"))?.spec?.nodeName).toBeUndefined();
      expect((await world.warnings("q")).join()).toMatch(
        /node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode/,
      );
      expect((await pod("p"))?.status?.phase).toBe("Running");
      await world.deletePod("p");
      expect(await world.host.readFile(`${(await world.runs("q"))("/data")}/f`)).toBe("kept");
    }));

  it("of ReadWriteOnce on two nodes: the second is shown who has it, and gets it next (controllers.md A7; contract.md C2)", () =>
    onPodVolumesCluster(
      async (world) => {
        const { kube, createClaim, pod, attachedTo } = on(world);
        await createClaim("c", aClaim(ofDisks));
        await world.createPod("p", { volumes: data() });
        await world.runs("p");
        const first = (await pod("p"))?.spec?.nodeName ?? "";
        const other = world.cluster.config.nodes.find(({ name }) => name !== first)?.name ?? "";
        // Bound by hand: the scheduler keeps the pod in the disk's zone.
        const spec = { nodeName: other };
        await world.createPod("q", { volumes: data(), spec });
        const sentence = /Multi-Attach error for volume "pvc-.*" Volume is already used by pod\(s\) p$/;
        await world.until("a warning", async () =>
          (await world.warnings("q")).some((text) => sentence.test(text)),
        );
        expect(await attachedTo(other)).toBe(0);
        await world.deletePod("p");
        await world.until("the first node has released it", async () => (await attachedTo(first)) === 0);
        expect((await kube.list(resources.persistentVolumes, { signal })).items).toHaveLength(1);
      },
      { nodes: 2 },
    ));
});

/** Components that are cut off from the API server, as those of a machine that has lost its power are. */
function cutOff() {
  const dead = new Set<string>();
  const isolate: PodVolumesClusterOptions["isolate"] = (component, seams) => {
    const kube = new Proxy(seams.kube, {
      get: (target, key) => {
        const member = Reflect.get(target, key) as unknown;
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          if (!dead.has(component)) return member.apply(target, args);
          return key === "watch" ? unending() : new Promise(() => {});
        };
      },
    });
    return { ...seams, kube };
  };
  return { dead, isolate };
}

async function* unending(): AsyncGenerator<never> {
  await new Promise(() => {});
}

const power = cutOff();

it("a node that is out of service: its pod is removed, and the disk with its data goes to the next (controllers.md A10)", () =>
  onPodVolumesCluster(
    async (world) => {
      const { kube, createClaim, pod, attachedTo } = on(world);
      await createClaim("c", aClaim(ofDisks));
      await world.createPod("p", { volumes: data() });
      const at = await world.runs("p");
      const lost = (await pod("p"))?.spec?.nodeName ?? "";
      await world.cluster.hostOf(lost).appendFileDurable(`${at("/data")}/f`, "kept");
      const others = world.cluster.config.nodes.filter(({ name }) => name !== lost);
      for (const component of [lost, `csi-node/${lost}`]) {
        power.dead.add(component);
        world.cluster.drop(component);
      }
      world.cluster.hostOf(lost).losePower();
      const ready = async () =>
        (await kube.get(resources.nodes, { name: lost }, { signal }))?.status?.conditions?.find(
          ({ type }) => type === "Ready",
        )?.status;
      await world.until("the node is not ready", async () => (await ready()) !== "True");
      await kube.delete(resources.pods, { name: "p", namespace }, { signal });
      await world.clock.sleep(120_000, signal);
      expect(await attachedTo(lost)).toBe(1); // Not before an administrator says that the machine is off.
      const taints = [
        { key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" },
      ];
      await kube.patch(
        resources.nodes,
        { name: lost },
        { type: "merge", body: { spec: { taints } } },
        { signal },
      );
      await world.until("the pod is gone", async () => (await pod("p")) === undefined);
      await world.createPod("q", { volumes: data() });
      const next = await world.runs("q");
      const node = (await pod("q"))?.spec?.nodeName ?? "";
      expect(others.map(({ name }) => name)).toContain(node);
      expect(await world.cluster.hostOf(node).readFile(`${next("/data")}/f`)).toBe("kept");
      expect(await attachedTo(lost)).toBe(0);
    },
    { nodes: 4, isolate: power.isolate },
  ));

const pluginNames = clusterPlugins.map(({ name }) => name);

describe.each(pluginNames)("%s", (name) => {
  it("a pod's volume is made, used, kept for the next pod, and deleted with its claim (volume-plugins.md 10)", () =>
    onPodVolumesCluster(
      async (world) => {
        const { kube, createClaim, volumes } = on(world);
        await createClaim("c", aClaim(classNameOf(clusterPlugin(name))));
        await world.createPod("p", { volumes: data() });
        await world.host.appendFileDurable(`${(await world.runs("p"))("/data")}/f`, "kept");
        const [volume] = await volumes();
        expect(volume?.spec).toHaveProperty(clusterPlugin(name).source);
        await world.deletePod("p");
        await world.createPod("q", { volumes: data() });
        expect(await world.host.readFile(`${(await world.runs("q"))("/data")}/f`)).toBe("kept");
        await world.deletePod("q");
        await kube.delete(resources.persistentVolumeClaims, { name: "c", namespace }, { signal });
        await world.until("the volume is gone", async () => (await volumes()).length === 0);
      },
      { plugins: [name] },
    ));
});

it.each([
  ["in-tree", {}],
  ["csi", { gates: { ...initialGates, CSIMigrationAzureDisk: true } }],
] as const)(
  "Azure Disk, %s: the machine caches the disk as its class says, or as the pod does whose own volume it is (volume-plugins.md 10)",
  (path, options) =>
    onPodVolumesCluster(
      async (world) => {
        const { kube, createClaim, volumes } = on(world);
        const attachment = async () => {
          const [disk] = world.cluster.cloud.disks();
          return disk?.attachments.map(({ lun, caching }) => ({ lun, caching }));
        };
        await kube.create(
          resources.storageClasses,
          {
            metadata: { name: "uncached" },
            provisioner: "kubernetes.io/azure-disk",
            parameters: { kind: "Managed", cachingMode: "None" },
            volumeBindingMode: "WaitForFirstConsumer",
          },
          { signal },
        );
        await createClaim("c", aClaim("uncached"));
        await world.createPod("p", { volumes: data() });
        await world.runs("p");
        expect(await attachment()).toEqual([{ lun: 0, caching: "None" }]);
        await world.deletePod("p");
        await world.until("it is detached", async () => (await attachment())?.length === 0);

        const { diskName = "", diskURI = "" } = (await volumes())[0]?.spec?.azureDisk ?? {};
        const own = { diskName, diskURI, kind: "Managed", cachingMode: "ReadOnly" };
        await world.createPod("q", { volumes: [{ name: "data", azureDisk: own }] });
        await world.runs("q");
        expect(await attachment()).toEqual([{ lun: 0, caching: "ReadOnly" }]);
        const calls = await world.cluster.cloud.calls(0, signal);
        const attaches = calls.filter(({ op }) => op === "attachDisk");
        expect(new Set(attaches.map((call) => call.path))).toEqual(new Set([path]));
      },
      { plugins: ["azure-disk"], ...options },
    ),
);

it("the plugins of all providers serve a pod side by side (volume-plugins.md 10)", () =>
  onPodVolumesCluster(
    async (world) => {
      const { createClaim, volumes } = on(world);
      const names = pluginNames;
      for (const name of names) await createClaim(name, aClaim(classNameOf(clusterPlugin(name))));
      await world.createPod("p", {
        volumes: names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
      });
      const at = await world.runs("p");
      for (const name of names) await world.host.writeFileAtomic(`${at(`/${name}`)}/f`, name);
      for (const name of names) expect(await world.host.readFile(`${at(`/${name}`)}/f`)).toBe(name);
      expect(await volumes()).toHaveLength(names.length);
    },
    { plugins: pluginNames },
  ));
