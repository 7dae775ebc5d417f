/** Which pods and nodes count, what is said to whose pods, and what is found again: the controller under the virtual clock. */
import { resources } from "@longshore/kube";
import { featureGates } from "@longshore/runtime";
import { afterEach, describe, expect, it } from "vitest";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import { CloudError } from "../../framework/ports.ts";
import { awsEbsPlugin } from "../../plugins/aws-ebs/aws-ebs-plugin.ts";
import { csiPlugin } from "../../plugins/csi/csi-plugin.ts";
import { aBoundEbsVolume, aCsiNode, aNode, aPod, ControlPlane } from "../../testing/control-plane.ts";
import { FakeCloud } from "../../testing/fake-cloud.ts";
import { type AttachDetachOptions, startAttachDetachController } from "./attach-detach-controller.ts";

const gates = featureGates(volumeGates, { CSIMigrationAWS: true });
const managed = "volumes.kubernetes.io/controller-managed-attach-detach";
const keepTerminated = "volumes.kubernetes.io/keep-terminated-pod-volumes";
const inTreeName = (volumeID: string) => `kubernetes.io/aws-ebs/${volumeID}`;
const claimVolume = (claimName: string) => ({ persistentVolumeClaim: { claimName } });

const planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes.splice(0)) await plane.stop();
});

/** Nodes n1 and n2, volume `a` on the disk `vol-a`, and the controller. */
async function world(options: Partial<AttachDetachOptions> = {}) {
  const plane = new ControlPlane();
  planes.push(plane);
  const cloud = new FakeCloud(["n1", "n2"]);
  const launch = () =>
    startAttachDetachController(
      { ...plane.env, kube: plane.kube, plugins: [csiPlugin(), awsEbsPlugin({ cloud })] },
      { gates, ...options },
    );
  for (const name of ["n1", "n2"]) {
    await plane.create(resources.nodes, aNode(name));
    await plane.create(resources.csiNodes, aCsiNode(name, []));
  }
  await aBoundEbsVolume(plane, "a", "vol-a");
  const start = () => plane.running(launch());
  const podOn = (name: string, node: string) =>
    plane.create(resources.pods, aPod(name, node, claimVolume("a")));
  const ends = (name: string) =>
    plane.merge(resources.pods, { name, namespace: "default" }, { status: { phase: "Succeeded" } }, "status");
  return { plane, cloud, start, launch, podOn, ends };
}

describe("nodes", () => {
  it("one that is not managed gets nothing attached before it is (controllers.md A3)", async () => {
    const { plane, cloud, start, podOn } = await world();
    await plane.merge(resources.nodes, { name: "n1" }, { metadata: { annotations: { [managed]: null } } });
    start();
    await podOn("p", "n1");
    await plane.pass(120_000);
    expect(cloud.calls).toEqual([]);
    await plane.merge(resources.nodes, { name: "n1" }, { metadata: { annotations: { [managed]: "true" } } });
    await plane.pass(2_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
  });

  it("one that comes after its pod gets the volume then (controllers.md A3)", async () => {
    const { plane, cloud, start, podOn } = await world();
    await plane.delete(resources.nodes, "n1");
    start();
    await podOn("p", "n1");
    await plane.pass(60_000);
    expect(cloud.calls.filter((call) => call.startsWith("attach"))).toEqual([]);
    await plane.create(resources.nodes, aNode("n1"));
    await plane.pass(5_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
  });

  it("one that is made again has its list restored (controllers.md A8)", async () => {
    const { plane, cloud, start, podOn } = await world();
    start();
    await podOn("p", "n1");
    await plane.pass(2_000);
    await plane.delete(resources.nodes, "n1");
    await plane.pass(1_000);
    await plane.create(resources.nodes, aNode("n1"));
    await plane.pass(5_000);
    expect(await plane.volumesAttached("n1")).toEqual([inTreeName("vol-a")]);
    expect(cloud.calls.filter((call) => call.startsWith("detach"))).toEqual([]);
  });
});

describe("pods", () => {
  it("the volume of one that has ended is detached (controllers.md A3)", async () => {
    const { plane, cloud, start, podOn, ends } = await world();
    start();
    await podOn("p", "n1");
    await plane.pass(2_000);
    await ends("p");
    await plane.pass(2_000);
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
  });

  it("on a node that keeps the volumes of ended pods it stays (controllers.md A3; node-agent.md 8)", async () => {
    const { plane, cloud, start, podOn, ends } = await world();
    const metadata = { annotations: { [keepTerminated]: "true" } };
    await plane.merge(resources.nodes, { name: "n1" }, { metadata });
    start();
    await podOn("p", "n1");
    await plane.pass(2_000);
    await ends("p");
    await plane.pass(600_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(2_000);
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
  });

  it("two of a node share the attachment, which goes with the last (controllers.md A3, A7)", async () => {
    const { plane, cloud, start, podOn } = await world();
    start();
    await podOn("p", "n1");
    await podOn("q", "n1");
    await plane.pass(2_000);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(60_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
    await plane.delete(resources.pods, "q", "default");
    await plane.pass(2_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1", "detach vol-a i-n1"]);
  });

  it("one whose claim is not bound yet gets the volume once it is (controllers.md A3, A4)", async () => {
    const { plane, cloud, start, podOn } = await world();
    const claim = { name: "a", namespace: "default" };
    await plane.merge(resources.persistentVolumeClaims, claim, { status: { phase: "Pending" } }, "status");
    start();
    await podOn("p", "n1");
    await plane.pass(60_000);
    expect(cloud.calls).toEqual([]);
    await plane.merge(resources.persistentVolumeClaims, claim, { status: { phase: "Bound" } }, "status");
    await plane.pass(2_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
  });

  it("none gets the volume of a claim that its volume does not name (controllers.md A4)", async () => {
    const { plane, cloud, start, podOn } = await world();
    const spec = { claimRef: { uid: "of-an-earlier-claim" } };
    await plane.merge(resources.persistentVolumes, { name: "pv-a" }, { spec });
    start();
    await podOn("p", "n1");
    await plane.pass(600_000);
    expect(cloud.calls).toEqual([]);
  });
});

describe("what pods are shown", () => {
  it("an attachment is an event, once (controllers.md A7)", async () => {
    const { plane, start, podOn } = await world();
    start();
    await podOn("p", "n1");
    await plane.pass(600_000);
    expect(await plane.eventsOn("Pod", "p")).toEqual([
      'Normal SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume "pv-a" ',
    ]);
  });

  it("a refusal of the cloud is an event of every pod that waits, and tried again (controllers.md A7)", async () => {
    const { plane, cloud, start, podOn } = await world();
    let isFull = true;
    cloud.before = (call) => {
      if (isFull && call.startsWith("attach")) throw new CloudError("LimitExceeded", "no slot is free");
    };
    start();
    await podOn("p", "n1");
    await podOn("q", "n1");
    await plane.pass(10_000);
    for (const pod of ["p", "q"]) {
      const [event] = await plane.eventsOn("Pod", pod);
      expect(event).toMatch(/^Warning FailedAttachVolume: .*"pv-a".*no slot is free/);
    }
    isFull = false;
    await plane.pass(120_000);
    expect(await plane.volumesAttached("n1")).toEqual([inTreeName("vol-a")]);
  });

  it("users in other namespaces are counted, not named (controllers.md A7)", async () => {
    const { plane, start, podOn } = await world();
    const pod = aPod("p", "n1", { awsElasticBlockStore: { volumeID: "vol-a" } });
    await plane.create(resources.namespaces, { metadata: { name: "other" } });
    await plane.create(resources.pods, { ...pod, metadata: { name: "p", namespace: "other" } });
    start();
    await plane.pass(2_000);
    await podOn("q", "n2");
    await plane.pass(600_000);
    expect(await plane.eventsOn("Pod", "q")).toEqual([
      'Warning FailedAttachVolume: Multi-Attach error for volume "pv-a" Volume is already used by 1 pod(s) in different namespaces',
    ]);
  });
});

describe("what the cloud has detached by itself", () => {
  const lose = (cloud: FakeCloud) => {
    const disk = cloud.disks.get("vol-a");
    if (disk !== undefined) disk.attachment = undefined;
  };

  it("is attached again within a minute (controllers.md A1, A7)", async () => {
    const { plane, cloud, start, podOn } = await world();
    start();
    await podOn("p", "n1");
    await plane.pass(2_000);
    lose(cloud);
    await plane.pass(65_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
  });

  it("is not looked for where that is switched off (controllers.md A1)", async () => {
    const { plane, cloud, start, podOn } = await world({ verifyPeriodMs: 0 });
    start();
    await podOn("p", "n1");
    await plane.pass(2_000);
    lose(cloud);
    await plane.pass(600_000);
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
  });

  it("is not declared detached while the cloud does not answer (controllers.md A7)", async () => {
    const { plane, cloud, start, podOn } = await world();
    start();
    await podOn("p", "n1");
    await plane.pass(2_000);
    cloud.describeDisk = async () => {
      throw new CloudError("Unavailable", "no answer");
    };
    cloud.listDisks = cloud.describeDisk as never;
    await plane.pass(600_000);
    expect(await plane.volumesAttached("n1")).toEqual([inTreeName("vol-a")]);
    expect(cloud.calls).toEqual(["attach vol-a i-n1"]);
  });
});

describe("the next controller", () => {
  it("attaches nothing a second time, and keeps the node's list (controllers.md A6)", async () => {
    const { plane, cloud, launch, start, podOn } = await world();
    const first = launch();
    await podOn("p", "n1");
    await plane.pass(2_000);
    await plane.clock.run(first.stop());
    start();
    await plane.pass(60_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1"]);
    expect(await plane.volumesAttached("n1")).toEqual([inTreeName("vol-a")]);
  });

  it("detaches what the last one's pod has left, once the node uses it no more (controllers.md A6)", async () => {
    const { plane, cloud, launch, start, podOn } = await world();
    const first = launch();
    await podOn("p", "n1");
    await plane.pass(2_000);
    await plane.setVolumesInUse("n1", [inTreeName("vol-a")]);
    await plane.clock.run(first.stop());
    await plane.delete(resources.pods, "p", "default");
    start();
    await plane.pass(600_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
    await plane.setVolumesInUse("n1", []);
    await plane.pass(2_000);
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
  });
});
