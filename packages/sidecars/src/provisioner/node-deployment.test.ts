/** Provisioners that run one a node: who takes a claim, and who deletes a volume. */
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type StorageClass,
} from "@longshore/kube";
import { type Component, SeededRandom } from "@longshore/runtime";
import { FakeProvisioning } from "@longshore/testing/sidecars";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { aClaim, addNode, aStorageClass, sidecarWorld, type World } from "../testing/world.ts";
import { contentionDelayMs, isVolumeHere, type OwnNode, shareOf } from "./node-deployment.ts";
import { startProvisioner } from "./provisioner.ts";

const own: OwnNode = {
  name: "node-a",
  segments: { zone: "a" },
  immediateBinding: true,
  baseDelayMs: 20_000,
  maxDelayMs: 60_000,
};
const selected = "volume.kubernetes.io/selected-node";
const claimOn = (node?: string, deleting = false) =>
  ({
    metadata: {
      annotations: node === undefined ? {} : { [selected]: node },
      ...(deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
  }) as PersistentVolumeClaim;
const immediate = aStorageClass();
const late = aStorageClass({ volumeBindingMode: "WaitForFirstConsumer" });

const shares: readonly [
  name: string,
  own: OwnNode | undefined,
  claim: PersistentVolumeClaim,
  storageClass: StorageClass | undefined,
  share: string,
][] = [
  ["without node deployment everything", undefined, claimOn("node-b"), late, "owned"],
  ["a claim of the node", own, claimOn("node-a"), late, "owned"],
  ["a claim of another node", own, claimOn("node-b"), late, "foreign"],
  ["any provisioner releases one of a deleted node", own, claimOn("gone"), late, "owned"],
  ["one that the scheduler has not seen waits with everyone", own, claimOn(), late, "owned"],
  ["immediate binding", own, claimOn(), immediate, "unassigned"],
  [
    "immediate binding, where it is off",
    { ...own, immediateBinding: false },
    claimOn(),
    immediate,
    "foreign",
  ],
  ["immediate binding that was taken", own, claimOn("node-b"), immediate, "foreign"],
  ["a deleted claim without a node is anyone's to let go", own, claimOn(undefined, true), immediate, "owned"],
  ["one without its class", own, claimOn(), undefined, "owned"],
];

describe("a provisioner of one node", () => {
  it.each(shares)("%s", (_, node, claim, storageClass, share) => {
    expect(shareOf(node, claim, storageClass, (name) => name !== "gone")).toBe(share);
  });

  it("pauses between the base and the longest delay, whatever was lost before", () => {
    const random = new SeededRandom(1);
    fc.assert(
      fc.property(fc.nat(100), (races) => {
        const delayMs = contentionDelayMs(own, races, random);
        expect(delayMs).toBeGreaterThanOrEqual(own.baseDelayMs);
        expect(delayMs).toBeLessThanOrEqual(own.maxDelayMs);
      }),
    );
  });

  it.each<[string, string[] | undefined, boolean]>([
    ["of the node", ["a"], true],
    ["of another node", ["b"], false],
    ["of both", ["b", "a"], true],
    ["of everywhere", undefined, true],
  ])("deletes volumes %s: %s", (_, zones, here) => {
    const nodeSelectorTerms = (zones ?? []).map((zone) => ({
      matchExpressions: [{ key: "zone", operator: "In", values: [zone] }],
    }));
    const spec = zones === undefined ? {} : { nodeAffinity: { required: { nodeSelectorTerms } } };
    expect(isVolumeHere(own, { spec } as PersistentVolume)).toBe(here);
  });
});

interface NodesWorld extends World {
  /** Starts the provisioners of these nodes, or of both; each has a driver of its own in front of the same cloud. */
  start(...names: readonly string[]): readonly Component[];
  readonly drivers: Readonly<Record<string, FakeProvisioning>>;
}

async function nodesWorld(storageClass = aStorageClass()): Promise<NodesWorld> {
  const drivers = { "node-a": new FakeProvisioning(), "node-b": new FakeProvisioning() };
  drivers["node-b"].nodeZone = "us-east-1b";
  for (const { room } of Object.values(drivers)) {
    room.set("us-east-1a", 10n << 30n);
    room.set("us-east-1b", 10n << 30n);
  }
  const services: Record<string, Parameters<World["csi"]["serve"]>[1]> = {};
  const world = await sidecarWorld(
    {},
    {
      extend: (fake, cloud) => {
        for (const [name, driver] of Object.entries(drivers)) services[name] = driver.extend(fake, cloud);
        return fake;
      },
    },
  );
  await addNode(world, "node-a", "us-east-1a");
  await addNode(world, "node-b", "us-east-1b");
  await world.kube.create(resources.storageClasses, storageClass, { signal: world.signal });
  for (const [name, own] of Object.entries(services)) await world.csi.serve(`/csi/${name}.sock`, own);
  return {
    ...world,
    drivers,
    start(...names) {
      return (names.length === 0 ? Object.keys(drivers) : names).map((nodeName, seed) => {
        const csi = world.csi.connect(`/csi/${nodeName}.sock`);
        const env = { ...world.env(), csi, random: new SeededRandom(seed) };
        return startProvisioner(env, { nodeDeployment: { nodeName }, strictTopology: true });
      });
    },
  };
}

const stopAll = (running: readonly Component[]) => Promise.all(running.map((component) => component.stop()));
const pvsOf = async ({ kube, signal }: World) =>
  (await kube.list(resources.persistentVolumes, { signal })).items;
const zonesOf = (pvs: readonly PersistentVolume[]) =>
  pvs.map((pv) => pv.spec?.nodeAffinity?.required?.nodeSelectorTerms[0]?.matchExpressions?.[0]?.values?.[0]);

async function createClaim({ kube, signal }: World, node?: string) {
  const claim = aClaim({
    annotations: { ...aClaim().metadata?.annotations, ...(node === undefined ? {} : { [selected]: node }) },
  });
  return kube.create(resources.persistentVolumeClaims, claim, { signal });
}

describe("provisioners on two nodes", () => {
  it("serve the claims of their own nodes only", async () => {
    const world = await nodesWorld(late);
    const running = world.start();
    await createClaim(world, "node-b");
    await world.eventually("a volume", async () => (await pvsOf(world)).length === 1);
    await world.clock.advance(120_000);
    expect(zonesOf(await pvsOf(world))).toEqual(["us-east-1b"]);
    expect(world.drivers["node-a"]?.requests).toHaveLength(0);
    expect(world.drivers["node-b"]?.requests).toHaveLength(1);
    await stopAll(running);
  });

  it("take a claim with immediate binding once, after a pause", async () => {
    const world = await nodesWorld();
    const running = world.start();
    await world.clock.advance(1000);
    await createClaim(world);
    await world.clock.advance(19_000);
    expect(world.cloud.disks.size).toBe(0);
    await world.eventually("a volume", async () => (await pvsOf(world)).length === 1);
    await world.clock.advance(300_000);
    expect(await pvsOf(world)).toHaveLength(1);
    const asked = Object.values(world.drivers).map(({ requests }) => requests.length);
    expect(asked.sort()).toEqual([0, 1]);
    await stopAll(running);
  });

  it("leave such a claim to a node that has room", async () => {
    const world = await nodesWorld();
    for (const driver of Object.values(world.drivers)) driver.room.set("us-east-1a", 0n);
    const running = world.start();
    await createClaim(world);
    await world.eventually("a volume", async () => (await pvsOf(world)).length === 1);
    expect(zonesOf(await pvsOf(world))).toEqual(["us-east-1b"]);
    await stopAll(running);
  });

  it("leave such a claim to where its class allows it", async () => {
    const zone = { key: "topology.ebs.csi.aws.com/zone", values: ["us-east-1b"] };
    const world = await nodesWorld(aStorageClass({ allowedTopologies: [{ matchLabelExpressions: [zone] }] }));
    const running = world.start();
    await createClaim(world);
    await world.eventually("a volume", async () => (await pvsOf(world)).length === 1);
    expect(zonesOf(await pvsOf(world))).toEqual(["us-east-1b"]);
    await stopAll(running);
  });

  it("give a claim back whose driver has run out of room, and another takes it", async () => {
    const world = await nodesWorld();
    const running = world.start();
    world.cloud.next("CreateVolume", { code: "RESOURCE_EXHAUSTED" });
    await createClaim(world);
    await world.eventually("a volume", async () => (await pvsOf(world)).length === 1);
    expect(world.cloud.disks.size).toBe(1);
    await stopAll(running);
  });

  it("release the claim of a node that is gone", async () => {
    const world = await nodesWorld(late);
    const running = world.start();
    await createClaim(world, "node-gone");
    await world.eventually("the node taken off", async () => {
      const ref = { name: "data-web-0", namespace: "default" };
      const claim = await world.kube.get(resources.persistentVolumeClaims, ref, { signal: world.signal });
      return claim?.metadata.annotations?.[selected] === undefined;
    });
    expect(world.cloud.disks.size).toBe(0);
    await stopAll(running);
  });

  it("delete the volumes of their own node only", async () => {
    const world = await nodesWorld(late);
    const [mine] = world.start("node-b");
    await createClaim(world, "node-b");
    const pv = await world.eventually("a volume", async () => (await pvsOf(world))[0]);
    await mine?.stop();
    const body = { status: { phase: "Released" } };
    await world.kube.patch(
      resources.persistentVolumes,
      { name: pv.metadata.name },
      { type: "merge", body },
      { signal: world.signal, subresource: "status" },
    );
    const others = world.start("node-a");
    await world.clock.advance(600_000);
    expect(world.cloud.disks.size).toBe(1);
    const again = world.start("node-b");
    await world.eventually("disk gone", async () => world.cloud.disks.size === 0);
    await stopAll([...others, ...again]);
  });
});
