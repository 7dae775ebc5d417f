/**
 * The attach/detach controller under random pods, flips, crashes, failures and lost replies, with a
 * kubelet and an attacher that keep to the agreement. The contract is checked at every call of the
 * cloud (C1, C2), and at the end nothing may be stranded (C4, C8).
 */
import { type KubeClient, resources, type Stored, type VolumeAttachment } from "@longshore/kube";
import { featureGates, SeededRandom } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import { CloudError, type DiskCloud } from "../../framework/ports.ts";
import { awsEbsPlugin } from "../../plugins/aws-ebs/aws-ebs-plugin.ts";
import { csiPlugin } from "../../plugins/csi/csi-plugin.ts";
import { aBoundEbsVolume, aCsiNode, aNode, aPod, ControlPlane } from "../../testing/control-plane.ts";
import { FakeCloud } from "../../testing/fake-cloud.ts";
import { startAttachDetachController } from "./attach-detach-controller.ts";

const ebs = "kubernetes.io/aws-ebs";
const driver = "ebs.csi.aws.com";
const nodes = ["n1", "n2", "n3"];
const disks = ["a", "b"];
const gates = featureGates(volumeGates, { CSIMigrationAWS: true });

/** Which path attached each disk; both paths reach the cloud through here. */
class Referee {
  readonly cloud = new FakeCloud(nodes);
  readonly violations: string[] = [];
  /** Disks mounted by pods, `disk@node`. */
  readonly mounted = new Set<string>();
  readonly #attachedBy = new Map<string, string>();
  fault: () => "none" | "before" | "after" = () => "none";

  by(path: "in-tree" | "csi"): DiskCloud {
    const { cloud } = this;
    const faulty = async <T>(work: () => Promise<T>): Promise<T> => {
      const fault = this.fault();
      if (fault === "before") throw new CloudError("Throttled", "slow down");
      const answer = await work();
      if (fault === "after") throw new CloudError("Unavailable", "the answer was lost");
      return answer;
    };
    return new Proxy(cloud, {
      get: (target, property) => {
        if (property === "attachDisk") {
          return (disk: string, instance: string) =>
            faulty(async () => {
              const wasOn = target.nodeOf(disk);
              const attached = await target.attachDisk(disk, instance);
              if (wasOn === undefined) this.#attachedBy.set(disk, path);
              return attached;
            });
        }
        if (property === "detachDisk") {
          return (disk: string, instance: string) =>
            faulty(async () => {
              const node = target.nodeOf(disk);
              if (node === instance.slice(2)) this.#judgeDetach(disk, node, path);
              await target.detachDisk(disk, instance);
            });
        }
        const value = Reflect.get(target, property);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  #judgeDetach(disk: string, node: string, path: string): void {
    if (this.mounted.has(`${disk}@${node}`))
      this.violations.push(`C2: ${disk} detached from ${node} under a mount`);
    const attachedBy = this.#attachedBy.get(disk);
    if (attachedBy !== path)
      this.violations.push(`C1: ${disk} attached by ${attachedBy}, detached by ${path}`);
  }
}

/** A client that is dead from the moment it is cut. */
function cuttable(kube: KubeClient): { readonly kube: KubeClient; cut(): void } {
  let dead = false;
  const hang = () => new Promise<never>(() => {});
  return {
    cut: () => {
      dead = true;
    },
    kube: new Proxy(kube, {
      get(target, property) {
        const method = Reflect.get(target, property).bind(target);
        if (property === "watch") return method;
        return async (...args: unknown[]) => {
          if (dead) return hang();
          const answer = await method(...args);
          return dead ? hang() : answer;
        };
      },
    }),
  };
}

/** What the kubelet and the attacher of a driver do, one step at a time. */
class World {
  readonly plane: ControlPlane;
  readonly referee = new Referee();
  readonly migrated = new Set<string>();
  readonly #random: SeededRandom;
  #controller: { cut(): void } | undefined;

  constructor(seed: number) {
    this.plane = new ControlPlane(seed);
    this.#random = new SeededRandom(seed);
  }

  below(bound: number, purpose: string): number {
    return this.#random.below(bound, purpose);
  }

  async setUp(): Promise<void> {
    for (const name of nodes) {
      await this.plane.create(resources.nodes, aNode(name));
      await this.plane.create(resources.csiNodes, aCsiNode(name, [driver]));
    }
    for (const disk of disks) await aBoundEbsVolume(this.plane, disk, `aws://us-east-1a/vol-${disk}`);
    this.startController();
  }

  startController(): void {
    const client = cuttable(this.plane.kube);
    let dead = false;
    const cloud = this.referee.by("in-tree");
    const mortal = new Proxy(cloud, {
      get(target, property) {
        const method = Reflect.get(target, property);
        return (...args: unknown[]) => (dead ? new Promise(() => {}) : method(...args));
      },
    });
    startAttachDetachController(
      { ...this.plane.env, kube: client.kube, plugins: [csiPlugin(), awsEbsPlugin({ cloud: mortal })] },
      { gates },
    );
    this.#controller = {
      cut() {
        dead = true;
        client.cut();
      },
    };
  }

  killController(): void {
    this.#controller?.cut();
  }

  crashController(): void {
    this.killController();
    this.startController();
  }

  /** One look of every kubelet at its pods: in use before mounted, and mounted only when reported attached. */
  async kubelets(): Promise<void> {
    const pods = await this.plane.list(resources.pods);
    for (const name of nodes) {
      const wanted = pods
        .filter((pod) => pod.spec?.nodeName === name)
        .map((pod) => pod.metadata.name.slice(0, 1));
      for (const mount of [...this.referee.mounted]) {
        const [disk, node] = mount.split("@") as [string, string];
        if (node === name && !wanted.includes(disk.slice(4))) this.referee.mounted.delete(mount);
      }
      const uses = new Set<string>();
      const node = await this.plane.get(resources.nodes, name);
      const attached = (node?.status?.volumesAttached ?? []).map((volume) => volume.name);
      for (const disk of wanted) {
        // C1 over C5: what is attached in-tree stays so until it is gone.
        const csi = this.migrated.has(name) && !attached.includes(inTreeName(disk));
        uses.add(csi ? csiName(disk) : inTreeName(disk));
      }
      await this.plane.setVolumesInUse(name, [...uses]);
      const after = await this.plane.get(resources.nodes, name);
      const reported = new Set((after?.status?.volumesAttached ?? []).map((volume) => volume.name));
      for (const disk of wanted) {
        if (![...uses].some((use) => use.includes(`vol-${disk}`) && reported.has(use))) continue;
        if (this.referee.cloud.nodeOf(`vol-${disk}`) !== name) {
          this.referee.violations.push(`vol-${disk} is reported on ${name} but is not there`);
        }
        this.referee.mounted.add(`vol-${disk}@${name}`);
      }
    }
  }

  /** One look of the driver's attacher at every VolumeAttachment. */
  async attacher(): Promise<void> {
    const cloud = this.referee.by("csi");
    for (const attachment of await this.plane.list(resources.volumeAttachments)) {
      await this.#serve(cloud, attachment).catch(() => {});
    }
  }

  async #serve(cloud: DiskCloud, attachment: Stored<VolumeAttachment>): Promise<void> {
    const { name, finalizers = [], deletionTimestamp } = attachment.metadata;
    const disk = `vol-${(attachment.spec.source.persistentVolumeName ?? "").slice(3)}`;
    const instance = `i-${attachment.spec.nodeName}`;
    const { signal } = this.plane;
    if (deletionTimestamp !== undefined) {
      await cloud.detachDisk(disk, instance, signal);
      await this.plane.merge(resources.volumeAttachments, { name }, { metadata: { finalizers: null } });
    } else if (finalizers.length === 0) {
      await this.plane.merge(
        resources.volumeAttachments,
        { name },
        { metadata: { finalizers: ["external-attacher/x"] } },
      );
    } else if (attachment.status?.attached !== true) {
      await cloud.attachDisk(disk, instance, signal);
      await this.plane.merge(resources.volumeAttachments, { name }, { status: { attached: true } }, "status");
    }
  }

  /** Flips a node as its agent does: only when nothing of the plugin is attached, mounted or on its way. */
  async flip(name: string): Promise<void> {
    const node = await this.plane.get(resources.nodes, name);
    const attachments = await this.plane.list(resources.volumeAttachments);
    const pods = await this.plane.list(resources.pods);
    if ((node?.status?.volumesAttached ?? []).length > 0 || (node?.status?.volumesInUse ?? []).length > 0)
      return;
    if (attachments.some(({ spec }) => spec.nodeName === name)) return;
    if (pods.some((pod) => pod.spec?.nodeName === name)) return;
    if (!this.migrated.delete(name)) this.migrated.add(name);
    const list = this.migrated.has(name) ? ebs : "";
    const annotations = { "storage.alpha.kubernetes.io/migrated-plugins": list };
    await this.plane.merge(resources.csiNodes, { name }, { metadata: { annotations } });
  }

  /** A pod for the disk somewhere, or the end of the one it has. */
  async movePod(disk: string): Promise<void> {
    const present = (await this.plane.list(resources.pods)).find((pod) => pod.metadata.name.startsWith(disk));
    if (present !== undefined) {
      await this.plane.delete(resources.pods, present.metadata.name, "default");
      return;
    }
    const node = nodes[this.below(nodes.length, "node")] as string;
    const volume = { persistentVolumeClaim: { claimName: disk } };
    await this.plane.create(resources.pods, aPod(`${disk}-${this.below(1e9, "name")}`, node, volume));
  }
}

const csiName = (disk: string) => `kubernetes.io/csi/${driver}^vol-${disk}`;
const inTreeName = (disk: string) => `${ebs}/aws://us-east-1a/vol-${disk}`;

async function simulate(seed: number): Promise<readonly string[]> {
  const world = new World(seed);
  const { plane, referee } = world;
  await world.setUp();
  referee.fault = () => (["before", "after"] as const)[world.below(12, "fault")] ?? "none";
  for (let step = 0; step < 120; step++) {
    const dice = world.below(100, "action");
    if (dice < 12) await world.movePod(disks[world.below(disks.length, "disk")] as string);
    else if (dice < 15) {
      // The pod is deleted while no controller runs.
      world.killController();
      await world.movePod(disks[world.below(disks.length, "disk")] as string);
      await plane.pass(world.below(2_000, "down"));
      world.startController();
    } else if (dice < 20) await world.flip(nodes[world.below(nodes.length, "flip")] as string);
    else if (dice < 26) world.crashController();
    else if (dice < 60) await world.kubelets();
    else if (dice < 90) await world.attacher();
    await plane.pass(world.below(3_000, "pause"));
  }
  referee.fault = () => "none";
  const settle = async (rounds: number) => {
    for (let round = 0; round < rounds; round++) {
      await world.kubelets();
      await world.attacher();
      await plane.pass(10_000);
    }
  };
  await settle(30);
  // Liveness: every pod that is there got its volume.
  for (const pod of await plane.list(resources.pods)) {
    const mount = `vol-${pod.metadata.name.slice(0, 1)}@${pod.spec?.nodeName}`;
    if (!referee.mounted.has(mount)) referee.violations.push(`C8: ${mount} is not mounted`);
  }
  for (const pod of await plane.list(resources.pods))
    await plane.delete(resources.pods, pod.metadata.name, "default");
  await settle(40);
  const left = await plane.list(resources.volumeAttachments);
  if (left.length > 0) referee.violations.push(`C4: ${left.length} VolumeAttachments left`);
  for (const name of nodes) {
    const listed = await plane.volumesAttached(name);
    if (listed.length > 0) referee.violations.push(`C4: ${name} lists ${listed.join()}`);
  }
  for (const disk of disks) {
    const node = referee.cloud.nodeOf(`vol-${disk}`);
    if (node !== undefined) referee.violations.push(`C4: vol-${disk} left on ${node}`);
  }
  world.killController();
  return referee.violations;
}

describe("the contract under chaos", () => {
  it.each(Array.from({ length: 15 }, (_, index) => index + 1))(
    "seed %i (contract.md C1, C2, C4)",
    async (seed) => {
      expect(await simulate(seed)).toEqual([]);
    },
  );
});
