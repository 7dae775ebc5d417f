import { interceptWrites, resources } from "@longshore/kube";
import { nodeExpansionNotRequiredAnnotation, storageResizerAnnotation } from "@longshore/storage";
import { Life } from "@longshore/testing/kube";
import { describe, expect, it } from "vitest";
import { mortal } from "../testing/crashing.ts";
import {
  addBoundClaim,
  ask,
  claimRef,
  eventReasons,
  nodeExpanded,
  patchStatus,
  type ResizingOptions,
  resizingWorld,
  theClaim,
  theVolume,
} from "../testing/fake-resizing.ts";
import type { World } from "../testing/world.ts";
import { type ResizerOptions, startResizer } from "./resizer.ts";

const driver = "ebs.csi.aws.com";
const conditionsOf = async (world: World) =>
  ((await theClaim(world)).status?.conditions ?? []).map(({ type }) => type);
const capacityOf = async (world: World) => (await theClaim(world)).status?.capacity?.storage;
const stateOf = async (world: World) => (await theClaim(world)).status?.allocatedResourceStatuses?.storage;
const volumeCapacity = async (world: World) => (await theVolume(world)).spec?.capacity?.storage;
const expandCalls = ({ cloud }: World) => cloud.calls.filter((call) => call.startsWith("ControllerExpand"));
const nodePending = (world: World) => async () =>
  (await conditionsOf(world)).includes("FileSystemResizePending");
const has = (world: World, storage: string) => async () => (await capacityOf(world)) === storage;

async function worldWithClaim(options: ResizingOptions = {}): Promise<World> {
  const world = await resizingWorld(options);
  await addBoundClaim(world);
  return world;
}

/** A client that counts what is written, events left out. */
function counting(world: World): { readonly kube: World["kube"]; readonly writes: string[] } {
  const writes: string[] = [];
  const kube = interceptWrites(world.kube, (request, signal, send) => {
    const { verb, resource, subresource } = request;
    if (resource.kind !== "Event")
      writes.push([verb, resource.plural, subresource].filter(Boolean).join(" "));
    return send(signal);
  });
  return { kube, writes };
}

describe("the resizer", () => {
  it("expands in three writes and leaves the file system to the kubelet", async () => {
    const world = await worldWithClaim();
    const { kube, writes } = counting(world);
    const resizer = startResizer(world.env(kube));
    await world.clock.advance(1000);
    await ask(world, { storage: "3Gi" });
    await world.eventually("the node's turn", nodePending(world));
    expect(await stateOf(world)).toBe("NodeResizePending");
    expect((await theClaim(world)).status?.allocatedResources).toEqual({ storage: "3Gi" });
    expect(await capacityOf(world)).toBe("1Gi");
    expect(await volumeCapacity(world)).toBe("3Gi");
    await nodeExpanded(world);
    await world.clock.advance(3_600_000);
    expect(expandCalls(world)).toEqual(["ControllerExpandVolume vol-9 3Gi"]);
    expect(writes).toEqual([
      "patch persistentvolumeclaims status",
      "patch persistentvolumes",
      "patch persistentvolumeclaims status",
    ]);
    expect(await eventReasons(world)).toEqual(["Resizing", "FileSystemResizeRequired"]);
    await resizer.stop();
  });

  it("finishes by itself where the node has nothing to do, and says so to kubelets", async () => {
    const world = await worldWithClaim({ nodeExpansionRequired: false });
    const { kube, writes } = counting(world);
    const resizer = startResizer(world.env(kube));
    await ask(world, { storage: "3Gi" });
    await world.eventually("finished", has(world, "3Gi"));
    const claim = await theClaim(world);
    expect(claim.status?.conditions ?? []).toEqual([]);
    expect(claim.status?.allocatedResourceStatuses).toBeUndefined();
    expect(claim.metadata.annotations?.[nodeExpansionNotRequiredAnnotation]).toBe("true");
    await world.clock.advance(3_600_000);
    expect(writes).toHaveLength(3);
    expect(await eventReasons(world)).toEqual(["Resizing", "VolumeResizeSuccessful"]);
    await resizer.stop();
  });

  it("takes its word back when the next expansion does need the node", async () => {
    const world = await worldWithClaim();
    await ask(world, {}, { [nodeExpansionNotRequiredAnnotation]: "true" });
    const resizer = startResizer(world.env());
    await ask(world, { storage: "3Gi" });
    await world.eventually("the node's turn", nodePending(world));
    expect((await theClaim(world)).metadata.annotations ?? {}).not.toHaveProperty([
      nodeExpansionNotRequiredAnnotation,
    ]);
    await resizer.stop();
  });

  it("keeps to the classic sequence where the server does not keep the size that is under way", async () => {
    const world = await worldWithClaim({ emulatedVersion: "1.20" });
    const { kube, writes } = counting(world);
    world.cloud.next("ControllerExpandVolume", { code: "INTERNAL" }, { code: "UNAVAILABLE" });
    const resizer = startResizer(world.env(kube));
    await ask(world, { storage: "3Gi" });
    await world.eventually("the node's turn", nodePending(world));
    const { status } = await theClaim(world);
    expect(status?.allocatedResources).toBeUndefined();
    expect(await conditionsOf(world)).toEqual(["FileSystemResizePending"]);
    await nodeExpanded(world);
    await world.clock.advance(3_600_000);
    expect(expandCalls(world)).toHaveLength(3);
    expect(writes).toHaveLength(3);
    await resizer.stop();
  });

  it.each([
    ["begins by itself after a restart", true],
    ["begins when it is asked", false],
  ])("%s", async (_, before) => {
    const world = await worldWithClaim();
    if (before) await ask(world, { storage: "3Gi" });
    const resizer = startResizer(world.env());
    await world.clock.advance(5000);
    if (!before) await ask(world, { storage: "3Gi" });
    await world.eventually("the node's turn", nodePending(world));
    await resizer.stop();
  });

  it("expands an in-tree volume once its claim names the driver, and not before", async () => {
    const world = await resizingWorld({ nodeExpansionRequired: false });
    await addBoundClaim(world, { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-9" } });
    const resizer = startResizer(world.env());
    await ask(world, { storage: "3Gi" }, { [storageResizerAnnotation]: "kubernetes.io/aws-ebs" });
    await world.clock.advance(3_600_000);
    expect(world.cloud.calls).toEqual([]);
    await ask(world, {}, { [storageResizerAnnotation]: driver });
    await world.eventually("finished", has(world, "3Gi"));
    const { spec } = await theVolume(world);
    expect(spec?.capacity).toEqual({ storage: "3Gi" });
    expect(spec?.awsElasticBlockStore?.volumeID).toBe("aws://us-east-1a/vol-9");
    expect(spec?.csi).toBeUndefined();
    await resizer.stop();
  });

  it("leaves the expand controller time to name it again", async () => {
    const world = await resizingWorld({ nodeExpansionRequired: false });
    await addBoundClaim(world, { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-9" } });
    await ask(world, {}, { [storageResizerAnnotation]: driver });
    const resizer = startResizer(world.env());
    await world.clock.advance(1000);
    await ask(world, { storage: "3Gi" });
    await world.clock.advance(900);
    expect(world.cloud.calls).toEqual([]);
    await world.clock.advance(200);
    expect(expandCalls(world)).toHaveLength(1);
    await resizer.stop();
  });

  it("leaves it to the kubelet where just nodes expand", async () => {
    const world = await worldWithClaim({ controllerExpands: false });
    const resizer = startResizer(world.env());
    await ask(world, { storage: "3Gi" });
    await world.eventually("the node's turn", nodePending(world));
    expect(world.cloud.calls).toEqual([]);
    expect(await volumeCapacity(world)).toBe("3Gi");
    await resizer.stop();
  });

  it("annotates a volume whose file system has yet to grow, if asked to, until it has", async () => {
    const world = await worldWithClaim();
    const resizer = startResizer(world.env(), { annotateFsResize: true });
    await ask(world, { storage: "3Gi" });
    await world.eventually("the node's turn", nodePending(world));
    const note = "volume.alpha.kubernetes.io/pre-resize-capacity";
    expect((await theVolume(world)).metadata.annotations).toMatchObject({ [note]: "1Gi" });
    await nodeExpanded(world);
    await world.eventually(
      "the note gone",
      async () => (await theVolume(world)).metadata.annotations?.[note] === undefined,
    );
    await resizer.stop();
  });
});

describe("an expansion that fails", () => {
  it("is reported, and retried with growing delays", async () => {
    const world = await worldWithClaim();
    const failures = Array.from({ length: 4 }, () => ({ code: "INTERNAL" as const }));
    world.cloud.next("ControllerExpandVolume", ...failures);
    const calledAtMs: number[] = [];
    world.csi.intercept(async (call, proceed) => {
      if (call.rpc === "ControllerExpandVolume") calledAtMs.push(world.clock.monotonicMs());
      return proceed();
    });
    const { kube, writes } = counting(world);
    const resizer = startResizer(world.env(kube));
    await ask(world, { storage: "3Gi" });
    await world.eventually("an error", async () =>
      (await conditionsOf(world)).includes("ControllerResizeError"),
    );
    expect(await conditionsOf(world)).toContain("Resizing");
    expect(await stateOf(world)).toBe("ControllerResizeInProgress");
    await world.eventually("the node's turn", nodePending(world));
    const waits = calledAtMs.slice(1).map((at, i) => at - (calledAtMs[i] ?? 0));
    expect(waits.map((ms) => Math.round(ms / 1000))).toEqual([1, 2, 4, 8]);
    expect(await conditionsOf(world)).toEqual(["Resizing", "FileSystemResizePending"]);
    // The same failure is not written again.
    expect(writes.filter((write) => write.includes("claims"))).toHaveLength(3);
    const reasons = ["FileSystemResizeRequired", "Resizing", "VolumeResizeFailed"];
    expect((await eventReasons(world)).sort()).toEqual(reasons);
    await resizer.stop();
  });

  it("for good is tried again only much later, and at once with another size", async () => {
    const world = await worldWithClaim();
    world.cloud.next("ControllerExpandVolume", { code: "OUT_OF_RANGE" }, { code: "OUT_OF_RANGE" });
    const resizer = startResizer(world.env());
    await ask(world, { storage: "9Gi" });
    await world.eventually("infeasible", async () => (await stateOf(world)) === "ControllerResizeInfeasible");
    await world.clock.advance(290_000);
    expect(expandCalls(world)).toHaveLength(1);
    await world.clock.advance(20_000);
    expect(expandCalls(world)).toHaveLength(2);
    await ask(world, { storage: "2Gi" });
    await world.eventually("the node's turn", nodePending(world), 1000);
    expect(expandCalls(world).at(-1)).toBe("ControllerExpandVolume vol-9 2Gi");
    expect((await theClaim(world)).status?.allocatedResources).toEqual({ storage: "2Gi" });
    expect(await volumeCapacity(world)).toBe("2Gi");
    await resizer.stop();
  });

  it("is finished before another size is tried, as long as it may be under way", async () => {
    const world = await worldWithClaim({ nodeExpansionRequired: false });
    world.cloud.next("ControllerExpandVolume", { lost: true }, { code: "UNAVAILABLE" });
    const resizer = startResizer(world.env());
    await ask(world, { storage: "9Gi" });
    await world.eventually("a call", async () => expandCalls(world).length > 0);
    await ask(world, { storage: "2Gi" });
    await world.eventually("finished", has(world, "9Gi"));
    expect(new Set(expandCalls(world))).toEqual(new Set(["ControllerExpandVolume vol-9 9Gi"]));
    await resizer.stop();
  });

  it("with a sure answer lets the user ask for less", async () => {
    const world = await worldWithClaim({ nodeExpansionRequired: false });
    world.cloud.next("ControllerExpandVolume", { code: "INTERNAL" });
    const resizer = startResizer(world.env());
    await ask(world, { storage: "9Gi" });
    await world.eventually("an error", async () =>
      (await conditionsOf(world)).includes("ControllerResizeError"),
    );
    await ask(world, { storage: "2Gi" });
    await world.eventually("finished", has(world, "2Gi"));
    expect(world.cloud.disks.get("vol-9")?.bytes).toBe(2n * 1024n ** 3n);
    await resizer.stop();
  });

  it("on the node is given to the kubelet again, with the size that the disk has", async () => {
    const world = await worldWithClaim();
    const resizer = startResizer(world.env());
    await ask(world, { storage: "3Gi" });
    await world.eventually("the node's turn", nodePending(world));
    await patchStatus(
      world.kube,
      { allocatedResourceStatuses: { storage: "NodeResizeInfeasible" } },
      world.signal,
    );
    await world.eventually(
      "the node's turn again",
      async () => (await stateOf(world)) === "NodeResizePending",
    );
    expect(new Set(expandCalls(world))).toEqual(new Set(["ControllerExpandVolume vol-9 3Gi"]));
    await resizer.stop();
  });

  it("goes on with what was asked for while the node was at work", async () => {
    const world = await worldWithClaim();
    const resizer = startResizer(world.env());
    await ask(world, { storage: "3Gi" });
    await world.eventually("the node's turn", nodePending(world));
    await ask(world, { storage: "5Gi" });
    await world.clock.advance(3_600_000);
    expect(expandCalls(world)).toHaveLength(1);
    await nodeExpanded(world);
    await world.eventually("the next size", async () => (await volumeCapacity(world)) === "5Gi");
    await resizer.stop();
  });

  it("of a volume with an answer smaller than asked for counts as a failure", async () => {
    const world = await worldWithClaim();
    world.csi.intercept(async (call, proceed) => {
      const answer = await proceed();
      return call.rpc === "ControllerExpandVolume" ? { ...answer, capacityBytes: 5n } : answer;
    });
    const resizer = startResizer(world.env());
    await ask(world, { storage: "3Gi" });
    await world.eventually("reported", async () =>
      (await eventReasons(world)).includes("VolumeResizeFailed"),
    );
    expect(await volumeCapacity(world)).toBe("1Gi");
    await resizer.stop();
  });
});

describe("a volume that its driver does not expand in use", () => {
  const pod = (name: string) => ({
    metadata: { name, namespace: claimRef.namespace },
    spec: {
      containers: [{ name: "c", image: "i" }],
      volumes: [{ name: "v", persistentVolumeClaim: { claimName: claimRef.name } }],
    },
  });

  async function refusedInUse(options: ResizerOptions = {}) {
    const world = await worldWithClaim();
    await world.kube.create(resources.pods, pod("a"), { signal: world.signal });
    world.cloud.next("ControllerExpandVolume", ...Array(3).fill({ code: "FAILED_PRECONDITION" }));
    const resizer = startResizer(world.env(), options);
    await ask(world, { storage: "3Gi" });
    await world.eventually("refused", async () => expandCalls(world).length > 0);
    return { world, resizer };
  }

  it("is tried again once its pods are gone", async () => {
    const { world, resizer } = await refusedInUse();
    await world.clock.advance(1_800_000);
    expect(expandCalls(world)).toHaveLength(1);
    const { items } = await world.kube.list(resources.events, { signal: world.signal });
    expect(items.map(({ message }) => message)).toContainEqual(
      `Unable to expand default/data because CSI driver ${driver} only supports offline expansion and volume is currently in-use`,
    );
    world.cloud.next("ControllerExpandVolume");
    await world.kube.delete(
      resources.pods,
      { name: "a", namespace: claimRef.namespace },
      { signal: world.signal, gracePeriodSeconds: 0 },
    );
    await world.clock.advance(100);
    expect(expandCalls(world)).toHaveLength(2);
    await world.eventually("the node's turn", nodePending(world));
    await resizer.stop();
  });

  it("is tried again once its pods have ended", async () => {
    const { world, resizer } = await refusedInUse();
    await world.clock.advance(60_000);
    await world.kube.patch(
      resources.pods,
      { name: "a", namespace: claimRef.namespace },
      { type: "merge", body: { status: { phase: "Succeeded" } } },
      { signal: world.signal, subresource: "status" },
    );
    await world.eventually("the node's turn", nodePending(world));
    await resizer.stop();
  });

  it("is tried again and again while pods cannot be read", async () => {
    const world = await worldWithClaim();
    world.cloud.next("ControllerExpandVolume", ...Array(2).fill({ code: "FAILED_PRECONDITION" }));
    const { kube } = world;
    const list: typeof kube.list = (resource, options) =>
      resource.kind === "Pod" ? Promise.reject(new Error("forbidden")) : kube.list(resource, options);
    const blind = new Proxy(kube, {
      get: (target, name: keyof typeof kube) => (name === "list" ? list : target[name].bind(target)),
    });
    const resizer = startResizer(world.env(blind), { workers: 1 });
    await ask(world, { storage: "3Gi" });
    await world.eventually("the node's turn", nodePending(world));
    expect(expandCalls(world)).toHaveLength(3);
    await resizer.stop();
  });

  it("is tried again and again without that knowledge, if so asked", async () => {
    const { world, resizer } = await refusedInUse({ handleVolumeInUseError: false });
    await world.eventually("the node's turn", nodePending(world));
    expect(expandCalls(world)).toHaveLength(4);
    await resizer.stop();
  });
});

describe("a crash at any call", () => {
  const versions = [undefined, "1.20"] as const;
  const cases = versions.flatMap((version) =>
    [true, false].flatMap((node) =>
      (["before", "after"] as const).map((effect) => ({ version, node, effect })),
    ),
  );
  it.each(cases)("ends right: %o", async ({ version, node, effect }) => {
    for (let n = 1; ; n++) {
      const options = { nodeExpansionRequired: node, ...(version ? { emulatedVersion: version } : {}) };
      const world = await worldWithClaim(options);
      await ask(world, { storage: "3Gi" });
      const life = new Life(n, effect);
      const first = startResizer(mortal(world.env(), life));
      await world.clock.advance(5000);
      if (!life.dead) {
        expect(life.log.filter((call) => call.startsWith("patch"))).toHaveLength(3);
        expect(n).toBeGreaterThan(4);
        await first.stop();
        return;
      }
      const second = startResizer(world.env());
      if (node) {
        await world.eventually(`the node's turn after a crash at ${life.log.at(-1)}`, nodePending(world));
        await nodeExpanded(world);
      }
      await world.eventually(`finished after a crash at ${life.log.at(-1)}`, has(world, "3Gi"));
      await world.clock.advance(3_600_000);
      expect(await conditionsOf(world)).toEqual([]);
      expect(await volumeCapacity(world)).toBe("3Gi");
      expect(await stateOf(world)).toBeUndefined();
      expect(new Set(expandCalls(world)).size).toBe(1);
      await second.stop();
    }
  });
});
