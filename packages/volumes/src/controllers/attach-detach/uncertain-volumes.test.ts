/**
 * What the attach/detach controller records of attachments that are under way, and what it takes for evidence that
 * nothing is attached: no path takes over a disk that the other may still hold (C1). docs/contract.md; decision 0003.
 */
import { type KubeClient, KubeTransportError, resources } from "@longshore/kube";
import { featureGates } from "@longshore/runtime";
import {
  attachmentName,
  changingOverAnnotation,
  uncertainVolumesAnnotation,
  uncertainVolumesOf,
} from "@longshore/storage";
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
import { startAttachDetachController } from "./attach-detach-controller.ts";

const ebs = "kubernetes.io/aws-ebs";
const driver = "ebs.csi.aws.com";
const inTreeName = `${ebs}/vol-a`;
const csiName = `kubernetes.io/csi/${driver}^vol-a`;
const attachment = attachmentName("vol-a", driver, "n1");
const claimVolume = (claimName: string) => ({ persistentVolumeClaim: { claimName } });
const hang = () => new Promise<never>(() => {});

let world: World;
afterEach(() => world.plane.stop());

/** One node, one volume, and a cloud whose calls can be held up. */
class World {
  readonly plane = new ControlPlane();
  readonly cloud = new FakeCloud(["n1"]);
  /** Answers of the list; throws while the provider throttles it. */
  list: () => void = () => {};
  lists = 0;

  static async create(migrated?: string): Promise<World> {
    world = new World();
    const { plane, cloud } = world;
    const listDisks = cloud.listDisks.bind(cloud);
    cloud.listDisks = async () => {
      world.lists++;
      world.list();
      return listDisks();
    };
    await plane.create(resources.nodes, aNode("n1"));
    await plane.create(resources.csiNodes, aCsiNode("n1", [driver], migrated));
    await aBoundEbsVolume(plane, "a", "vol-a");
    plane.running(startInstantAttacher(plane));
    return world;
  }

  /** A controller, and how it is killed: from then on nothing that it has begun goes on. */
  start(kube: KubeClient = this.plane.kube): { kill(): void } {
    let dead = false;
    const mortal = <T extends object>(target: T): T =>
      new Proxy(target, {
        get(_target, property) {
          const member = Reflect.get(target, property) as unknown;
          if (typeof member !== "function") return member;
          if (property === "watch") return member.bind(target);
          return (...args: unknown[]) => {
            if (dead) return hang();
            const answer = Reflect.apply(member, target, args) as unknown;
            return answer instanceof Promise ? answer.then((value) => (dead ? hang() : value)) : answer;
          };
        },
      });
    startAttachDetachController(
      {
        ...this.plane.env,
        kube: mortal(kube),
        plugins: [csiPlugin(), awsEbsPlugin({ cloud: mortal(this.cloud) })],
      },
      { gates: featureGates(volumeGates, { CSIMigrationAWS: true }) },
    );
    return {
      kill: () => {
        dead = true;
      },
    };
  }

  async record(): Promise<readonly string[]> {
    return uncertainVolumesOf(await this.plane.get(resources.nodes, "n1"));
  }

  aPod(name = "p"): Promise<unknown> {
    return this.plane.create(resources.pods, aPod(name, "n1", claimVolume("a")));
  }

  flip(migrated: string): Promise<unknown> {
    const annotations = { "storage.alpha.kubernetes.io/migrated-plugins": migrated };
    return this.plane.merge(resources.csiNodes, { name: "n1" }, { metadata: { annotations } });
  }

  async attachments(): Promise<readonly string[]> {
    return (await this.plane.list(resources.volumeAttachments)).map(({ metadata }) => metadata.name);
  }
}

describe("the node's record of uncertain volumes", () => {
  it("has what its status does not list, from before the attach until after the detach (controllers.md A8)", async () => {
    const { plane, cloud, record } = bound(await World.create());
    const seen: string[] = [];
    cloud.before = async (call) => {
      const node = await plane.kube.get(resources.nodes, { name: "n1" }, { signal: plane.signal });
      const listed = (node?.status?.volumesAttached ?? []).map(({ name }) => name);
      seen.push(`${call}: status [${listed}], record [${uncertainVolumesOf(node)}]`);
    };
    world.start();
    await world.aPod();
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([inTreeName]);
    expect(await record()).toEqual([]);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(2_000);
    expect(seen).toEqual([
      `attach vol-a i-n1: status [], record [${inTreeName}]`,
      `detach vol-a i-n1: status [], record [${inTreeName}]`,
    ]);
    expect(await plane.volumesAttached("n1")).toEqual([]);
    expect(await record()).toEqual([]);
  });

  it("is written before an in-tree attach, or the attach waits (controllers.md A8)", async () => {
    const { plane, cloud } = bound(await World.create());
    let isDown = true;
    const kube = new Proxy(plane.kube, {
      get(target, property) {
        const member = Reflect.get(target, property).bind(target);
        if (property !== "patch") return member;
        return (resource: { plural: string }, ...rest: unknown[]) => {
          if (isDown && resource.plural === "nodes") throw new KubeTransportError("the connection was lost");
          return member(resource, ...rest);
        };
      },
    });
    world.start(kube);
    await world.aPod();
    await plane.pass(10_000);
    expect(cloud.calls).toEqual([]);
    isDown = false;
    await plane.pass(2_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1"]);
    expect(await plane.volumesAttached("n1")).toEqual([inTreeName]);
  });

  it("is written back when another client has changed it (controllers.md A8)", async () => {
    const { plane, cloud, record } = bound(await World.create());
    cloud.before = (call) => (call.startsWith("detach") ? hang() : undefined);
    world.start();
    await world.aPod();
    await plane.pass(2_000);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(2_000);
    expect(await record()).toEqual([inTreeName]);
    const annotations = { [uncertainVolumesAnnotation]: null };
    await plane.merge(resources.nodes, { name: "n1" }, { metadata: { annotations } });
    await plane.pass(1_000);
    expect(await record()).toEqual([inTreeName]);
  });

  it("keeps a volume whose detach has failed, until one is known to have been done (controllers.md A8)", async () => {
    const { plane, cloud, record } = bound(await World.create());
    world.start();
    await world.aPod();
    await plane.pass(2_000);
    // The call fails for the caller; half a minute later the cloud has done it nevertheless.
    let isDone = false;
    cloud.before = (call) => {
      if (call.startsWith("detach") && !isDone) throw new CloudError("Unavailable", "timed out");
    };
    await plane.delete(resources.pods, "p", "default");
    for (let second = 0; second < 30; second++) {
      await plane.pass(1_000);
      expect([...(await record()), ...(await plane.volumesAttached("n1"))]).toEqual([inTreeName]);
    }
    isDone = true;
    await plane.pass(150_000);
    expect([...(await record()), ...(await plane.volumesAttached("n1"))]).toEqual([]);
  });

  it("keeps a volume that the provider says is not attached, until a detach has confirmed it (controllers.md A8)", async () => {
    const { plane, cloud, record } = bound(await World.create());
    world.start();
    await world.aPod();
    await plane.pass(2_000);
    await plane.setVolumesInUse("n1", [inTreeName]);
    await plane.delete(resources.pods, "p", "default");
    // An answer from before the attach, as of a provider whose reads lag behind.
    const describeDisk = cloud.describeDisk.bind(cloud);
    cloud.describeDisk = async (diskId) => {
      const disk = await describeDisk(diskId);
      return disk && { ...disk, attachments: [] };
    };
    await plane.pass(120_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
    expect([...(await record()), ...(await plane.volumesAttached("n1"))]).toEqual([inTreeName]);
    await plane.setVolumesInUse("n1", []);
    await plane.pass(5_000);
    expect(cloud.nodeOf("vol-a")).toBeUndefined();
    expect(await record()).toEqual([]);
  });

  it("has a CSI volume as well while it is detached: a node may not list VolumeAttachments (controllers.md A8)", async () => {
    const { plane, record } = bound(await World.create(ebs));
    world.start();
    await world.aPod();
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
    // The driver takes its time.
    const metadata = { finalizers: ["external-attacher/x"] };
    await plane.merge(resources.volumeAttachments, { name: attachment }, { metadata });
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([]);
    expect(await record()).toEqual([csiName]);
    await plane.merge(resources.volumeAttachments, { name: attachment }, { metadata: { finalizers: null } });
    await plane.pass(2_000);
    expect(await record()).toEqual([]);
  });
});

describe("a controller that stops at once", () => {
  it.each(["before its detach has an effect", "before its detach is confirmed"])(
    "%s leaves the disk to its successor, who ends the detach in-tree before CSI attaches (controllers.md A6, A8)",
    async (when) => {
      const { plane, cloud, record } = bound(await World.create());
      const first = world.start();
      await world.aPod();
      await plane.pass(2_000);
      cloud.before = (call) => {
        if (!call.startsWith("detach")) return undefined;
        first.kill();
        return when.includes("effect") ? hang() : undefined;
      };
      await plane.delete(resources.pods, "p", "default");
      await plane.pass(2_000);
      expect(await plane.volumesAttached("n1")).toEqual([]);
      expect(await record()).toEqual([inTreeName]);
      // The node switches nevertheless, and the provider throttles the list.
      cloud.before = () => {};
      cloud.calls.length = 0;
      await world.flip(ebs);
      await world.aPod("q");
      world.list = () => {
        throw new CloudError("Throttled", "slow down");
      };
      let attachmentsAtDetach: readonly string[] | undefined;
      cloud.before = async (call) => {
        if (call.startsWith("detach")) attachmentsAtDetach = await world.attachments();
      };
      world.start();
      await plane.pass(1_000);
      expect(cloud.calls).toEqual(["detach vol-a i-n1"]);
      expect(attachmentsAtDetach).toEqual([]);
      expect(cloud.nodeOf("vol-a")).toBeUndefined();
      expect(await world.attachments()).toEqual([]);
      world.list = () => {};
      await plane.pass(10_000);
      expect(await world.attachments()).toEqual([attachment]);
      expect(await plane.volumesAttached("n1")).toEqual([csiName]);
      expect(cloud.calls).toEqual(["detach vol-a i-n1"]);
    },
  );

  it("in the midst of an attach, and whose pod goes, leaves the disk to its successor (controllers.md A6, A8)", async () => {
    const { plane, cloud, record } = bound(await World.create());
    const first = world.start();
    cloud.before = (call) => {
      if (call.startsWith("attach")) first.kill();
    };
    await world.aPod();
    await plane.pass(2_000);
    expect(cloud.nodeOf("vol-a")).toBe("n1");
    expect(await record()).toEqual([inTreeName]);
    await plane.delete(resources.pods, "p", "default");
    world.list = () => {
      throw new CloudError("Throttled", "slow down");
    };
    world.start();
    await plane.pass(2_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1", "detach vol-a i-n1"]);
    expect(await record()).toEqual([]);
  });
});

describe("while the provider does not say what is attached", () => {
  const throttled = () => {
    throw new CloudError("Throttled", "slow down");
  };

  it("CSI attaches nothing of the plugin, the pod gets one event that says why, and the list is asked for with back-off (controllers.md A8)", async () => {
    // A controller that keeps no record has left the disk attached.
    const { plane, cloud } = bound(await World.create(ebs));
    await cloud.attachDisk("vol-a", "i-n1");
    cloud.calls.length = 0;
    world.list = throttled;
    await world.aPod();
    world.start();
    await plane.pass(60_000);
    expect(await world.attachments()).toEqual([]);
    expect(world.lists).toBeLessThan(10);
    expect(await plane.eventsOn("Pod", "p")).toEqual([
      expect.stringMatching(
        /^Warning FailedAttachVolume: Volume "pv-a" is not attached to node n1 yet: .* kubernetes\.io\/aws-ebs .*slow down/,
      ),
    ]);
    world.list = () => {};
    await plane.pass(130_000);
    expect(cloud.calls).toEqual(["detach vol-a i-n1"]);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
  });

  it("CSI keeps what it has a VolumeAttachment for, and the in-tree code attaches as before (controllers.md A8)", async () => {
    const { plane, cloud } = bound(await World.create(ebs));
    await plane.create(resources.nodes, aNode("n2"));
    await plane.create(resources.csiNodes, aCsiNode("n2", [driver]));
    await aBoundEbsVolume(plane, "b", "vol-b");
    cloud.describeInstance = async (nodeName) => ({
      instanceId: `i-${nodeName}`,
      nodeName,
      zone: "us-east-1a",
      region: "us-east-1",
      attachLimit: 39,
    });
    world.list = throttled;
    await plane.create(resources.volumeAttachments, {
      metadata: { name: attachment },
      spec: { attacher: driver, nodeName: "n1", source: { persistentVolumeName: "pv-a" } },
    });
    await world.aPod();
    await plane.create(resources.pods, aPod("q", "n2", claimVolume("b")));
    world.start();
    await plane.pass(2_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
    expect(cloud.calls).toEqual(["attach vol-b i-n2"]);
  });
});

describe("evidence at the last moment", () => {
  it("no in-tree attach on a node that changed over after it was decided (controllers.md A8; contract.md C1)", async () => {
    const { plane, cloud } = bound(await World.create());
    let flip: (() => Promise<unknown>) | undefined = async () => {
      const annotations = { "storage.alpha.kubernetes.io/migrated-plugins": ebs };
      const body = { metadata: { annotations } };
      await plane.kube.patch(
        resources.csiNodes,
        { name: "n1" },
        { type: "merge", body },
        { signal: plane.signal },
      );
    };
    const kube = new Proxy(plane.kube, {
      get(target, property) {
        const member = Reflect.get(target, property).bind(target);
        if (property !== "patch") return member;
        return async (resource: { plural: string }, ...rest: unknown[]) => {
          const answer = await member(resource, ...rest);
          if (resource.plural === "nodes") await flip?.();
          flip = undefined;
          return answer;
        };
      },
    });
    world.start(kube);
    await world.aPod();
    await plane.pass(5_000);
    expect(cloud.calls).toEqual([]);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
  });

  it("no in-tree attach on a node that was created again, while its record lacks the volume (controllers.md A8; contract.md C1)", async () => {
    const { plane, cloud, record } = bound(await World.create());
    let isRecreated = false;
    let isDown = false;
    const recreate = async () => {
      isRecreated = true;
      isDown = true;
      const node = { ...aNode("n1"), apiVersion: "v1", kind: "Node" } as const;
      await plane.kube.delete(resources.nodes, { name: "n1" }, { signal: plane.signal });
      await plane.kube.create(resources.nodes, node, { signal: plane.signal });
    };
    const kube = new Proxy(plane.kube, {
      get(target, property) {
        const member = Reflect.get(target, property).bind(target);
        if (property !== "get" && property !== "patch") return member;
        return async (resource: { plural: string }, ...rest: unknown[]) => {
          const isOfNode = resource.plural === "nodes";
          if (isOfNode && property === "get" && !isRecreated) await recreate();
          if (isOfNode && property === "patch" && isDown)
            throw new KubeTransportError("the connection was lost");
          return member(resource, ...rest);
        };
      },
    });
    world.start(kube);
    await world.aPod();
    await plane.pass(10_000);
    expect(isRecreated).toBe(true);
    expect(cloud.calls).toEqual([]);
    isDown = false;
    let recordAtAttach: readonly string[] = [];
    cloud.before = async () => {
      const node = await plane.kube.get(resources.nodes, { name: "n1" }, { signal: plane.signal });
      recordAtAttach = uncertainVolumesOf(node);
    };
    await plane.pass(20_000);
    expect(recordAtAttach).toEqual([inTreeName]);
    expect(cloud.calls).toEqual(["attach vol-a i-n1"]);
    expect(await plane.volumesAttached("n1")).toEqual([inTreeName]);
    expect(await record()).toEqual([]);
  });

  it("no in-tree attach on a node whose agent has announced the change, until it has thought better of it (controllers.md A8; contract.md C1)", async () => {
    const { plane, cloud, record } = bound(await World.create());
    const announce = (value: string | null) =>
      plane.merge(
        resources.nodes,
        { name: "n1" },
        { metadata: { annotations: { [changingOverAnnotation]: value } } },
      );
    await announce(ebs);
    world.start();
    await world.aPod();
    await plane.pass(10_000);
    expect(cloud.calls).toEqual([]);
    expect(await record()).toEqual([]);
    await announce(null);
    await plane.pass(20_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1"]);
  });

  it("no in-tree attach over a VolumeAttachment that came unseen: CSI detaches it first (controllers.md A8; contract.md C1)", async () => {
    const { plane, cloud } = bound(await World.create());
    world.start();
    await plane.pass(1_000);
    await plane.create(resources.volumeAttachments, {
      metadata: { name: attachment, finalizers: ["external-attacher/x"] },
      spec: { attacher: driver, nodeName: "n1", source: { persistentVolumeName: "pv-a" } },
    });
    await world.aPod();
    await plane.pass(5_000);
    expect(cloud.calls).toEqual([]);
    await plane.merge(resources.volumeAttachments, { name: attachment }, { metadata: { finalizers: null } });
    await plane.pass(5_000);
    expect(cloud.calls).toEqual(["attach vol-a i-n1"]);
    expect(await world.attachments()).toEqual([]);
  });

  it("no in-tree detach of a disk that CSI has a VolumeAttachment for (controllers.md A8; contract.md C1)", async () => {
    const { plane, cloud, record } = bound(await World.create(ebs));
    await cloud.attachDisk("vol-a", "i-n1");
    cloud.calls.length = 0;
    const annotations = { [uncertainVolumesAnnotation]: inTreeName };
    await plane.merge(resources.nodes, { name: "n1" }, { metadata: { annotations } });
    await plane.create(resources.volumeAttachments, {
      metadata: { name: attachment },
      spec: { attacher: driver, nodeName: "n1", source: { persistentVolumeName: "pv-a" } },
    });
    await world.aPod();
    world.start();
    await plane.pass(5_000);
    expect(cloud.calls).toEqual([]);
    expect(await record()).toEqual([]);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
  });
});

function bound(made: World) {
  return { plane: made.plane, cloud: made.cloud, record: () => made.record() };
}
