/**
 * A volume whose deletion was requested before its claim went, and whose plugin migrates, or goes back, meanwhile: its disk is
 * deleted by the component that has the volume then, and only then the object goes. The persistent-volume controller, the protection
 * controllers, the provisioner, the reference driver and the provider are the real ones, under one virtual clock.
 * Source: docs/decisions/0027-volumes-that-change-hands-while-they-are-deleted.md.
 */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { inProcessCsi } from "@longshore/csi";
import { resources } from "@longshore/kube";
import { createDiskCloud, createReferenceDriver } from "@longshore/reference-driver";
import {
  type Component,
  featureGates,
  noMeter,
  SeededRandom,
  SimulatedHost,
  silentLogger,
  VirtualClock,
} from "@longshore/runtime";
import { startProvisioner } from "@longshore/sidecars";
import { startPersistentVolumeController, startProtectionControllers, volumeGates } from "@longshore/volumes";
import { inTreePlugins } from "@longshore/volumes/in-tree-plugins";
import { describe, expect, it } from "vitest";

const driverName = "ebs.csi.aws.com";
const socket = "/csi.sock";
const zone = "us-east-1a";
const claim = { namespace: "default", name: "c" };
type Side = "in-tree" | "csi";

async function world() {
  const clock = new VirtualClock();
  const runtime = { clock, random: new SeededRandom(3), logger: silentLogger, meter: noMeter };
  const signal = new AbortController().signal;
  const kube = createApiServer(runtime, { store: memoryStore() }).client();
  const host = new SimulatedHost();
  const instances = [{ nodeName: "n", instanceId: "i-n", zone, region: "us-east-1", attachLimit: 25 }];
  const provider = await clock.run(createDiskCloud({ ...runtime, host }, { stateDir: "/cloud", instances }));
  const csi = inProcessCsi({ clock });
  const cloud = provider.forCaller({ path: "csi", component: driverName });
  await csi.serve(
    socket,
    createReferenceDriver({ ...runtime, host, cloud }, { driverName, services: "both", nodeName: "n" }),
  );
  const labels = { "topology.ebs.csi.aws.com/zone": zone, "topology.kubernetes.io/zone": zone };
  await kube.create(resources.nodes, { metadata: { name: "n", labels } }, { signal });
  const drivers = [{ name: driverName, nodeID: "i-n", topologyKeys: ["topology.ebs.csi.aws.com/zone"] }];
  await kube.create(resources.csiNodes, { metadata: { name: "n" }, spec: { drivers } }, { signal });
  const ebs = { metadata: { name: "ebs" }, provisioner: "kubernetes.io/aws-ebs", reclaimPolicy: "Delete" };
  await kube.create(resources.storageClasses, ebs, { signal });

  let controller: Component | undefined;
  /** The controller manager starts with the gates of this side. */
  const handTo = async (side: Side) => {
    if (controller !== undefined) await clock.run(controller.stop());
    const plugins = inTreePlugins({
      cloudFor: (of) =>
        provider.forCaller({ provider: of, path: "in-tree", component: "persistent-volume-controller" }),
    });
    const gates = featureGates(volumeGates, { CSIMigrationAWS: side === "csi" });
    controller = startPersistentVolumeController({ ...runtime, kube, plugins }, { gates });
  };
  const others = [
    startProtectionControllers({ ...runtime, kube }),
    startProvisioner({ ...runtime, kube, csi: csi.connect(socket) }),
  ];
  const volume = async () => (await kube.list(resources.persistentVolumes, { signal })).items[0];
  const until = async (what: string, condition: () => Promise<boolean>) => {
    for (let seconds = 0; seconds < 1800; seconds++) {
      await clock.settle();
      if (await condition()) return;
      await clock.advance(1_000);
    }
    throw new Error(`not within half an hour: ${what}`);
  };
  return {
    clock,
    kube,
    signal,
    provider,
    handTo,
    volume,
    until,
    /** Made on a side, and bound. */
    async made(side: Side) {
      await handTo(side);
      const spec = {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "1Gi" } },
        storageClassName: "ebs",
      };
      await kube.create(resources.persistentVolumeClaims, { metadata: claim, spec }, { signal });
      const keeper = side === "csi" ? "external-provisioner" : "kubernetes.io/pv-controller";
      await until("bound and kept", async () => {
        const pv = await volume();
        const isKept = pv?.metadata.finalizers?.some((name) => name.startsWith(keeper)) === true;
        return pv?.status?.phase === "Bound" && isKept;
      });
      // Whatever else is to be done for it.
      await clock.advance(10_000);
    },
    async deleteVolume() {
      const name = (await volume())?.metadata.name ?? "";
      await kube.delete(resources.persistentVolumes, { name }, { signal });
    },
    deleteClaim: () => kube.delete(resources.persistentVolumeClaims, claim, { signal }),
    /** Which paths have deleted the disk. */
    async deletions() {
      const calls = await provider.calls(0, signal);
      const done = calls.filter(({ op, outcome }) => op === "deleteDisk" && outcome === "ok");
      return [...new Set(done.map(({ path }) => path))];
    },
    async stop() {
      await clock.run(Promise.all([controller, ...others].map((component) => component?.stop())));
      await clock.run(provider.stop());
    },
  };
}

const ways: readonly (readonly [name: string, from: Side, to: Side])[] = [
  ["migrates", "in-tree", "csi"],
  ["goes back", "csi", "in-tree"],
];

describe.each(ways)("a plugin that %s", (_name, from, to) => {
  it("while a volume is being deleted: its disk goes with the claim, then the object (controllers.md B5; contract.md C4)", async () => {
    const w = await world();
    await w.made(from);
    await w.deleteVolume();
    await w.handTo(to);
    await w.clock.advance(120_000);
    // The claim has it: neither the object nor the disk may go.
    expect((await w.volume())?.status?.phase).toBe("Bound");
    expect(w.provider.disks()).toHaveLength(1);
    await w.deleteClaim();
    await w.until("the object is gone", async () => (await w.volume()) === undefined);
    expect(w.provider.disks()).toEqual([]);
    expect(await w.deletions()).toEqual([to]);
    await w.stop();
  });

  it("while its provider deletes nothing: the disk goes once it can (controllers.md B5; contract.md C4, C5)", async () => {
    const w = await world();
    await w.made(from);
    await w.provider.setKnobs("deleteDisk", { failPerMille: 1000, failCode: "Throttled" }, w.signal);
    await w.deleteVolume();
    await w.deleteClaim();
    await w.clock.advance(60_000);
    await w.handTo(to);
    await w.clock.advance(60_000);
    expect(await w.volume()).toBeDefined();
    expect(w.provider.disks()).toHaveLength(1);
    await w.provider.setKnobs("deleteDisk", {}, w.signal);
    await w.until("the object is gone", async () => (await w.volume()) === undefined);
    expect(w.provider.disks()).toEqual([]);
    expect(await w.deletions()).toEqual([to]);
    await w.stop();
  });

  it("and a volume that is to be retained after all: the object goes, the disk stays (controllers.md B5; contract.md C3)", async () => {
    const w = await world();
    await w.made(from);
    await w.deleteVolume();
    await w.handTo(to);
    await w.clock.advance(10_000);
    const name = (await w.volume())?.metadata.name ?? "";
    const body = { spec: { persistentVolumeReclaimPolicy: "Retain" } };
    await w.kube.patch(resources.persistentVolumes, { name }, { type: "merge", body }, { signal: w.signal });
    await w.deleteClaim();
    await w.until("the object is gone", async () => (await w.volume()) === undefined);
    expect(w.provider.disks()).toHaveLength(1);
    expect(await w.deletions()).toEqual([]);
    await w.stop();
  });
});
