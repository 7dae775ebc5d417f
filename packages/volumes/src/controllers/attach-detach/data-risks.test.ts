/**
 * What would lose data if it went wrong in the attach/detach controller: a disk of one writer on two nodes, an attachment
 * that is taken from under its pod, a decision on what is no longer true. Source: docs/contract.md C1-C3.
 */
import { type KubeClient, resources } from "@longshore/kube";
import { featureGates } from "@longshore/runtime";
import { attachmentName, uncertainVolumesAnnotation } from "@longshore/storage";
import { afterEach, describe, expect, it } from "vitest";
import { volumeGates } from "../../csimigration/volume-gates.ts";
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
import { startAttachDetachController } from "./attach-detach-controller.ts";

const ebs = "kubernetes.io/aws-ebs";
const driver = "ebs.csi.aws.com";
const csiName = `kubernetes.io/csi/${driver}^vol-a`;
const inTreeName = `${ebs}/vol-a`;
const onFirst = attachmentName("vol-a", driver, "n1");
const claimVolume = (claimName: string) => ({ persistentVolumeClaim: { claimName } });

let planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes) await plane.stop();
  planes = [];
});

async function world(migrated?: string) {
  const plane = new ControlPlane();
  planes.push(plane);
  const cloud = new FakeCloud(["n1", "n2"]);
  for (const name of ["n1", "n2"]) {
    await plane.create(resources.nodes, aNode(name));
    await plane.create(resources.csiNodes, aCsiNode(name, [driver], migrated));
  }
  await aBoundEbsVolume(plane, "a", "vol-a");
  const start = (kube: KubeClient = plane.kube) =>
    plane.running(
      startAttachDetachController(
        { ...plane.env, kube, plugins: [csiPlugin(), awsEbsPlugin({ cloud })] },
        { gates: featureGates(volumeGates, { CSIMigrationAWS: true }) },
      ),
    );
  const nodesWithAttachment = async () =>
    (await plane.list(resources.volumeAttachments)).map(({ spec }) => spec.nodeName).sort();
  return { plane, cloud, start, nodesWithAttachment };
}

type Call = (method: string, plural: string, args: readonly unknown[]) => unknown;

/** A client that calls `before` first, and waits for it; a promise that never settles holds the call up. */
function watched(kube: KubeClient, before: Call): KubeClient {
  return new Proxy(kube, {
    get(target, property) {
      const method = Reflect.get(target, property).bind(target);
      if (property === "watch") return method;
      return async (...args: unknown[]) => {
        const { plural } = args[0] as { plural: string };
        await before(String(property), plural, args);
        return method(...args);
      };
    },
  });
}

/** A client whose watch of a resource shows each change so much later, in milliseconds. */
function laggingWatch(
  { kube, clock, signal }: ControlPlane,
  plural: string,
  lagMs: () => number,
): KubeClient {
  const watch: KubeClient["watch"] = (resource, options) => {
    const events = kube.watch(resource, options);
    const late = async function* () {
      for await (const event of events) {
        if (lagMs() > 0 && resource.plural === plural) await clock.sleep(lagMs(), options?.signal ?? signal);
        yield event;
      }
    };
    return late();
  };
  return new Proxy(kube, {
    get: (target, property) => (property === "watch" ? watch : Reflect.get(target, property).bind(target)),
  });
}

describe("a disk of one writer", () => {
  it("does not go to a second node while the first, where it is uncertain, may use it (controllers.md A7; contract.md C2)", async () => {
    const { plane, start, nodesWithAttachment } = await world(ebs);
    // CSI has attached it to n1 and the node uses it, but its status has lost the entry.
    await plane.create(resources.volumeAttachments, {
      metadata: { name: onFirst, finalizers: ["external-attacher/x"] },
      spec: { attacher: driver, nodeName: "n1", source: { persistentVolumeName: "pv-a" } },
      status: { attached: true },
    });
    await plane.setVolumesInUse("n1", [csiName]);
    await plane.create(resources.pods, aPod("q", "n2", claimVolume("a")));
    plane.running(startInstantAttacher(plane));
    start();
    await plane.pass(600_000);
    expect(await nodesWithAttachment()).toEqual(["n1"]);
    expect(await plane.eventsOn("Pod", "q")).toEqual([expect.stringContaining("Multi-Attach error")]);
    await plane.setVolumesInUse("n1", []);
    await plane.pass(1_000);
    await plane.merge(resources.volumeAttachments, { name: onFirst }, { metadata: { finalizers: null } });
    await plane.pass(10_000);
    expect(await nodesWithAttachment()).toEqual(["n2"]);
  });

  it("does not go to a second node while the first, whose record names it, uses it after a restart (controllers.md A7, A8; contract.md C2)", async () => {
    const { plane, cloud, start } = await world();
    // The earlier controller stopped after it had taken the volume off the list, and before it listed it again.
    const annotations = { [uncertainVolumesAnnotation]: inTreeName };
    await plane.merge(resources.nodes, { name: "n1" }, { metadata: { annotations } });
    await plane.setVolumesInUse("n1", [inTreeName]);
    await plane.create(resources.pods, aPod("q", "n2", claimVolume("a")));
    start();
    await plane.pass(100_000);
    expect(cloud.calls).toEqual([]);
    expect(await plane.eventsOn("Pod", "q")).toEqual([expect.stringContaining("Multi-Attach error")]);
    await plane.setVolumesInUse("n1", []);
    await plane.pass(10_000);
    expect(cloud.nodeOf("vol-a")).toBe("n2");
  });

  it("goes to one of two nodes that both wait for it, also when both were tried (controllers.md A7; contract.md C2)", async () => {
    const { plane, start } = await world(ebs);
    const attacher = plane.running(startInstantAttacher(plane));
    attacher.hold = true;
    start();
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    await plane.create(resources.pods, aPod("q", "n2", claimVolume("a")));
    // Both kubelets say that they wait for it, and both attaches time out.
    for (const node of ["n1", "n2"]) await plane.setVolumesInUse(node, [csiName]);
    await plane.pass(600_000);
    attacher.hold = false;
    for (const { metadata } of await plane.list(resources.volumeAttachments)) {
      const body = { status: { attached: true } };
      await plane.merge(resources.volumeAttachments, { name: metadata.name }, body, "status");
      await plane.pass(130_000);
      break;
    }
    await plane.pass(300_000);
    const listed = [...(await plane.volumesAttached("n1")), ...(await plane.volumesAttached("n2"))];
    expect(listed).toEqual([csiName]);
  });

  it("is detached under one key: attach to one node and detach from the other never overlap (controllers.md A7; contract.md C2)", async () => {
    const { plane, cloud, start } = await world();
    let running = 0;
    let most = 0;
    cloud.before = async () => {
      most = Math.max(most, ++running);
      await plane.clock.sleep(50, plane.signal);
      running--;
    };
    start();
    for (let round = 0; round < 10; round++) {
      const [from, to] = round % 2 === 0 ? ["n1", "n2"] : ["n2", "n1"];
      await plane.create(resources.pods, aPod(`p${round}`, from as string, claimVolume("a")));
      await plane.pass(100 + 37 * round);
      await plane.create(resources.pods, aPod(`q${round}`, to as string, claimVolume("a")));
      await plane.pass(100);
      for (const pod of ["p", "q"]) await plane.delete(resources.pods, `${pod}${round}`, "default");
    }
    await plane.pass(300_000);
    expect(most).toBe(1);
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
  });
});

describe("a restart", () => {
  async function attachedToN1() {
    const made = await world(ebs);
    const { plane, start } = made;
    plane.running(startInstantAttacher(plane));
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    const first = start();
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
    await plane.clock.run(first.stop());
    return made;
  }

  it.each(["pods", "nodes", "persistentvolumes", "persistentvolumeclaims", "csinodes", "volumeattachments"])(
    "detaches nothing while the list of %s has not come (controllers.md A2)",
    async (late) => {
      const { plane, start } = await attachedToN1();
      const writes: string[] = [];
      let release = () => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      start(
        watched(plane.kube, (method, plural) => {
          if (["create", "update", "patch", "delete"].includes(method)) writes.push(`${method} ${plural}`);
          return method === "list" && plural === late ? held : undefined;
        }),
      );
      await plane.pass(600_000);
      expect(writes).toEqual([]);
      release();
      await plane.pass(600_000);
      expect(writes).toEqual([]);
      expect(await plane.volumesAttached("n1")).toEqual([csiName]);
    },
  );

  it("detaches nothing while a pod of the node cannot be decided (controllers.md A2, A7)", async () => {
    const { plane, start } = await attachedToN1();
    // The claim is there, the API server does not say what the CSINode says.
    const writes: string[] = [];
    let isDown = true;
    start(
      watched(plane.kube, (method, plural) => {
        if (method === "delete" || method === "patch") writes.push(`${method} ${plural}`);
        if (isDown && method === "get" && plural === "csinodes") throw new Error("no answer");
      }),
    );
    await plane.pass(120_000);
    expect(writes).toEqual([]);
    isDown = false;
    await plane.pass(130_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
    expect(writes).toEqual([]);
  });

  it("keeps the disk for a pod that took another's place while no controller ran (controllers.md A3)", async () => {
    const { plane, start, nodesWithAttachment } = await attachedToN1();
    await plane.delete(resources.pods, "p", "default");
    await plane.create(resources.pods, aPod("q", "n1", claimVolume("a")));
    start();
    await plane.pass(60_000);
    expect(await nodesWithAttachment()).toEqual(["n1"]);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
  });

  it("detaches for a pod that was deleted between the list and the watch (controllers.md A3)", async () => {
    const { plane, start, nodesWithAttachment } = await attachedToN1();
    let deletes = 1;
    start(
      watched(plane.kube, (method, plural) => {
        // The list of pods has been answered: the VolumeAttachments are listed after it, or at the same time.
        if (method !== "list" || plural !== "volumeattachments" || deletes-- <= 0) return undefined;
        return plane.kube.delete(
          resources.pods,
          { name: "p", namespace: "default" },
          { signal: plane.signal, gracePeriodSeconds: 0 },
        );
      }),
    );
    await plane.pass(10_000);
    expect(await nodesWithAttachment()).toEqual([]);
    expect(await plane.volumesAttached("n1")).toEqual([]);
  });
});

describe("a Node that was deleted while its machine runs", () => {
  it("keeps its volume while the deletion has not reached the cache, and when it was made again (controllers.md A7; contract.md C2)", async () => {
    const { plane, cloud, start } = await world();
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    let lagMs = 0;
    start(laggingWatch(plane, "nodes", () => lagMs));
    await plane.pass(2_000);
    lagMs = 5_000;
    // In the cache the node does not use it yet.
    await plane.setVolumesInUse("n1", [inTreeName]);
    await plane.delete(resources.nodes, "n1");
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(1_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1"]);
    await plane.clock.run(
      plane.kube.create(
        resources.nodes,
        { apiVersion: "v1", kind: "Node", ...aNode("n1"), status: { volumesInUse: [inTreeName] } },
        plane,
      ),
    );
    await plane.pass(120_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1"]);
    lagMs = 0;
    await plane.setVolumesInUse("n1", []);
    await plane.pass(10_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1", "detach vol-a i-n1"]);
  });
});

describe("a pod that is being decided", () => {
  it("holds up the detaches of its node, and no longer when it goes meanwhile (controllers.md A7)", async () => {
    const { plane, cloud, start } = await world();
    await aBoundEbsVolume(plane, "b", "vol-b");
    let isSlow = false;
    const kube = watched(plane.kube, (method, plural) =>
      isSlow && method === "get" && plural === "csinodes"
        ? plane.clock.sleep(5_000, plane.signal)
        : undefined,
    );
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    start(kube);
    await plane.pass(2_000);
    isSlow = true;
    await plane.create(resources.pods, aPod("q", "n1", claimVolume("b")));
    await plane.pass(1_000);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(1_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1"]);
    isSlow = false;
    await plane.delete(resources.pods, "q", "default");
    await plane.pass(10_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1", "detach vol-a i-n1"]);
  });
});

describe("a pod that cannot be decided", () => {
  it("is tried again after half a second when it was decided before (controllers.md A3)", async () => {
    const { plane, start } = await world(ebs);
    plane.running(startInstantAttacher(plane));
    let isDown = true;
    let reads = 0;
    const kube = watched(plane.kube, (method, plural) => {
      if (method !== "get" || plural !== "csinodes") return;
      reads++;
      if (isDown) throw new Error("no answer");
    });
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    start(kube);
    await plane.pass(60_000);
    isDown = false;
    await plane.pass(130_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
    isDown = true;
    // The CSINode changes: who attaches is decided again.
    await plane.merge(
      resources.csiNodes,
      { name: "n1" },
      { metadata: { annotations: { "example.com/a": "b" } } },
    );
    await plane.pass(100);
    isDown = false;
    reads = 0;
    await plane.pass(600);
    expect(reads).toBe(1);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
  });
});

describe("what the caches show", () => {
  it("a detach is decided on a live look at the node, not on a status that is older (controllers.md A7; node-agent.md 8)", async () => {
    const { plane, cloud, start } = await world();
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    let uses = false;
    const kube = watched(plane.kube, async (method, plural) => {
      // The node begins to use it after the cache has looked.
      if (uses && method === "get" && plural === "nodes") {
        uses = false;
        const body = { status: { volumesInUse: [inTreeName] } };
        await plane.kube.patch(
          resources.nodes,
          { name: "n1" },
          { type: "merge", body },
          { signal: plane.signal, subresource: "status" },
        );
      }
    });
    start(kube);
    await plane.pass(2_000);
    uses = true;
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(600_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
    expect(await plane.volumesAttached("n1")).toEqual([inTreeName]);
    await plane.setVolumesInUse("n1", []);
    await plane.pass(130_000);
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
  });

  it("nothing is detached before the write that takes it off the node's list has succeeded (controllers.md A7, A8)", async () => {
    const { plane, cloud, start } = await world();
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    let isLost = false;
    const kube = watched(plane.kube, (method, plural) => {
      if (isLost && method === "patch" && plural === "nodes") throw new Error("the connection was lost");
    });
    start(kube);
    await plane.pass(2_000);
    isLost = true;
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(600_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1"]);
    isLost = false;
    await plane.pass(10_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1", "detach vol-a i-n1"]);
  });

  it("disks that come and go on one node at once do not write over one another (controllers.md A8)", async () => {
    const { plane, cloud, start } = await world();
    const disks = Array.from({ length: 12 }, (_, index) => `d${index}`);
    for (const disk of disks) await aBoundEbsVolume(plane, disk, `vol-${disk}`);
    cloud.before = () => plane.clock.sleep(20, plane.signal);
    start();
    for (const disk of disks) {
      await plane.create(resources.pods, aPod(disk, "n1", claimVolume(disk)));
      await plane.pass(7);
    }
    for (const disk of disks.filter((_, index) => index % 3 === 0)) {
      await plane.delete(resources.pods, disk, "default");
      await plane.pass(3);
    }
    await plane.pass(130_000);
    const expected = disks.filter((_, index) => index % 3 !== 0).map((disk) => `${ebs}/vol-${disk}`);
    expect(await plane.volumesAttached("n1")).toEqual(expected.sort());
  });
});

describe("the cost of one attach by CSI", () => {
  it("is one create, one read of the CSINode and one write of the Node (csi-plugin.md 4)", async () => {
    const { plane, start } = await world(ebs);
    plane.running(startInstantAttacher(plane));
    const calls: string[] = [];
    const kube = watched(plane.kube, (method, plural) => {
      if (plural !== "events") calls.push(`${method} ${plural}`);
    });
    const counting = new Proxy(kube, {
      get(target, property) {
        const method = Reflect.get(target, property);
        if (property !== "watch") return method;
        return (...args: unknown[]) => {
          calls.push(`watch ${(args[0] as { plural: string }).plural}`);
          return (method as (...all: unknown[]) => unknown)(...args);
        };
      },
    });
    start(counting);
    await plane.pass(5_000);
    calls.length = 0;
    await plane.create(resources.pods, aPod("p", "n1", claimVolume("a")));
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
    expect(calls).toEqual(["get csinodes", "create volumeattachments", "patch nodes"]);
    calls.length = 0;
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([]);
    // Off the list, a live look at the node and its CSINode, the DELETE, and off the record.
    expect(calls).toEqual([
      "patch nodes",
      "get nodes",
      "get csinodes",
      "delete volumeattachments",
      "patch nodes",
    ]);
  });
});
