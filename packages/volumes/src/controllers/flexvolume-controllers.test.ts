/** Flexvolumes in the controllers, with drivers that come, change and go. Source: docs/behaviour/flexvolume.md 4 and 8. */
import { resources } from "@longshore/kube";
import { featureGates } from "@longshore/runtime";
import { uncertainVolumesAnnotation, uncertainVolumesOf } from "@longshore/storage";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { volumeGates } from "../csimigration/volume-gates.ts";
import { flexVolumeProber } from "../plugins/flexvolume/flexvolume-prober.ts";
import {
  driverDirectory,
  flexWorld,
  hangs,
  onlyInit,
  type TestFlexDriver,
} from "../plugins/flexvolume/testing/flex-world.ts";
import { aNode, aPod, ControlPlane } from "../testing/control-plane.ts";
import { startAttachDetachController } from "./attach-detach/attach-detach-controller.ts";
import { startExpandController } from "./expand/expand-controller.ts";

const uniqueName = "v.io/d/v";
const gates = featureGates(volumeGates, {});

let plane: ControlPlane;
let world: ReturnType<typeof flexWorld>;
beforeEach(async () => {
  plane = new ControlPlane();
  world = flexWorld();
  await plane.create(resources.nodes, aNode("n1"));
});
afterEach(() => plane.stop());

const proberOf = () => flexVolumeProber({ ...plane.env, host: world.host }, { directory: driverDirectory });
const flexPod = (name: string) =>
  plane.create(resources.pods, aPod(name, "n1", { flexVolume: { driver: "v.io/d" } }));
const record = async () => uncertainVolumesOf(await plane.get(resources.nodes, "n1"));
const commands = () => world.calls.map((call) => call.split(" ")[1]);

/** A driver that attaches, and says what it has attached. */
function attaching(): TestFlexDriver {
  let attached = false;
  return (command) => {
    if (command === "attach") attached = true;
    if (command === "detach") attached = false;
    if (command === "isattached") return { status: "Success", attached };
    if (command === "init" || command === "attach" || command === "detach") {
      return { status: "Success", device: "/dev/x" };
    }
    return { status: "Not supported" };
  };
}

describe("attach and detach of a Flexvolume", () => {
  const start = () =>
    plane.running(
      startAttachDetachController(
        { ...plane.env, kube: plane.kube, plugins: [], prober: proberOf() },
        { gates },
      ),
    );

  it("attaches by the driver, reports its device, and detaches when no pod wants the volume (flexvolume.md 4.3; controllers.md A7)", async () => {
    await world.install("v.io~d", attaching());
    start();
    await flexPod("p");
    await plane.pass(5_000);
    const node = await plane.get(resources.nodes, "n1");
    expect(node?.status?.volumesAttached).toEqual([{ name: uniqueName, devicePath: "/dev/x" }]);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(130_000);
    expect(await plane.volumesAttached("n1")).toEqual([]);
    expect(commands().filter((command) => command !== "isattached")).toEqual([
      "init",
      "getvolumename",
      "attach",
      "detach",
    ]);
  });

  it("attaches once a driver is installed that was missing when the pod came (flexvolume.md 8)", async () => {
    start();
    await flexPod("p");
    await plane.pass(10_000);
    expect(await plane.volumesAttached("n1")).toEqual([]);
    await world.install("v.io~d", attaching());
    await plane.pass(20_000);
    expect(await plane.volumesAttached("n1")).toEqual([uniqueName]);
  });

  it("detaches nothing while the driver is missing, nor after it is back under a pod (flexvolume.md 8)", async () => {
    await world.install("v.io~d", attaching());
    start();
    await flexPod("p");
    await plane.pass(5_000);
    await world.host.removeTree(`${driverDirectory}/v.io~d`);
    await plane.merge(
      resources.pods,
      { name: "p", namespace: "default" },
      { metadata: { labels: { a: "b" } } },
    );
    await plane.pass(300_000);
    await world.install("v.io~d", attaching());
    await plane.pass(300_000);
    expect(await plane.volumesAttached("n1")).toEqual([uniqueName]);
    expect(commands()).not.toContain("detach");
  });

  // Off the Node's list, it was in no record: the next controller did not know that it is attached.
  it("detaches what an earlier controller was about to detach (contract.md C8; controllers.md A8)", async () => {
    const driver = attaching();
    let isFirst = true;
    await world.install("v.io~d", (command, args, signal) => {
      if (command !== "detach" || !isFirst) return driver(command, args, signal);
      isFirst = false;
      return hangs(command, args, signal);
    });
    const first = start();
    await flexPod("p");
    await plane.pass(5_000);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(5_000);
    expect(commands()).toContain("detach");
    expect(await plane.volumesAttached("n1")).toEqual([]);
    await plane.clock.run(first.stop());
    start();
    await plane.pass(60_000);
    expect(commands().filter((command) => command === "detach")).toHaveLength(2);
    expect(await record()).toEqual([]);
  });

  // The attach was in no record: the pod gone, the next controller did not know that it may be attached.
  it("detaches what an earlier controller was attaching when it ended (contract.md C8; controllers.md A8)", async () => {
    const driver = attaching();
    await world.install("v.io~d", (command, args, signal) =>
      command === "attach" ? hangs(command, args, signal) : driver(command, args, signal),
    );
    const first = start();
    await flexPod("p");
    await plane.pass(5_000);
    expect(commands()).toContain("attach");
    await plane.clock.run(first.stop());
    await plane.delete(resources.pods, "p", "default");
    start();
    await plane.pass(60_000);
    expect(commands()).toContain("detach");
    expect(await record()).toEqual([]);
  });

  // The list and the record went with the Node, and a Flexvolume driver has no list of what it has attached.
  it.each(["before", "after"])(
    "detaches what the agent of a deleted Node has found, which it made again %s the start, once that does not use it (contract.md C8; controllers.md A6)",
    async (when) => {
      await world.install("v.io~d", attaching());
      const first = start();
      await flexPod("p");
      await plane.pass(5_000);
      await plane.clock.run(first.stop());
      await plane.delete(resources.pods, "p", "default");
      await plane.delete(resources.nodes, "n1");
      const { metadata, ...node } = aNode("n1");
      const annotations = { ...metadata?.annotations, [uncertainVolumesAnnotation]: uniqueName };
      const status = { volumesInUse: [uniqueName] };
      const made = { ...node, metadata: { ...metadata, annotations }, status };
      const make = () => plane.clock.run(plane.kube.create(resources.nodes, made, { signal: plane.signal }));
      if (when === "before") await make();
      start();
      await plane.pass(5_000);
      if (when === "after") await make();
      await plane.pass(60_000);
      expect(commands()).not.toContain("detach");
      expect(await record()).toEqual([uniqueName]);
      await plane.setVolumesInUse("n1", []);
      await plane.pass(5_000);
      expect(commands().filter((command) => command === "detach")).toHaveLength(1);
      expect(await record()).toEqual([]);
    },
  );

  it("attaches nothing for a driver that does not (flexvolume.md 4.4)", async () => {
    await world.install("v.io~d", onlyInit({ attach: false }));
    start();
    await flexPod("p");
    await plane.pass(60_000);
    expect(await plane.volumesAttached("n1")).toEqual([]);
    expect(commands()).toEqual(["init"]);
  });

  it("attaches again what the driver says is no longer attached (controllers.md A7; flexvolume.md 4.3)", async () => {
    const driver = attaching();
    let isLost = false;
    await world.install("v.io~d", (command, args, signal) => {
      if (command === "attach") isLost = false;
      if (command === "isattached" && isLost) return { status: "Success", attached: false };
      return driver(command, args, signal);
    });
    start();
    await flexPod("p");
    await plane.pass(5_000);
    isLost = true;
    await plane.pass(130_000);
    expect(commands().filter((command) => command === "attach")).toHaveLength(2);
    expect(await plane.volumesAttached("n1")).toEqual([uniqueName]);
  });
});

describe("expansion of a Flexvolume", () => {
  /** A bound claim of 1Gi that asks for 8Gi. */
  async function grown() {
    plane.running(
      startExpandController({ ...plane.env, kube: plane.kube, plugins: [], prober: proberOf() }, { gates }),
    );
    await plane.create(resources.storageClasses, {
      metadata: { name: "grows" },
      provisioner: "v.io/d",
      allowVolumeExpansion: true,
    });
    const resourcesOf = (storage: string) => ({ requests: { storage } });
    const claim = await plane.create(resources.persistentVolumeClaims, {
      metadata: { name: "a", namespace: "default" },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: resourcesOf("1Gi"),
        storageClassName: "grows",
        volumeName: "v",
      },
    });
    await plane.create(resources.persistentVolumes, {
      metadata: { name: "v" },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "1Gi" },
        storageClassName: "grows",
        flexVolume: { driver: "v.io/d" },
        claimRef: { namespace: "default", name: "a", uid: claim.metadata.uid },
      },
    });
    const ref = { name: "a", namespace: "default" };
    const status = { phase: "Bound" as const, capacity: { storage: "1Gi" } };
    await plane.kube.patch(
      resources.persistentVolumeClaims,
      ref,
      { type: "merge", body: { status } },
      { subresource: "status", signal: plane.signal },
    );
    await plane.pass(1_000);
    await plane.merge(resources.persistentVolumeClaims, ref, { spec: { resources: resourcesOf("8Gi") } });
    await plane.pass(5_000);
    return {
      capacity: (await plane.get(resources.persistentVolumes, "v"))?.spec?.capacity?.storage,
      claim: await plane.get(resources.persistentVolumeClaims, "a", "default"),
    };
  }

  it("calls the driver where the controller has it (flexvolume.md 8; controllers.md Part C)", async () => {
    await world.install("v.io~d", (command) =>
      command === "expandvolume" ? { status: "Success", volumeNewSize: 2 ** 34 } : { status: "Success" },
    );
    const { capacity } = await grown();
    expect(capacity).toBe("17179869184");
    expect(world.calls.find((call) => call.includes("expandvolume"))).toMatch(/ 8589934592 1073741824$/);
  });

  it("is left to the node where the controller has no driver (flexvolume.md 8; controllers.md Part C)", async () => {
    const { capacity, claim } = await grown();
    expect(capacity).toBe("8Gi");
    expect(claim?.status?.conditions?.map(({ type }) => type)).toEqual(["FileSystemResizePending"]);
  });
});
