/** The attach/detach controller against the embedded API server, under the virtual clock. */
import { resources } from "@longshore/kube";
import { type FeatureGates, featureGates } from "@longshore/runtime";
import { attachmentName } from "@longshore/storage";
import { afterEach, describe, expect, it } from "vitest";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import { CloudError } from "../../framework/ports.ts";
import { awsEbsPlugin } from "../../plugins/aws-ebs/aws-ebs-plugin.ts";
import { csiPlugin } from "../../plugins/csi/csi-plugin.ts";
import {
  aBoundEbsVolume,
  aCsiNode,
  aNode,
  aPod,
  ControlPlane,
  startInstantAttacher,
} from "../../testing/control-plane.ts";
import { FakeCloud } from "../../testing/fake-cloud.ts";
import { type AttachDetachOptions, startAttachDetachController } from "./attach-detach-controller.ts";

const ebs = "kubernetes.io/aws-ebs";
const driver = "ebs.csi.aws.com";
const on: FeatureGates = featureGates(volumeGates, { CSIMigrationAWS: true });
const off: FeatureGates = featureGates(volumeGates);
const csiName = (handle: string) => `kubernetes.io/csi/${driver}^${handle}`;
const inTreeName = (volumeID: string) => `${ebs}/${volumeID}`;
const claimVolume = (claimName: string) => ({ persistentVolumeClaim: { claimName } });

let planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes) await plane.stop();
  planes = [];
});

function world(nodes: readonly string[] = ["n1", "n2"]) {
  const plane = new ControlPlane();
  planes.push(plane);
  const cloud = new FakeCloud(nodes);
  const start = (options: Partial<AttachDetachOptions> = {}) =>
    plane.running(
      startAttachDetachController(
        { ...plane.env, kube: plane.kube, plugins: [csiPlugin(), awsEbsPlugin({ cloud })] },
        { gates: on, ...options },
      ),
    );
  return { plane, cloud, start };
}

async function withNodes(plane: ControlPlane, nodes: readonly string[], migrated?: string): Promise<void> {
  for (const name of nodes) {
    await plane.create(resources.nodes, aNode(name));
    await plane.create(resources.csiNodes, aCsiNode(name, [driver], migrated));
  }
}

describe("attach and detach", () => {
  it("attaches in-tree on a node that is not migrated, reports it, and detaches when the pod is gone (controllers.md A7, A8)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await aBoundEbsVolume(plane, "a", "aws://us-east-1a/vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    start();
    await plane.pass(2_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
    expect(await plane.volumesAttached("n1")).toEqual([inTreeName("aws://us-east-1a/vol-a")]);
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);

    await plane.delete(resources.pods, "p", "default");
    await plane.pass(2_000);
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
    expect(await plane.volumesAttached("n1")).toEqual([]);
  });

  it("attaches by CSI on a migrated node and never calls the cloud (csi-plugin.md 4, 6; controllers.md A5)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"], ebs);
    await aBoundEbsVolume(plane, "a", "aws://us-east-1a/vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    plane.running(startInstantAttacher(plane));
    start();
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName("vol-a")]);
    const [attachment] = await plane.list(resources.volumeAttachments);
    expect(attachment?.metadata.name).toBe(attachmentName("vol-a", driver, "n1"));
    expect(attachment?.spec).toEqual({
      attacher: driver,
      nodeName: "n1",
      source: { persistentVolumeName: "pv-a" },
    });
    expect(cloud.calls).toEqual([]);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(2_000);
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);
    expect(await plane.volumesAttached("n1")).toEqual([]);
  });

  it("detaches before it attaches when a pod moved (controllers.md A7)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1", "n2"]);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    start();
    await plane.pass(2_000);
    await plane.create(resources.pods, aPod("q", "n2", claimVolume("a")));
    await plane.pass(1_000);
    expect(await plane.eventsOn("Pod", "q")).toEqual([
      'Warning FailedAttachVolume: Multi-Attach error for volume "pv-a" Volume is already used by pod(s) p',
    ]);
    cloud.calls.length = 0;
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(2_000);
    expect(cloud.calls).toEqual(["detach vol-a i-n1", "attach vol-a i-n2"]);
  });

  it("attaches a shared in-tree disk to several nodes, and detaches it, at the same time (controllers.md A7)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1", "n2"]);
    await aBoundEbsVolume(plane, "a", "vol-a", { pv: { accessModes: ["ReadOnlyMany"] } });
    const call = async (name: string, instanceId: string) => {
      cloud.calls.push(`${name} ${instanceId}`);
      await plane.clock.sleep(100_000, plane.signal);
      return { instanceId, devicePath: "/dev/a" };
    };
    cloud.attachDisk = (_disk, instanceId) => call("attach", instanceId);
    cloud.detachDisk = async (_disk, instanceId) => void (await call("detach", instanceId));
    start({ verifyPeriodMs: 0 });
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    await plane.create(resources.pods, aPod("q", "n2", claimVolume("a")));
    await plane.pass(2_000);
    expect(cloud.calls.sort()).toEqual(["attach i-n1", "attach i-n2"]);
    await plane.pass(100_000);
    cloud.calls.length = 0;
    for (const pod of ["p", "q"]) await plane.delete(resources.pods, pod, "default");
    await plane.pass(2_000);
    expect(cloud.calls.sort()).toEqual(["detach i-n1", "detach i-n2"]);
  });

  it("writes the node's status without the volume before it detaches, and with it again when that fails (controllers.md A7; node-agent.md 8)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    start();
    await plane.pass(2_000);
    const listedAtDetach: (readonly string[])[] = [];
    let failures = 1;
    cloud.before = async (call) => {
      if (!call.startsWith("detach")) return;
      const node = await plane.kube.get(resources.nodes, { name: "n1" }, { signal: plane.signal });
      listedAtDetach.push((node?.status?.volumesAttached ?? []).map(({ name }) => name));
      if (failures-- > 0) throw new CloudError("Throttled", "slow down");
    };
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(300);
    expect(listedAtDetach).toEqual([[]]);
    expect(await plane.volumesAttached("n1")).toEqual([inTreeName("vol-a")]);
    await plane.pass(2_000);
    expect(listedAtDetach).toEqual([[], []]);
    expect(await plane.volumesAttached("n1")).toEqual([]);
  });

  it("detaches what a failed attach may have left behind (controllers.md A6, A7)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    cloud.before = (call) => {
      if (call.startsWith("attach")) throw new CloudError("Unavailable", "no answer");
    };
    start();
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([]);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(2_000);
    expect(cloud.calls.filter((call) => call.startsWith("detach"))).toEqual(["detach vol-a i-n1"]);
  });

  it("writes the second node's status although the first one's fails (controllers.md A8)", async () => {
    const { plane, start } = world();
    await withNodes(plane, ["n1", "n2"]);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await aBoundEbsVolume(plane, "b", "vol-b");
    const { kube } = plane;
    let failing = true;
    const patched = new Proxy(kube, {
      get(target, property) {
        if (property !== "patch") return Reflect.get(target, property).bind(target);
        return (...args: Parameters<typeof kube.patch>) => {
          if (failing && args[1].name === "n1") return Promise.reject(new Error("refused"));
          return target.patch(...args);
        };
      },
    });
    Object.assign(plane, { kube: patched });
    start();
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    await plane.create(resources.pods, aPod("q", "n2", claimVolume("b")));
    await plane.pass(3_000);
    expect(await plane.volumesAttached("n1")).toEqual([]);
    expect(await plane.volumesAttached("n2")).toEqual([inTreeName("vol-b")]);
    failing = false;
    await plane.pass(3_000);
    expect(await plane.volumesAttached("n1")).toEqual([inTreeName("vol-a")]);
  });
});

describe("safe detach", () => {
  it("leaves a volume that the node uses, for as long as it takes (controllers.md A7; node-agent.md 8)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    start();
    await plane.pass(2_000);
    await plane.setVolumesInUse("n1", [inTreeName("vol-a")]);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(3_600_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
    await plane.setVolumesInUse("n1", []);
    await plane.pass(1_000);
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
  });

  it("detaches by force after six minutes where that is switched on, without asking the node (controllers.md A1, A7)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    start({ forceDetachOnTimeout: true });
    await plane.pass(2_000);
    await plane.setVolumesInUse("n1", [inTreeName("vol-a")]);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(359_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
    await plane.pass(2_000);
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
  });

  it("detaches by force only from a node that is not Ready (controllers.md A10)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    const says = (status: "True" | "Unknown") =>
      plane.merge(
        resources.nodes,
        { name: "n1" },
        { status: { conditions: [{ type: "Ready", status }] } },
        "status",
      );
    await says("True");
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    start({ forceDetachOnTimeout: true });
    await plane.pass(2_000);
    await plane.setVolumesInUse("n1", [inTreeName("vol-a")]);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(3_600_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
    await says("Unknown");
    await plane.pass(1_000);
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
  });

  it.each([
    ["a node that is out of service", "taint"],
    ["a node that was deleted", "delete"],
  ])("detaches from %s (controllers.md A10)", async (_what, how) => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    start();
    await plane.pass(2_000);
    await plane.setVolumesInUse("n1", [inTreeName("vol-a")]);
    if (how === "delete") await plane.delete(resources.nodes, "n1");
    else {
      const taints = [
        { key: "node.kubernetes.io/out-of-service", effect: "NoExecute", value: "nodeshutdown" },
      ];
      await plane.merge(resources.nodes, { name: "n1" }, { spec: { taints } });
    }
    await plane.pass(1_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1"); // The pod is still there.
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(1_000);
    if (how === "delete") {
      // Its agent may make it again, as an agent does that runs.
      expect(cloud.nodeOf("vol-a")).toBe("n1");
      await plane.pass(40_000);
    }
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
  });
});

describe("who attaches", () => {
  it("asks the API server for the CSINode, once for each new attach (controllers.md A5)", async () => {
    const { plane, start } = world();
    await withNodes(plane, ["n1"], ebs);
    await aBoundEbsVolume(plane, "a", "vol-a");
    plane.running(startInstantAttacher(plane));
    const gets = countCalls(plane, (method, plural) => method === "get" && plural === "csinodes");
    start();
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    await plane.pass(10_000);
    expect(gets()).toBe(1);
    await plane.merge(
      resources.pods,
      { name: "p", namespace: "default" },
      { metadata: { labels: { x: "y" } } },
    );
    await plane.pass(10_000);
    expect(gets()).toBe(1);
  });

  it("refuses a plugin that is on the node's list while the controller's gates are off, and says so (controllers.md A5)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"], ebs);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    start({ gates: off });
    await plane.pass(10_000);
    expect(cloud.calls).toEqual([]);
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);
    const [event] = await plane.eventsOn("Pod", "p");
    expect(event).toContain("Warning FailedAttachVolume");
    expect(event).toContain(`in-tree plugin ${ebs} is migrated on node n1`);
    // The node goes back to in-tree: the volume is decided again at once.
    await plane.merge(
      resources.csiNodes,
      { name: "n1" },
      {
        metadata: { annotations: { "storage.alpha.kubernetes.io/migrated-plugins": "" } },
      },
    );
    await plane.pass(1_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
  });

  it("attaches in the OpenShift mode by the node alone, whatever the gates (controllers.md A5; migration-controllers.md B2)", async () => {
    const { plane, start } = world();
    await withNodes(plane, ["n1"], ebs);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    plane.running(startInstantAttacher(plane));
    start({ gates: off, forceMigrationOf: [ebs] });
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName("vol-a")]);
  });

  it("stays in-tree in the OpenShift mode on a node that lists nothing, or has no CSINode (controllers.md A5; migration-controllers.md B2)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await plane.create(resources.nodes, aNode("n2"));
    for (const [id, node] of [
      ["a", "n1"],
      ["b", "n2"],
    ] as const) {
      await aBoundEbsVolume(plane, id, `vol-${id}`);
      await plane.create(resources.pods, aPod(`p-${id}`, node, claimVolume(id)));
    }
    start({ gates: off, forceMigrationOf: [ebs] });
    await plane.pass(2_000);
    expect(cloud.calls.toSorted()).toEqual(["attach vol-a i-n1", "attach vol-b i-n2"]);
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);
  });

  it("detaches in the OpenShift mode by CSI what CSI attached, though the gates went off before the node's (migration-controllers.md B1, B2)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"], ebs);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    plane.running(startInstantAttacher(plane));
    const first = start();
    await plane.pass(2_000);
    await plane.clock.run(first.stop());
    start({ gates: off, forceMigrationOf: [ebs] });
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName("vol-a")]);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(2_000);
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);
    expect(await plane.volumesAttached("n1")).toEqual([]);
    expect(cloud.calls).toEqual([]);
  });

  it("detaches in the OpenShift mode in-tree what was attached so, though the node changes over first (migration-controllers.md B1, B2)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    plane.running(startInstantAttacher(plane));
    start({ gates: off, forceMigrationOf: [ebs] });
    await plane.pass(2_000);
    await plane.delete(resources.pods, "p", "default");
    const annotations = { "storage.alpha.kubernetes.io/migrated-plugins": ebs };
    await plane.merge(resources.csiNodes, { name: "n1" }, { metadata: { annotations } });
    await plane.pass(2_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1", "detach vol-a i-n1"]);
    await plane.create(resources.pods, aPod("q", "n1", claimVolume("a")));
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName("vol-a")]);
    expect(cloud.calls).toHaveLength(2);
  });

  it("waits for a listed plugin's driver and attaches when it registers (controllers.md A5)", async () => {
    const { plane, start } = world();
    await plane.create(resources.nodes, aNode("n1"));
    await plane.create(resources.csiNodes, aCsiNode("n1", [], ebs));
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    plane.running(startInstantAttacher(plane));
    start();
    await plane.pass(5_000);
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);
    const [event] = await plane.eventsOn("Pod", "p");
    expect(event).toContain(`is migrated on node n1 but driver ${driver} is not installed`);
    await plane.merge(
      resources.csiNodes,
      { name: "n1" },
      { spec: { drivers: [{ name: driver, nodeID: "id-n1" }] } },
    );
    await plane.pass(1_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName("vol-a")]);
  });

  it("takes a missing CSINode for a node that is not migrated, unless the driver has attachments there (controllers.md A5)", async () => {
    const { plane, cloud, start } = world();
    await plane.create(resources.nodes, aNode("n1"));
    await plane.create(resources.nodes, aNode("n2"));
    await aBoundEbsVolume(plane, "a", "vol-a");
    await aBoundEbsVolume(plane, "b", "vol-b");
    await aBoundEbsVolume(plane, "c", "vol-c");
    await plane.create(resources.volumeAttachments, {
      metadata: { name: attachmentName("vol-c", driver, "n2") },
      spec: { attacher: driver, nodeName: "n2", source: { persistentVolumeName: "pv-c" } },
    });
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    await plane.create(resources.pods, aPod("q", "n2", claimVolume("b")));
    start();
    await plane.pass(5_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1"]);
    expect((await plane.eventsOn("Pod", "q"))[0]).toContain('CSINode "n2" is missing although driver');
    // Nor is anything of the driver detached there.
    expect(await plane.list(resources.volumeAttachments)).toHaveLength(1);
    expect((await plane.eventsOn("Node", "n2"))[0]).toContain("its CSINode is missing although driver");
    await plane.create(resources.csiNodes, aCsiNode("n2", [driver]));
    await plane.pass(130_000);
    expect(cloud.nodeOf("vol-b")).toBe("n2");
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);
  });

  const flipped = {
    metadata: { annotations: { "storage.alpha.kubernetes.io/migrated-plugins": ebs } },
  };

  it("what the node uses in-tree stays in-tree although the node was flipped without a drain (contract.md C1)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    const first = start();
    await plane.pass(2_000);
    const uses = (names: readonly string[]) =>
      plane.merge(resources.nodes, { name: "n1" }, { status: { volumesInUse: names } }, "status");
    await uses([inTreeName("vol-a")]);
    await plane.merge(resources.csiNodes, { name: "n1" }, flipped);
    await plane.pass(2_000);
    await plane.clock.run(first.stop());
    start();
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([inTreeName("vol-a")]);
    await plane.delete(resources.pods, "p", "default");
    await uses([]);
    await plane.pass(2_000);
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);
    expect(cloud.calls).toEqual(["attach vol-a i-n1", "detach vol-a i-n1"]);
  });

  it("takes off what is attached in-tree and not in use before CSI attaches it to the flipped node (controllers.md A5, A7; contract.md C1)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    start();
    await plane.pass(2_000);
    await plane.merge(resources.csiNodes, { name: "n1" }, flipped);
    // The kubelet waits for the CSI form already: its name alone protects nothing.
    await plane.merge(
      resources.nodes,
      { name: "n1" },
      { status: { volumesInUse: ["kubernetes.io/csi/ebs.csi.aws.com^vol-a"] } },
      "status",
    );
    await plane.pass(5_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1", "detach vol-a i-n1"]);
    expect((await plane.list(resources.volumeAttachments)).map((va) => va.spec.nodeName)).toEqual(["n1"]);
  });

  it("CSI attaches nothing to the flipped node while the in-tree detach fails: no disk is listed twice (contract.md C1)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    start();
    plane.running(startInstantAttacher(plane));
    await plane.pass(2_000);
    cloud.before = (call) => {
      if (call.startsWith("detach")) throw new CloudError("Unavailable", "the cloud is down");
    };
    await plane.merge(resources.csiNodes, { name: "n1" }, flipped);
    await plane.pass(30_000);
    expect(cloud.calls).toContain("detach vol-a i-n1");
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);
    cloud.before = () => {};
    await plane.pass(130_000);
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
    expect(await plane.volumesAttached("n1")).toEqual([csiName("vol-a")]);
  });

  it("decides a volume with nothing attached again when the CSINode changes (controllers.md A5)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await aBoundEbsVolume(plane, "a", "vol-a");
    cloud.before = (call) => {
      if (call.startsWith("attach")) throw new CloudError("LimitExceeded", "too many");
    };
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    plane.running(startInstantAttacher(plane));
    start();
    await plane.pass(1_000);
    await plane.merge(
      resources.csiNodes,
      { name: "n1" },
      {
        metadata: { annotations: { "storage.alpha.kubernetes.io/migrated-plugins": ebs } },
      },
    );
    await plane.pass(130_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName("vol-a")]);
    // What the failed attach may have left was taken off in-tree first.
    expect(cloud.calls.at(-1)).toBe("detach vol-a i-n1");
  });
});

describe("restart", () => {
  it("detaches by its name what no pod wants any more, CSI as well as in-tree (controllers.md A6)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"], ebs);
    const names = [csiName("vol-a"), inTreeName("vol-b")];
    await plane.create(resources.volumeAttachments, {
      metadata: { name: attachmentName("vol-a", driver, "n1") },
      spec: { attacher: driver, nodeName: "n1", source: { persistentVolumeName: "gone" } },
    });
    const volumesAttached = names.map((name) => ({ name, devicePath: "" }));
    await plane.merge(resources.nodes, { name: "n1" }, { status: { volumesAttached } }, "status");
    start();
    await plane.pass(5_000);
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);
    expect(cloud.calls).toEqual(["detach vol-b i-n1"]);
    expect(await plane.volumesAttached("n1")).toEqual([]);
  });

  describe("an inline volume whose pod vanished while the controller was down", () => {
    /** Attached, used by the node, and its pod gone when the first controller has stopped; the node's status is `after`. */
    async function vanished(migrated: string | undefined, after: (name: string) => object) {
      const { plane, cloud, start } = world();
      await withNodes(plane, ["n1"], migrated);
      const inline = { awsElasticBlockStore: { volumeID: "vol-i", fsType: "ext4" } };
      await plane.create(resources.pods, aPod("p", "n1", inline));
      plane.running(startInstantAttacher(plane));
      const first = start();
      await plane.pass(2_000);
      const [name = ""] = await plane.volumesAttached("n1");
      expect(name).toBe(migrated === undefined ? inTreeName("vol-i") : csiName("vol-i"));
      await plane.clock.run(first.stop());
      await plane.delete(resources.pods, "p", "default");
      const setStatus = (status: object) =>
        plane.merge(resources.nodes, { name: "n1" }, { status }, "status");
      await setStatus(after(name));
      start();
      await plane.pass(5_000);
      return { plane, cloud, setStatus };
    }
    const isLeft = async ({ plane, cloud }: Pick<ReturnType<typeof world>, "plane" | "cloud">) => {
      const attachments = await plane.list(resources.volumeAttachments);
      return attachments.length > 0 || cloud.nodeOf("vol-i") !== undefined;
    };

    it.each([
      ["in-tree", undefined],
      ["by CSI", ebs],
    ])(
      "is detached %s by the name that the node's status has (controllers.md A6)",
      async (_how, migrated) => {
        expect(await isLeft(await vanished(migrated, () => ({})))).toBe(false);
      },
    );

    it("is detached by CSI as its VolumeAttachment says, where the status has lost it (controllers.md A6)", async () => {
      expect(await isLeft(await vanished(ebs, () => ({ volumesAttached: null })))).toBe(false);
    });

    it("is left attached in-tree where the status has lost it: no object says whose disk it is (controllers.md A6)", async () => {
      expect(await isLeft(await vanished(undefined, () => ({ volumesAttached: null })))).toBe(true);
    });

    it.each([
      ["in-tree", undefined],
      ["by CSI", ebs],
    ])("stays attached %s until the node uses it no more (controllers.md A6, A7)", async (_how, migrated) => {
      const world = await vanished(migrated, (name) => ({ volumesInUse: [name] }));
      await world.plane.pass(600_000);
      expect(await isLeft(world)).toBe(true);
      await world.setStatus({ volumesInUse: null });
      await world.plane.pass(5_000);
      expect(await isLeft(world)).toBe(false);
    });
  });

  it("keeps every attachment that a pod's unknown volume could be, and detaches the others (controllers.md A7)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await aBoundEbsVolume(plane, "known", "vol-known");
    const volumesAttached = ["vol-unknown", "vol-known"].map((id) => ({
      name: inTreeName(id),
      devicePath: "",
    }));
    await plane.merge(resources.nodes, { name: "n1" }, { status: { volumesAttached } }, "status");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("lost-claim")));
    start();
    await plane.pass(600_000);
    // The disk of another claim's volume cannot be the lost claim's.
    expect(cloud.calls).toEqual(["detach vol-known i-n1"]);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(5_000);
    expect(cloud.calls).toEqual(["detach vol-known i-n1", "detach vol-unknown i-n1"]);
  });

  it("finds an in-tree attachment that no object records, unless it is CSI's or of no volume (controllers.md A6)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await aBoundEbsVolume(plane, "a", "aws://us-east-1a/vol-a");
    await aBoundEbsVolume(plane, "c", "vol-c");
    await plane.create(resources.volumeAttachments, {
      metadata: { name: attachmentName("vol-c", driver, "n1"), finalizers: ["external-attacher/x"] },
      spec: { attacher: driver, nodeName: "n1", source: { persistentVolumeName: "pv-c" } },
    });
    for (const disk of ["vol-a", "vol-c", "vol-foreign"]) await cloud.attachDisk(disk, "i-n1");
    cloud.calls.length = 0;
    start();
    await plane.pass(2_000);
    expect(cloud.calls).toEqual(["detach vol-a i-n1"]);
  });

  it("finds it on a node whose Node was deleted and is made again as migrated, before CSI attaches there (controllers.md A6)", async () => {
    const { plane, cloud, start } = world();
    await aBoundEbsVolume(plane, "a", "aws://us-east-1a/vol-a");
    await cloud.attachDisk("vol-a", "i-n1");
    cloud.calls.length = 0;
    plane.running(startInstantAttacher(plane));
    // It has lost its record with the Node, and asks the provider while there is none.
    start();
    await plane.pass(2_000);
    expect(cloud.calls).toEqual([]);
    await withNodes(plane, ["n1"], ebs);
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    await plane.pass(5_000);
    expect(cloud.calls).toEqual(["detach vol-a i-n1"]);
    expect(await plane.volumesAttached("n1")).toEqual([csiName("vol-a")]);
  });

  it("an in-tree detach also deletes the VolumeAttachment that migration would have made (controllers.md A9)", async () => {
    const { plane, cloud, start } = world();
    await withNodes(plane, ["n1"]);
    await aBoundEbsVolume(plane, "a", "aws://us-east-1a/vol-a");
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    start();
    await plane.pass(2_000);
    await plane.create(resources.volumeAttachments, {
      metadata: { name: attachmentName("vol-a", driver, "n1") },
      spec: { attacher: driver, nodeName: "n1", source: { persistentVolumeName: "pv-a" } },
    });
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(2_000);
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);
  });
});

describe("at rest", () => {
  it("waits for no timer on the way from a pod to its volume in the node's status (controllers.md A1, A8)", async () => {
    const { plane, start } = world();
    await withNodes(plane, ["n1"], ebs);
    await aBoundEbsVolume(plane, "a", "vol-a");
    plane.running(startInstantAttacher(plane));
    start();
    await plane.pass(1_000);
    const beganMs = plane.clock.monotonicMs();
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    await plane.pass(0);
    expect(await plane.volumesAttached("n1")).toEqual([csiName("vol-a")]);
    expect(plane.clock.monotonicMs()).toBe(beganMs);
  });

  it("sends no request while nothing changes (controllers.md A1)", async () => {
    const { plane, start } = world();
    await withNodes(plane, ["n1"], ebs);
    await aBoundEbsVolume(plane, "a", "vol-a");
    plane.running(startInstantAttacher(plane));
    // The caches list and watch again from time to time; everything else counts.
    const calls = countCalls(plane, (method) => method !== "watch" && method !== "list");
    start();
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    await plane.pass(30_000);
    const before = calls();
    await plane.pass(600_000);
    expect(calls() - before).toBe(0);
  });
});

/** Counts the calls of that kind that components started from now on make. */
function countCalls(plane: ControlPlane, counts: (method: string, plural: string) => boolean): () => number {
  let calls = 0;
  const { kube } = plane;
  const counting = new Proxy(kube, {
    get(target, property) {
      const method = Reflect.get(target, property).bind(target);
      return (resource: { readonly plural: string }, ...rest: unknown[]) => {
        if (counts(String(property), resource.plural)) calls++;
        return method(resource, ...rest);
      };
    },
  });
  Object.assign(plane, { kube: counting });
  return () => calls;
}
