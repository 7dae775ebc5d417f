/** One disk is one disk to the attach/detach controller, however its name says it: each plugin whose disks it attaches. */
import { resources } from "@longshore/kube";
import { featureGates, SimulatedHost } from "@longshore/runtime";
import { migrationGates } from "@longshore/translation";
import { afterEach, describe, expect, it } from "vitest";
import { keyOfInTreeName } from "../../csimigration/in-tree-name-key.ts";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import type { CloudProvider } from "../../framework/ports.ts";
import { uniqueVolumeName } from "../../framework/unique-volume-name.ts";
import { specOfPersistentVolume } from "../../framework/volume-spec.ts";
import { csiPlugin } from "../../plugins/csi/csi-plugin.ts";
import { inTreePlugins } from "../../plugins/in-tree-plugins.ts";
import {
  aBoundEbsVolume,
  aCsiNode,
  aNode,
  aPod,
  ControlPlane,
  startInstantAttacher,
} from "../../testing/control-plane.ts";
import { FakeProviderCloud } from "../../testing/fake-provider-cloud.ts";
import { startAttachDetachController } from "./attach-detach-controller.ts";

const { signal } = new AbortController();
const gates = Object.fromEntries(migrationGates.map(({ gate }) => [gate, true]));
let world: World | undefined;
afterEach(() => world?.plane.stop());

/** The source of a disk in a PersistentVolume, by the provider's id of it. */
const sources: Partial<Record<CloudProvider, (id: string) => object>> = {
  "aws-ebs": (id) => ({ awsElasticBlockStore: { volumeID: id } }),
  "gce-pd": (id) => ({ gcePersistentDisk: { pdName: id } }),
  "azure-disk": (id) => ({ azureDisk: { diskURI: id, diskName: "d", kind: "Managed" } }),
  cinder: (id) => ({ cinder: { volumeID: id } }),
  rbd: (id) => {
    const [pool = "", image = ""] = id.split("/");
    return { rbd: { monitors: ["10.0.0.1:6789"], pool, image, secretRef: { name: "key" } } };
  },
  "vsphere-volume": (id) => ({ vsphereVolume: { volumePath: id } }),
};
/** How a provider may spell it otherwise. EBS lists `aws://zone/vol-…` where the source above says `vol-…`. */
const respelled: Partial<Record<CloudProvider, (id: string) => string>> = {
  "azure-disk": (id) => id.replace("/resourceGroups/g/", "/resourceGroups/G/"),
  "vsphere-volume": (id) => id.replace("] ", "]"),
};
/** The controller asks the provider for attach and detach. */
const providers = (Object.keys(sources) as CloudProvider[]).filter((provider) => provider !== "rbd");

/** A node and a claim whose volume is one disk of the provider. */
class World {
  readonly plane = new ControlPlane();
  readonly cloud: FakeProviderCloud;
  readonly calls: string[] = [];
  readonly pluginName: string;
  diskId = "";
  uniqueName = "";
  readonly #plugins: ReturnType<typeof inTreePlugins>;

  private constructor(provider: CloudProvider) {
    this.pluginName = `kubernetes.io/${provider}`;
    this.cloud = new FakeProviderCloud(provider, new SimulatedHost(), ["n1"]);
    this.cloud.before = (call) => {
      if (/^(at|de)tach /.test(call)) this.calls.push(call.split(" ")[0] ?? "");
    };
    this.#plugins = inTreePlugins({ cloudFor: () => this.cloud });
  }

  static async create(provider: CloudProvider): Promise<World> {
    const created = new World(provider);
    world = created;
    const { plane, cloud, pluginName } = created;
    const driver = migrationGates.find(({ inTreeName }) => inTreeName === pluginName)?.driverName ?? "";
    await plane.create(resources.nodes, aNode("n1"));
    await plane.create(resources.csiNodes, aCsiNode("n1", [driver]));
    const zone = provider === "vsphere-volume" ? "" : "us-east-1a";
    const request = { name: "d", sizeBytes: 1n << 30n, zone, type: "", tags: {} };
    created.diskId = provider === "rbd" ? "rbd/image" : (await cloud.createDisk(request)).id;
    const source = sources[provider]?.(created.diskId);
    const { pv } = await aBoundEbsVolume(plane, "a", "", {
      pv: { awsElasticBlockStore: undefined, ...source },
    });
    const plugin = created.#plugins.find((candidate) => candidate.pluginName === pluginName);
    if (plugin === undefined) throw new Error(`no ${pluginName}`);
    created.uniqueName = uniqueVolumeName(plugin, specOfPersistentVolume(pv, false), "");
    plane.running(startInstantAttacher(plane));
    return created;
  }

  start() {
    return this.plane.running(
      startAttachDetachController(
        { ...this.plane.env, kube: this.plane.kube, plugins: [csiPlugin(), ...this.#plugins] },
        { gates: featureGates(volumeGates, gates) },
      ),
    );
  }

  pod() {
    return this.plane.create(resources.pods, aPod("p", "n1", { persistentVolumeClaim: { claimName: "a" } }));
  }
}

describe.each(providers)("%s", (provider) => {
  it("a disk that its node uses is not detached when its pod has gone (controllers.md A7; contract.md C2)", async () => {
    const { plane, calls, uniqueName, start, pod } = bound(await World.create(provider));
    start();
    await pod();
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([uniqueName]);
    await plane.setVolumesInUse("n1", [uniqueName]);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(600_000);
    expect(calls).toEqual(["attach"]);
    await plane.setVolumesInUse("n1", []);
    await plane.pass(2_000);
    expect(calls).toEqual(["attach", "detach"]);
  });

  it("the next controller knows it by its name, attaches it no second time and detaches it once it is unused (controllers.md A6)", async () => {
    const { plane, calls, uniqueName, start, pod } = bound(await World.create(provider));
    const first = start();
    await pod();
    await plane.pass(2_000);
    await plane.setVolumesInUse("n1", [uniqueName]);
    await plane.clock.run(first.stop());
    start();
    await plane.pass(120_000);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(600_000);
    expect(calls).toEqual(["attach"]);
    await plane.setVolumesInUse("n1", []);
    await plane.pass(2_000);
    expect(calls).toEqual(["attach", "detach"]);
  });

  it("a disk that a pod names itself is not detached while its node uses it (controllers.md A7; contract.md C2)", async () => {
    const created = await World.create(provider);
    const { plane, calls, uniqueName, diskId, start } = bound(created);
    const [inline] = Object.entries(sources[provider]?.(diskId) ?? {});
    start();
    await plane.merge(resources.persistentVolumes, { name: "pv-a" }, { metadata: { finalizers: null } });
    await plane.delete(resources.persistentVolumes, "pv-a");
    await plane.create(
      resources.pods,
      aPod("p", "n1", Object.fromEntries(inline === undefined ? [] : [inline])),
    );
    await plane.pass(2_000);
    await plane.setVolumesInUse("n1", [uniqueName]);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(600_000);
    expect(calls).toEqual(["attach"]);
    await plane.setVolumesInUse("n1", []);
    await plane.pass(2_000);
    expect(calls).toEqual(["attach", "detach"]);
  });

  it("the next controller learns from a pod which disk it is that the pod names itself (controllers.md A6)", async () => {
    const created = await World.create(provider);
    const { plane, calls, uniqueName, diskId, start } = bound(created);
    const first = start();
    await plane.merge(resources.persistentVolumes, { name: "pv-a" }, { metadata: { finalizers: null } });
    await plane.delete(resources.persistentVolumes, "pv-a");
    await plane.create(
      resources.pods,
      aPod("p", "n1", sources[provider]?.(diskId) as Record<string, unknown>),
    );
    await plane.pass(2_000);
    await plane.setVolumesInUse("n1", [uniqueName]);
    await plane.merge(
      resources.csiNodes,
      { name: "n1" },
      { metadata: { annotations: { "storage.alpha.kubernetes.io/migrated-plugins": created.pluginName } } },
    );
    await plane.clock.run(first.stop());
    start();
    await plane.pass(120_000);
    expect(await plane.volumesAttached("n1")).toEqual([uniqueName]);
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(600_000);
    expect(calls).toEqual(["attach"]);
    await plane.setVolumesInUse("n1", []);
    await plane.pass(2_000);
    expect(calls).toEqual(["attach", "detach"]);
  });

  it("what the node uses in-tree is not taken over when the node is flipped (contract.md C1)", async () => {
    const created = await World.create(provider);
    const { plane, calls, uniqueName, start, pod } = bound(created);
    const first = start();
    await pod();
    await plane.pass(2_000);
    await plane.setVolumesInUse("n1", [uniqueName]);
    await plane.merge(
      resources.csiNodes,
      { name: "n1" },
      { metadata: { annotations: { "storage.alpha.kubernetes.io/migrated-plugins": created.pluginName } } },
    );
    await plane.pass(2_000);
    await plane.clock.run(first.stop());
    start();
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([uniqueName]);
    await plane.delete(resources.pods, "p", "default");
    await plane.setVolumesInUse("n1", []);
    await plane.pass(2_000);
    expect([calls, await plane.list(resources.volumeAttachments)]).toEqual([["attach", "detach"], []]);
  });

  it("what the provider has attached and no object records is found and detached (controllers.md A6)", async () => {
    const { plane, calls, cloud, diskId, start } = bound(await World.create(provider));
    await cloud.attachDisk(diskId, "i-n1", signal);
    start();
    await plane.pass(2_000);
    expect(calls).toEqual(["attach", "detach"]);
  });

  it("a spelling of the provider's own is the disk of the volume (controllers.md A6)", async () => {
    const { plane, calls, cloud, diskId, start } = bound(await World.create(provider));
    await cloud.attachDisk(diskId, "i-n1", signal);
    const { listDisks } = cloud;
    cloud.listDisks = async () =>
      (await listDisks.call(cloud)).map((disk) => ({
        ...disk,
        id: respelled[provider]?.(disk.id) ?? disk.id,
      }));
    start();
    await plane.pass(2_000);
    expect(calls).toEqual(["attach", "detach"]);
  });

  it("what the provider has detached is attached again (controllers.md A7)", async () => {
    const { plane, calls, cloud, diskId, start, pod } = bound(await World.create(provider));
    start();
    await pod();
    await plane.pass(2_000);
    await cloud.detachDisk(diskId, "i-n1");
    await plane.pass(60_000);
    expect(calls).toEqual(["attach", "detach", "attach"]);
  });
});

/** The node maps the image; that it is listed as attached is what the controller does. */
describe("rbd", () => {
  it("the next controller knows the image by its name, and gives it to another node once it is unused (controllers.md A6)", async () => {
    const { plane, uniqueName, start, pod } = bound(await World.create("rbd"));
    await plane.create(resources.nodes, aNode("n2"));
    await plane.create(resources.csiNodes, aCsiNode("n2", ["rbd.csi.ceph.com"]));
    const first = start();
    await pod();
    await plane.pass(2_000);
    await plane.setVolumesInUse("n1", [uniqueName]);
    await plane.clock.run(first.stop());
    start();
    await plane.pass(2_000);
    expect(plane.logged).toEqual([]);
    await plane.delete(resources.pods, "p", "default");
    await plane.create(resources.pods, aPod("q", "n2", { persistentVolumeClaim: { claimName: "a" } }));
    await plane.pass(2_000);
    expect([await plane.volumesAttached("n1"), await plane.volumesAttached("n2")]).toEqual([
      [uniqueName],
      [],
    ]);
    await plane.setVolumesInUse("n1", []);
    await plane.pass(2_000);
    expect([await plane.volumesAttached("n1"), await plane.volumesAttached("n2")]).toEqual([
      [],
      [uniqueName],
    ]);
  });

  it("two images of one name in two clusters of Ceph are two disks, also to the next controller (controllers.md A6)", async () => {
    const { plane, uniqueName, start, pod } = bound(await World.create("rbd"));
    const rbd = { monitors: ["10.9.9.9:6789"], pool: "rbd", image: "image", secretRef: { name: "key" } };
    await aBoundEbsVolume(plane, "b", "", { pv: { awsElasticBlockStore: undefined, rbd } });
    const first = start();
    await pod();
    await plane.pass(2_000);
    await plane.clock.run(first.stop());
    start();
    await plane.pass(120_000);
    expect(plane.logged).toEqual([]);
    expect(await plane.volumesAttached("n1")).toEqual([uniqueName]);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([]);
  });
});

describe("the key of a name", () => {
  it.each([
    ["aws-ebs", "vol-1", "aws://us-east-1a/vol-1", "vol-2"],
    ["gce-pd", "data", "data", "data-2"],
    [
      "azure-disk",
      "/subscriptions/s/resourceGroups/G/x",
      "/subscriptions/S/resourcegroups/g/x",
      "/subscriptions/s/y",
    ],
    ["cinder", "0a", "0a", "0b"],
    ["rbd", "rbd:a", "rbd:a", "data:a"],
    ["vsphere-volume", "[ds] a.vmdk", "[ds]a.vmdk", "[ds] A.vmdk"],
  ])("%s: %s is %s, and not %s", (plugin, name, same, other) => {
    const key = (volumeName: string) => keyOfInTreeName(`kubernetes.io/${plugin}/${volumeName}`);
    expect(key(name)).toBe(key(same));
    expect(key(name)).not.toBe(key(other));
  });

  it.each(["kubernetes.io/portworx-volume/1", "kubernetes.io/azure-file/s", "broken"])(
    "%s has none: the controller attaches nothing of it",
    (name) => expect(keyOfInTreeName(name)).toBeUndefined(),
  );
});

function bound(created: World) {
  const { plane, calls, cloud, diskId, uniqueName } = created;
  return { plane, calls, cloud, diskId, uniqueName, start: () => created.start(), pod: () => created.pod() };
}
