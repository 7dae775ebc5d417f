/**
 * The controllers of the controller manager, killed at every point between their requests to the API server and the provider, alone and in
 * pairs: volumes are attached, made and grown as if nothing had happened.
 */
import { type KubeClient, type PersistentVolumeClaim, resources, type Stored } from "@longshore/kube";
import { type Component, featureGates, type RuntimeEnv } from "@longshore/runtime";
import {
  type CrashFlow,
  crashAtEveryPoint,
  crashInPairs,
  type Life,
  mortalClient,
  mortalSeam,
  Succession,
} from "@longshore/testing/kube";
import { expect, it } from "vitest";
import { volumeGates } from "../csimigration/volume-gates.ts";
import type { VolumePlugin } from "../framework/volume-plugin.ts";
import { awsEbsPlugin } from "../plugins/aws-ebs/aws-ebs-plugin.ts";
import { csiPlugin } from "../plugins/csi/csi-plugin.ts";
import { aBoundEbsVolume, aCsiNode, aNode, aPod, ControlPlane } from "../testing/control-plane.ts";
import { FakeCloud } from "../testing/fake-cloud.ts";
import { startAttachDetachController } from "./attach-detach/attach-detach-controller.ts";
import { startExpandController } from "./expand/expand-controller.ts";
import { startPersistentVolumeController } from "./persistent-volume/persistent-volume-controller.ts";

const ebs = "kubernetes.io/aws-ebs";
const driver = "ebs.csi.aws.com";
const nodes = ["n1", "n2"];
const { persistentVolumeClaims, persistentVolumes, storageClasses, volumeAttachments } = resources;

type Env = RuntimeEnv & { readonly kube: KubeClient; readonly plugins: readonly VolumePlugin[] };

/** A control plane and its provider, with what stands in for others. */
class World {
  readonly plane = new ControlPlane();
  readonly cloud = new FakeCloud(nodes);
  /** Of a node agent and an attacher, as often as something is waited for. */
  others: () => Promise<void> = async () => {};

  /** The seams of a controller with this life. */
  env(life: Life): Env {
    const cloud = mortalSeam(this.cloud, life);
    const kube = mortalClient(this.plane.kube, life);
    return { ...this.plane.env, kube, plugins: [csiPlugin(), awsEbsPlugin({ cloud })] };
  }

  async until(what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
    for (let seconds = 0; seconds < 600; seconds++) {
      await this.others();
      if (await condition()) return;
      await this.plane.pass(1_000);
    }
    throw new Error(`not within ten minutes: ${what}`);
  }

  claim(): Promise<Stored<PersistentVolumeClaim> | undefined> {
    return this.plane.get(persistentVolumeClaims, "a", "default");
  }
}

interface Story {
  readonly name: string;
  readonly gates: Readonly<Record<string, boolean>>;
  readonly start: (env: Env, gates: ReturnType<typeof featureGates>) => Component;
  /** What is there before the controller. */
  readonly prepare: (world: World) => Promise<void>;
  /** @throws Error at a wrong end */
  readonly play: (world: World) => Promise<void>;
  /** Without these the work was not done. */
  readonly calls: readonly string[];
}

const flowOf =
  ({ gates, start, prepare, play }: Story): CrashFlow =>
  async (points) => {
    const world = new World();
    await prepare(world);
    const given = featureGates(volumeGates, gates);
    const controllers = new Succession(points, (life) => start(world.env(life), given));
    await play(world);
    // What is left to do, as the last event.
    await world.plane.pass(2_000);
    await world.plane.clock.run(controllers.stop());
    return controllers.calls;
  };

const growing = { provisioner: ebs, allowVolumeExpansion: true, reclaimPolicy: "Delete" as const };

async function prepareAttach({ plane }: World, migrated?: string): Promise<void> {
  for (const name of nodes) {
    await plane.create(resources.nodes, aNode(name));
    await plane.create(resources.csiNodes, aCsiNode(name, [driver], migrated));
  }
  await aBoundEbsVolume(plane, "a", "aws://us-east-1a/vol-a");
}

/** A pod runs on one node after the other. `attachedTo` says where the disk is for those who attached it. */
async function attachTwice(
  world: World,
  uniqueName: string,
  attachedTo: (node: string) => Promise<boolean>,
): Promise<void> {
  const { plane } = world;
  for (const node of nodes) {
    await plane.create(
      resources.pods,
      aPod(`p-${node}`, node, { persistentVolumeClaim: { claimName: "a" } }),
    );
    await plane.setVolumesInUse(node, [uniqueName]);
    await world.until("attached", async () => (await plane.volumesAttached(node)).includes(uniqueName));
    expect(await attachedTo(node)).toBe(true);
    await plane.pass(2_000);
    await plane.delete(resources.pods, `p-${node}`, "default");
    // The volume is still mounted.
    await plane.pass(3_000);
    expect(await attachedTo(node)).toBe(true);
    await plane.setVolumesInUse(node, []);
    await world.until("detached", async () => !(await attachedTo(node)));
    await world.until("not listed", async () => (await plane.volumesAttached(node)).length === 0);
  }
}

/** What a driver's attacher does with the VolumeAttachments. */
async function serveAttachments({ plane }: World): Promise<void> {
  for (const { metadata, status } of await plane.list(volumeAttachments)) {
    const { name, deletionTimestamp, finalizers = [] } = metadata;
    if (deletionTimestamp !== undefined)
      await plane.merge(volumeAttachments, { name }, { metadata: { finalizers: null } });
    else if (finalizers.length === 0)
      await plane.merge(volumeAttachments, { name }, { metadata: { finalizers: ["external-attacher/x"] } });
    else if (status?.attached !== true)
      await plane.merge(volumeAttachments, { name }, { status: { attached: true } }, "status");
  }
}

/** What the protection controller does with volumes that are deleted. */
async function releaseVolumes({ plane }: World): Promise<void> {
  for (const { metadata } of await plane.list(persistentVolumes)) {
    const { name, finalizers = [] } = metadata;
    const rest = finalizers.filter((finalizer) => finalizer !== "kubernetes.io/pv-protection");
    if (metadata.deletionTimestamp !== undefined && rest.length < finalizers.length)
      await plane.merge(persistentVolumes, { name }, { metadata: { finalizers: rest } });
  }
}

const stories: readonly Story[] = [
  {
    name: "attach/detach controller, in-tree",
    gates: {},
    start: (env, gates) => startAttachDetachController(env, { gates }),
    prepare: prepareAttach,
    play: (world) =>
      attachTwice(
        world,
        `${ebs}/aws://us-east-1a/vol-a`,
        async (node) => world.cloud.nodeOf("vol-a") === node,
      ),
    calls: ["attachDisk", "detachDisk"],
  },
  {
    name: "attach/detach controller, CSI",
    gates: { CSIMigrationAWS: true },
    start: (env, gates) => startAttachDetachController(env, { gates }),
    prepare: (world) => prepareAttach(world, ebs),
    async play(world) {
      world.others = () => serveAttachments(world);
      const attachedTo = async (node: string) =>
        (await world.plane.list(volumeAttachments)).some(({ spec }) => spec.nodeName === node);
      await attachTwice(world, `kubernetes.io/csi/${driver}^vol-a`, attachedTo);
      expect(world.cloud.calls).toEqual([]);
    },
    calls: ["create VolumeAttachment", "delete VolumeAttachment"],
  },
  {
    name: "persistent-volume controller",
    gates: {},
    start: (env, gates) => startPersistentVolumeController(env, { gates }),
    prepare: async ({ plane }) => {
      await plane.create(storageClasses, { metadata: { name: "ebs" }, ...growing });
    },
    async play(world) {
      const { plane, cloud } = world;
      await plane.create(persistentVolumeClaims, {
        metadata: { name: "a", namespace: "default" },
        spec: {
          accessModes: ["ReadWriteOnce"],
          resources: { requests: { storage: "5Gi" } },
          storageClassName: "ebs",
        },
      });
      await world.until("bound", async () => (await world.claim())?.status?.phase === "Bound");
      expect(cloud.disks.size).toBe(1);
      expect((await plane.list(persistentVolumes)).length).toBe(1);
      await plane.delete(persistentVolumeClaims, "a", "default");
      // As the protection controller does: no pod uses it.
      const body = { metadata: { finalizers: null } };
      await plane.merge(persistentVolumeClaims, { name: "a", namespace: "default" }, body);
      world.others = () => releaseVolumes(world);
      await world.until("deleted", async () => (await plane.list(persistentVolumes)).length === 0);
      await plane.pass(60_000);
      expect(cloud.disks.size).toBe(0);
    },
    calls: ["createDisk", "create PersistentVolume", "deleteDisk", "delete PersistentVolume"],
  },
  {
    name: "expand controller",
    gates: {},
    start: (env, gates) => startExpandController(env, { gates }),
    prepare: async ({ plane }) => {
      await plane.create(storageClasses, { metadata: { name: "grows" }, ...growing });
      await aBoundEbsVolume(plane, "a", "aws://us-east-1a/vol-a", { storageClassName: "grows" });
    },
    async play(world) {
      const { plane, cloud } = world;
      const spec = { resources: { requests: { storage: "8Gi" } } };
      await plane.merge(persistentVolumeClaims, { name: "a", namespace: "default" }, { spec });
      const conditions = async () => (await world.claim())?.status?.conditions?.map(({ type }) => type) ?? [];
      await world.until("the file system may grow", async () =>
        (await conditions()).includes("FileSystemResizePending"),
      );
      expect(await conditions()).toEqual(["FileSystemResizePending"]);
      expect((await plane.get(persistentVolumes, "pv-a"))?.spec?.capacity?.storage).toBe("8Gi");
      expect(cloud.disks.get("vol-a")?.sizeBytes).toBe(8n << 30n);
    },
    calls: ["resizeDisk", "patch PersistentVolume", "patch PersistentVolumeClaim"],
  },
];

it.each(stories)(
  "the $name is killed at every point, and the next one goes on (contract.md C2, C4, C8)",
  async (story) => {
    const { summary, failures, calls } = await crashAtEveryPoint(flowOf(story), story);
    console.log(summary);
    expect(failures).toEqual([]);
    expect(calls).toEqual(expect.arrayContaining([...story.calls]));
  },
);

it.each(stories)(
  "the $name is killed, and the one after it too, and a third one goes on (contract.md C2, C4, C8)",
  async (story) => {
    const { summary, failures } = await crashInPairs(flowOf(story), 30, story);
    console.log(summary);
    expect(failures).toEqual([]);
  },
  3_600_000,
);
