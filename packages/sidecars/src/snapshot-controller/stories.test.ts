/** Stories of single snapshots: the snapshot controller and a driver's snapshotter, under a virtual clock. */

import { readDefinitions } from "@longshore/apiserver";
import { isNotFound, type PersistentVolumeClaim, resources } from "@longshore/kube";
import { recordingLogger, recordingMeter } from "@longshore/runtime";
import { snapshotResources, type VolumeSnapshot, type VolumeSnapshotContent } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { type SnapshotterOptions, startSnapshotter } from "../index.ts";
import {
  addBoundClaim,
  aSnapshot,
  aSnapshotClass,
  type SnapshotWorld,
  snapshotWorld,
} from "../testing/snapshot-world.ts";
import { type SnapshotControllerOptions, startSnapshotController } from "./index.ts";

const { volumeSnapshots, volumeSnapshotClasses, volumeSnapshotContents } = snapshotResources;
const ref = { namespace: "default", name: "s" };
const beingCreated = "snapshot.storage.kubernetes.io/volumesnapshot-being-created";
const beingDeleted = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted";

/** A token of a template in parameters of a class. */
const token = (name: string) => ["$", "{", name, "}"].join("");

interface Started {
  readonly world: SnapshotWorld;
  stop(): Promise<void>;
}

/** A world with both parts, the default class and the claim `data`. */
async function started(
  options: Parameters<typeof snapshotWorld>[0] & {
    readonly controller?: SnapshotControllerOptions;
    readonly snapshotter?: SnapshotterOptions;
    readonly snapshotClass?: Parameters<typeof aSnapshotClass>[0] | null;
    readonly source?: Parameters<typeof addBoundClaim>[2];
  } = {},
): Promise<Started> {
  const world = await snapshotWorld(options);
  const { kube, signal } = world;
  await addBoundClaim(world, "data", options.source);
  if (options.snapshotClass !== null) {
    await kube.create(volumeSnapshotClasses, aSnapshotClass(options.snapshotClass), { signal });
  }
  const controller = startSnapshotController(world.env(), options.controller);
  const snapshotter = startSnapshotter(world.env(), options.snapshotter);
  return {
    world,
    async stop() {
      await controller.stop();
      await snapshotter.stop();
    },
  };
}

const ask = ({ kube, signal }: SnapshotWorld, over?: Partial<VolumeSnapshot["spec"]>) =>
  kube.create(volumeSnapshots, aSnapshot(over), { signal });
const ready = (world: SnapshotWorld) => async () => {
  const snapshot = await world.snapshot("s");
  return snapshot?.status?.readyToUse === true && snapshot;
};
const errorOf = (world: SnapshotWorld, part: string) => async () => {
  const message = (await world.snapshot("s"))?.status?.error?.message;
  return message?.includes(part) && message;
};
const remove = ({ kube, signal }: SnapshotWorld) => kube.delete(volumeSnapshots, ref, { signal });
const gone = (world: SnapshotWorld) => async () => (await world.snapshot("s")) === undefined;
const claimOf = ({ kube, signal }: SnapshotWorld) =>
  kube.get(resources.persistentVolumeClaims, { namespace: "default", name: "data" }, { signal });

/** A content that an administrator makes for the snapshot `s`. */
const aContent = (over: Partial<VolumeSnapshotContent["spec"]> = {}): VolumeSnapshotContent => ({
  metadata: { name: "by-hand" },
  spec: {
    driver: "ebs.csi.aws.com",
    deletionPolicy: "Delete",
    source: { snapshotHandle: "snap-0001" },
    volumeSnapshotRef: { name: "s", namespace: "default" },
    ...over,
  },
});
const existing = { source: { volumeSnapshotContentName: "by-hand" } };

describe("a snapshot that is made", () => {
  it("holds its claim until it is ready, and asks again until then, later each time", async () => {
    const { world, stop } = await started({ looksUntilReady: 3 });
    const { kube, signal, cloud } = world;
    await ask(world);
    await world.eventually("asked", async () => cloud.calls.length > 0);
    await kube.delete(resources.persistentVolumeClaims, { namespace: "default", name: "data" }, { signal });
    const snapshot = await world.eventually("bound", async () => {
      const found = await world.snapshot("s");
      return found?.status?.creationTime !== undefined && found;
    });
    expect(snapshot.status?.readyToUse).toBe(false);
    expect((await claimOf(world))?.metadata.finalizers).toContain(
      "snapshot.storage.kubernetes.io/pvc-as-source-protection",
    );
    const [content] = await world.contents();
    // Its handle is known: nothing is uncertain any more.
    expect(content?.metadata.annotations?.[beingCreated]).toBeUndefined();
    const startMs = world.clock.monotonicMs();
    await world.eventually("ready", ready(world));
    expect(world.clock.monotonicMs() - startMs).toBeGreaterThan(5000);
    expect(cloud.calls).toHaveLength(4);
    await world.eventually("the claim is let go", async () => {
      const { finalizers = [] } = (await claimOf(world))?.metadata ?? {};
      return !finalizers.includes("snapshot.storage.kubernetes.io/pvc-as-source-protection");
    });
    await stop();
  });

  it("is looked for again after an answer that never came, and is not made twice", async () => {
    const { world, stop } = await started({ snapshotter: { timeoutMs: 5000 } });
    world.cloud.next("CreateSnapshot", { lost: true }, { code: "UNAVAILABLE" });
    await ask(world);
    await world.eventually("uncertain", errorOf(world, "CreateSnapshot"));
    const [content] = await world.contents();
    expect(content?.metadata.annotations?.[beingCreated]).toBe("yes");
    const snapshot = await world.eventually("ready", ready(world));
    expect(snapshot.status?.error).toBeUndefined();
    expect(world.snapshots.byId.size).toBe(1);
    const [settled] = await world.contents();
    expect(settled?.metadata.annotations?.[beingCreated]).toBeUndefined();
    await stop();
  });

  it("that is deleted while its outcome is uncertain, is found and deleted", async () => {
    const { world, stop } = await started({ looksUntilReady: 5, snapshotter: { timeoutMs: 5000 } });
    world.cloud.next("CreateSnapshot", { lost: true }, { code: "ABORTED" });
    await ask(world);
    await world.eventually("made", async () => world.snapshots.byId.size === 1);
    await remove(world);
    await world.eventually("gone", gone(world), 60_000);
    expect(world.snapshots.byId.size).toBe(0);
    expect(await world.contents()).toEqual([]);
    await stop();
  });

  it("that the driver refuses, says so and can be deleted at once", async () => {
    const { world, stop } = await started();
    const refusals = Array.from({ length: 50 }, () => ({ code: "INVALID_ARGUMENT" }) as const);
    world.cloud.next("CreateSnapshot", ...refusals);
    await ask(world);
    await world.eventually("refused", errorOf(world, "INVALID_ARGUMENT"));
    const [content] = await world.contents();
    expect(content?.metadata.annotations?.[beingCreated]).toBeUndefined();
    expect(content?.status?.error?.message).toContain("Failed to create snapshot: CreateSnapshot failed");
    expect(await world.reasons()).toContain("SnapshotCreationFailed");
    await remove(world);
    await world.eventually("gone", gone(world), 60_000);
    expect(world.cloud.calls.some((call) => call.startsWith("DeleteSnapshot"))).toBe(false);
    await stop();
  });

  it("keeps what the driver has with policy Retain", async () => {
    const { world, stop } = await started({ snapshotClass: { deletionPolicy: "Retain" } });
    const { kube, signal } = world;
    await ask(world);
    const snapshot = await world.eventually("ready", ready(world));
    expect(snapshot.metadata.finalizers).toEqual([
      "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection",
    ]);
    await remove(world);
    await world.eventually("gone", gone(world));
    const [content] = await world.contents();
    expect(content?.metadata.annotations?.[beingDeleted]).toBe("yes");
    await kube.delete(volumeSnapshotContents, { name: content?.metadata.name ?? "" }, { signal });
    await world.eventually("content gone", async () => (await world.contents()).length === 0);
    expect(world.snapshots.byId.size).toBe(1);
    await stop();
  });

  it("is not deleted while a volume is made from it", async () => {
    const { world, stop } = await started();
    const { kube, signal } = world;
    await ask(world);
    await world.eventually("ready", ready(world));
    const claim: PersistentVolumeClaim = {
      metadata: { name: "restored", namespace: "default" },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "1Gi" } },
        dataSource: { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "s" },
      },
    };
    await kube.create(resources.persistentVolumeClaims, claim, { signal });
    await world.clock.settle();
    await remove(world);
    await world.clock.advance(60_000);
    expect(await world.snapshot("s")).toBeDefined();
    expect(world.snapshots.byId.size).toBe(1);
    expect(await world.reasons()).toContain("SnapshotDeletePending");
    const body = { status: { phase: "Bound" } };
    const restored = { namespace: "default", name: "restored" };
    await kube.patch(
      resources.persistentVolumeClaims,
      restored,
      { type: "merge", body },
      { signal, subresource: "status" },
    );
    await world.eventually("gone", gone(world), 5000);
    expect(world.snapshots.byId.size).toBe(0);
    await stop();
  });

  it("of an in-tree volume goes to the driver that serves its plugin", async () => {
    const { world, stop } = await started({
      source: { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-9", fsType: "ext4" } },
    });
    await ask(world);
    await world.eventually("ready", ready(world));
    expect([...world.snapshots.byId.values()].map((made) => made.sourceVolumeId)).toEqual(["vol-9"]);
    await stop();
  });

  it("is deleted once, after failures of the driver, and its finalizer goes last", async () => {
    const { world, stop } = await started();
    await ask(world);
    await world.eventually("ready", ready(world));
    world.cloud.next("DeleteSnapshot", { code: "FAILED_PRECONDITION" }, { code: "UNAVAILABLE" });
    await remove(world);
    await world.clock.advance(500);
    expect(await world.contents()).toHaveLength(1);
    expect(world.snapshots.byId.size).toBe(1);
    await world.eventually("gone", gone(world));
    expect(world.snapshots.byId.size).toBe(0);
    expect(await world.reasons()).toContain("SnapshotDeleteError");
    expect(world.cloud.calls.filter((call) => call.startsWith("DeleteSnapshot"))).toHaveLength(3);
    await stop();
  });

  it("is not created again when its content was removed", async () => {
    const { world, stop } = await started();
    const { kube, signal } = world;
    await ask(world);
    await world.eventually("ready", ready(world));
    await stop();
    const [content] = await world.contents();
    const name = content?.metadata.name ?? "";
    const metadata = { finalizers: null };
    await kube.patch(volumeSnapshotContents, { name }, { type: "merge", body: { metadata } }, { signal });
    await kube.delete(volumeSnapshotContents, { name }, { signal });
    const parts = [startSnapshotController(world.env()), startSnapshotter(world.env())];
    await world.eventually("missing", errorOf(world, "VolumeSnapshotContent is missing"));
    await world.clock.advance(600_000);
    expect((await world.snapshot("s"))?.status?.readyToUse).toBe(false);
    expect(world.cloud.calls).toHaveLength(1);
    await remove(world);
    await world.eventually("gone", gone(world), 5000);
    for (const part of parts) await part.stop();
  });
});

describe("what is asked of the driver", () => {
  it("has the secrets that the class names, which appear nowhere else", async () => {
    const logger = recordingLogger();
    const parameters = {
      kind: "fast",
      "csi.storage.k8s.io/snapshotter-secret-name": `of-${token("volumesnapshot.name")}`,
      "csi.storage.k8s.io/snapshotter-secret-namespace": token("volumesnapshot.namespace"),
    };
    const { world, stop } = await started({ snapshotClass: { parameters }, runtime: { logger } });
    const { kube, signal } = world;
    await ask(world);
    await world.eventually("no secret", errorOf(world, 'secret "default/of-s" not found'));
    expect(world.cloud.calls).toEqual([]);
    const data = { token: Buffer.from("hush").toString("base64") };
    const secret = { namespace: "default", name: "of-s" };
    await kube.create(resources.secrets, { metadata: secret, data }, { signal });
    await world.eventually("ready", ready(world));
    expect([...world.snapshots.byId.values()].map((made) => made.parameters)).toEqual([{ kind: "fast" }]);
    const [content] = await world.contents();
    expect(content?.metadata.annotations).toMatchObject({
      "snapshot.storage.kubernetes.io/deletion-secret-name": "of-s",
      "snapshot.storage.kubernetes.io/deletion-secret-namespace": "default",
    });
    await remove(world);
    await world.eventually("gone", gone(world));
    expect(world.snapshots.secrets).toEqual(["CreateSnapshot token=hush", "DeleteSnapshot token=hush"]);
    expect(JSON.stringify(logger.lines)).not.toContain("hush");
    await stop();
  });

  it("goes on without a secret that was deleted before the snapshot", async () => {
    const parameters = {
      "csi.storage.k8s.io/snapshotter-secret-name": "gone",
      "csi.storage.k8s.io/snapshotter-secret-namespace": "default",
    };
    const { world, stop } = await started({ snapshotClass: { parameters } });
    const { kube, signal } = world;
    const secret = { namespace: "default", name: "gone" };
    await kube.create(resources.secrets, { metadata: secret }, { signal });
    await ask(world);
    await world.eventually("ready", ready(world));
    await kube.delete(resources.secrets, secret, { signal });
    await remove(world);
    await world.eventually("gone", gone(world));
    expect(world.snapshots.byId.size).toBe(0);
    await stop();
  });

  it("names the VolumeSnapshot, and has a short name, where configured", async () => {
    const { world, stop } = await started({
      snapshotter: { extraCreateMetadata: true, snapshotNamePrefix: "snap", snapshotNameUuidLength: 8 },
    });
    const { metadata } = await ask(world);
    await world.eventually("ready", ready(world));
    const [made] = [...world.snapshots.byId.values()];
    expect(made).toMatchObject({
      name: `snap-${metadata.uid.replaceAll("-", "").slice(0, 8)}`,
      parameters: {
        "csi.storage.k8s.io/volumesnapshot/name": "s",
        "csi.storage.k8s.io/volumesnapshot/namespace": "default",
        "csi.storage.k8s.io/volumesnapshotcontent/name": `snapcontent-${metadata.uid}`,
      },
    });
    await stop();
  });
});

describe("a snapshot that exists", () => {
  it.each([
    { name: "looked up", listsSnapshots: true, size: "1Gi" as string | undefined },
    { name: "taken as ready where the driver lists none", listsSnapshots: false, size: undefined },
  ])("is bound both ways and $name", async ({ listsSnapshots, size }) => {
    const { world, stop } = await started({ listsSnapshots, snapshotClass: null });
    const { kube, signal } = world;
    world.snapshots.create("by hand", "vol-9", 0);
    await kube.create(volumeSnapshotContents, aContent(), { signal });
    const { metadata } = await ask(world, existing);
    const snapshot = await world.eventually("ready", ready(world));
    expect(snapshot.status).toMatchObject({ boundVolumeSnapshotContentName: "by-hand" });
    expect(snapshot.status?.restoreSize).toBe(size);
    const [content] = await world.contents();
    expect(content?.spec.volumeSnapshotRef).toMatchObject({ name: "s", uid: metadata.uid });
    expect(content?.metadata.finalizers).toEqual([
      "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection",
    ]);
    expect(world.cloud.calls.some((call) => call.startsWith("CreateSnapshot"))).toBe(false);
    await remove(world);
    await world.eventually("gone", gone(world));
    expect(world.snapshots.byId.size).toBe(0);
    await stop();
  });

  it("is looked up with the list secret of its class", async () => {
    const parameters = {
      "csi.storage.k8s.io/snapshotter-list-secret-name": "list",
      "csi.storage.k8s.io/snapshotter-list-secret-namespace": "default",
    };
    const { world, stop } = await started({ listsSnapshots: true, snapshotClass: { parameters } });
    const { kube, signal } = world;
    world.snapshots.create("by hand", "vol-9", 0);
    const data = { token: Buffer.from("list").toString("base64") };
    await kube.create(
      resources.secrets,
      { metadata: { namespace: "default", name: "list" }, data },
      { signal },
    );
    await kube.create(volumeSnapshotContents, aContent({ volumeSnapshotClassName: "snapshots" }), { signal });
    await ask(world, existing);
    await world.eventually("ready", ready(world));
    expect(world.snapshots.secrets).toContain("ListSnapshots token=list");
    await stop();
  });

  it("that the driver does not know, is not ready and says so", async () => {
    const { world, stop } = await started({ listsSnapshots: true });
    const { kube, signal } = world;
    await kube.create(volumeSnapshotContents, aContent(), { signal });
    await ask(world, existing);
    await world.eventually("unknown", errorOf(world, 'the driver knows no snapshot "snap-0001"'));
    expect(await world.reasons()).toContain("SnapshotContentCheckandUpdateFailed");
    world.snapshots.create("by hand", "vol-9", 0);
    const snapshot = await world.eventually("ready", ready(world));
    expect(snapshot.status?.error).toBeUndefined();
    await stop();
  });

  it.each([
    {
      name: "a content that is not there",
      content: undefined,
      reason: "SnapshotContentMissing",
    },
    {
      name: "a content for another snapshot",
      content: aContent({ volumeSnapshotRef: { name: "other", namespace: "default" } }),
      reason: "SnapshotContentMisbound",
    },
    {
      name: "a content of a snapshot of this name that is no more",
      content: aContent({ volumeSnapshotRef: { name: "s", namespace: "default", uid: "old" } }),
      reason: "SnapshotContentMisbound",
    },
    {
      name: "a content of which a snapshot is to be made",
      content: aContent({ source: { volumeHandle: "vol-9" } }),
      reason: "SnapshotContentMismatch",
    },
  ])("is not bound to $name", async ({ content, reason }) => {
    const { world, stop } = await started();
    const { kube, signal } = world;
    if (content !== undefined) await kube.create(volumeSnapshotContents, content, { signal });
    await ask(world, existing);
    const refused = await world.eventually("refused", async () => {
      const snapshot = await world.snapshot("s");
      return snapshot?.status?.error ? snapshot : undefined;
    });
    expect(refused.status?.readyToUse).toBe(false);
    expect(await world.reasons()).toContain(reason);
    const [untouched] = await world.contents();
    expect(untouched?.spec.volumeSnapshotRef).toEqual(content?.spec.volumeSnapshotRef);
    await remove(world);
    await world.eventually("gone", gone(world), 5000);
    await stop();
  });

  it("comes to a content that is made later", async () => {
    const { world, stop } = await started();
    const { kube, signal } = world;
    world.snapshots.create("by hand", "vol-9", 0);
    await ask(world, existing);
    await world.eventually("missing", errorOf(world, "VolumeSnapshotContent is missing"));
    await kube.create(volumeSnapshotContents, aContent(), { signal });
    await world.eventually("ready", ready(world), 2000);
    await stop();
  });

  it("whose content is deleted first, keeps it until it is deleted itself", async () => {
    const { world, stop } = await started();
    const { kube, signal } = world;
    world.snapshots.create("by hand", "vol-9", 0);
    await kube.create(volumeSnapshotContents, aContent(), { signal });
    await ask(world, existing);
    await world.eventually("ready", ready(world));
    await kube.delete(volumeSnapshotContents, { name: "by-hand" }, { signal });
    await world.clock.advance(600_000);
    expect(await world.contents()).toHaveLength(1);
    expect(world.snapshots.byId.size).toBe(1);
    await remove(world);
    await world.eventually("gone", gone(world));
    expect(world.snapshots.byId.size).toBe(0);
    await stop();
  });

  it("of a snapshot that is gone for good can be deleted by an administrator", async () => {
    const { world, stop } = await started();
    const { kube, signal } = world;
    world.snapshots.create("by hand", "vol-9", 0);
    const lost = aContent({ volumeSnapshotRef: { name: "s", namespace: "default", uid: "old" } });
    await kube.create(volumeSnapshotContents, lost, { signal });
    await world.eventually("held", async () => (await world.contents())[0]?.metadata.finalizers);
    await world.clock.advance(60_000);
    // It is not deleted automatically: it may have come from a backup.
    expect((await world.contents())[0]?.metadata.deletionTimestamp).toBeUndefined();
    await kube.delete(volumeSnapshotContents, { name: "by-hand" }, { signal });
    await world.eventually("gone", async () => (await world.contents()).length === 0);
    expect(world.snapshots.byId.size).toBe(0);
    await stop();
  });
});

describe("classes", () => {
  it("a snapshot waits for a class, and takes the default of its driver once there is one", async () => {
    const { world, stop } = await started({ snapshotClass: null });
    const { kube, signal } = world;
    const name = (text: string, isDefault: string) => ({
      name: text,
      annotations: { "snapshot.storage.kubernetes.io/is-default-class": isDefault },
    });
    await kube.create(
      volumeSnapshotClasses,
      aSnapshotClass({ metadata: name("other", "true"), driver: "other.csi" }),
      { signal },
    );
    await kube.create(volumeSnapshotClasses, aSnapshotClass({ metadata: name("no", "false") }), { signal });
    await ask(world);
    await world.eventually("no default", errorOf(world, "Failed to set default snapshot class with error"));
    expect(await world.reasons()).toContain("SetDefaultSnapshotClassFailed");
    await kube.create(volumeSnapshotClasses, aSnapshotClass(), { signal });
    const snapshot = await world.eventually("ready", ready(world), 5000);
    expect(snapshot.spec.volumeSnapshotClassName).toBe("snapshots");
    expect(snapshot.status?.error).toBeUndefined();
    await stop();
  });

  it("two defaults of one driver are none", async () => {
    const { world, stop } = await started();
    const { kube, signal } = world;
    const second = aSnapshotClass();
    await kube.create(
      volumeSnapshotClasses,
      { ...second, metadata: { ...second.metadata, name: "second" } },
      { signal },
    );
    await ask(world);
    await world.eventually("two", errorOf(world, "2 classes of driver ebs.csi.aws.com are the default"));
    expect(world.cloud.calls).toEqual([]);
    await stop();
  });

  it("a class that is not there, or of another driver than the volume, makes no snapshot", async () => {
    const { world, stop } = await started({ snapshotClass: null });
    const { kube, signal } = world;
    await ask(world, { source: { persistentVolumeClaimName: "data" }, volumeSnapshotClassName: "snapshots" });
    await world.eventually("no class", errorOf(world, '"snapshots" not found'));
    expect(await world.reasons()).toContain("GetSnapshotClassFailed");
    await kube.create(volumeSnapshotClasses, aSnapshotClass({ driver: "other.csi" }), { signal });
    await world.eventually("another driver", errorOf(world, "is of driver other.csi"));
    expect(await world.contents()).toEqual([]);
    await remove(world);
    await world.eventually("gone", gone(world), 5000);
    await stop();
  });
});

describe("claims", () => {
  it("a snapshot of a claim that is yet to come or to be bound, waits for it", async () => {
    const { world, stop } = await started();
    const { kube, signal } = world;
    await ask(world, { source: { persistentVolumeClaimName: "later" } });
    await world.eventually("no claim", errorOf(world, 'claim "default/later" not found'));
    await addBoundClaim(world, "later");
    await world.eventually("ready", ready(world), 10_000);
    expect(await kube.list(volumeSnapshotContents, { signal })).toMatchObject({ items: [{}] });
    await stop();
  });

  it("a claim that is being deleted gets no new finalizer", async () => {
    const { world, stop } = await started();
    const { kube, signal } = world;
    const claim = { namespace: "default", name: "data" };
    const body = { metadata: { finalizers: ["kubernetes.io/pvc-protection"] } };
    await kube.patch(resources.persistentVolumeClaims, claim, { type: "merge", body }, { signal });
    await kube.delete(resources.persistentVolumeClaims, claim, { signal });
    await ask(world);
    await world.eventually("refused", errorOf(world, "is being deleted"));
    expect(await world.contents()).toEqual([]);
    await stop();
  });

  it("a claim that a controller left held is let go at the next start", async () => {
    const world = await snapshotWorld();
    const { kube, signal } = world;
    await addBoundClaim(world, "data");
    const claim = { namespace: "default", name: "data" };
    const finalizers = ["snapshot.storage.kubernetes.io/pvc-as-source-protection", "example.com/other"];
    const body = { metadata: { finalizers } };
    await kube.patch(resources.persistentVolumeClaims, claim, { type: "merge", body }, { signal });
    const controller = startSnapshotController(world.env());
    await world.eventually("let go", async () => {
      const kept = (await claimOf(world))?.metadata.finalizers ?? [];
      return kept.length === 1 && kept[0] === "example.com/other";
    });
    await controller.stop();
  });
});

describe("where kinds or nodes are not", () => {
  it("both parts wait for the kinds, say so, and begin when they come", async () => {
    const logger = recordingLogger();
    const world = await snapshotWorld({ kinds: false, runtime: { logger } });
    const { kube, signal, clock } = world;
    await addBoundClaim(world, "data");
    const parts = [startSnapshotController(world.env()), startSnapshotter(world.env())];
    await clock.advance(120_000);
    const waiting = logger.lines.filter(({ message }) => message.startsWith("waiting for kinds"));
    expect(waiting).toHaveLength(2);
    const definitions = { group: "apiextensions.k8s.io", versions: ["v1"] as const };
    const resource = {
      ...definitions,
      versions: ["v1"] as const,
      kind: "CustomResourceDefinition",
      plural: "customresourcedefinitions",
      namespaced: false,
    };
    const { fileURLToPath } = await import("node:url");
    const { snapshotCrdsUrl } = await import("@longshore/storage");
    for (const definition of await readDefinitions([fileURLToPath(snapshotCrdsUrl)])) {
      await kube.create(resource, definition, { signal });
    }
    await world.eventually("served", async () => {
      try {
        await kube.create(volumeSnapshotClasses, aSnapshotClass(), { signal });
        return true;
      } catch (error) {
        if (isNotFound(error)) return false;
        throw error;
      }
    });
    await ask(world);
    await world.eventually("ready", ready(world));
    for (const part of parts) await part.stop();
  });

  it("snapshots of local volumes are left to the snapshotter of their node", async () => {
    const world = await snapshotWorld();
    const { kube, signal, cloud, clock } = world;
    const terms = [{ matchExpressions: [{ key: "host", operator: "In", values: ["b"] }] }];
    await addBoundClaim(world, "data", {
      csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-9" },
      nodeAffinity: { required: { nodeSelectorTerms: terms } },
    });
    for (const name of ["a", "b"]) {
      const labels = { host: name };
      await kube.create(resources.nodes, { metadata: { name: `node-${name}`, labels } }, { signal });
    }
    await kube.create(volumeSnapshotClasses, aSnapshotClass(), { signal });
    const controller = startSnapshotController(world.env(), { distributed: true });
    const onA = startSnapshotter(world.env(), { nodeName: "node-a" });
    await ask(world);
    await clock.advance(60_000);
    expect(cloud.calls).toEqual([]);
    const onB = startSnapshotter(world.env(), { nodeName: "node-b" });
    await world.eventually("ready", ready(world));
    const [content] = await world.contents();
    expect(content?.metadata.labels).toEqual({ "snapshot.storage.kubernetes.io/managed-by": "node-b" });
    for (const part of [controller, onA, onB]) await part.stop();
  });

  it("the volume mode of the source is not recorded where that is off", async () => {
    const { world, stop } = await started({ controller: { preventVolumeModeConversion: false } });
    await ask(world);
    await world.eventually("ready", ready(world));
    const [content] = await world.contents();
    expect(content?.spec.sourceVolumeMode).toBeUndefined();
    await stop();
  });
});

describe("metrics", () => {
  it("measure creation, readiness and deletion by the reference's names", async () => {
    const meter = recordingMeter();
    const { world, stop } = await started({ runtime: { meter } });
    await ask(world);
    await world.eventually("ready", ready(world));
    await remove(world);
    await world.eventually("gone", gone(world));
    for (const operation_name of ["CreateSnapshot", "CreateSnapshotAndReady", "DeleteSnapshot"]) {
      const labels = {
        driver_name: "ebs.csi.aws.com",
        operation_name,
        operation_status: "success",
        snapshot_type: "dynamic",
      };
      expect(
        meter.observations("snapshot_controller_operation_total_seconds", labels),
        operation_name,
      ).toHaveLength(1);
    }
    expect(meter.value("snapshot_controller_operations_in_flight")).toBe(0);
    await stop();
  });

  it("of a snapshot that was deleted before it was made say that it was cancelled", async () => {
    const meter = recordingMeter();
    const { world, stop } = await started({ runtime: { meter }, snapshotClass: null });
    await ask(world, { ...existing });
    await world.eventually("missing", errorOf(world, "VolumeSnapshotContent is missing"));
    const { kube, signal } = world;
    const finalizers = ["snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection"];
    const body = { metadata: { finalizers } };
    await kube.patch(volumeSnapshots, ref, { type: "merge", body }, { signal });
    await remove(world);
    await world.eventually("gone", gone(world), 5000);
    const labels = { driver_name: "unknown", snapshot_type: "pre-provisioned" };
    const name = "snapshot_controller_operation_total_seconds";
    for (const [operation_name, operation_status] of [
      ["CreateSnapshot", "cancel"],
      ["CreateSnapshotAndReady", "cancel"],
      ["DeleteSnapshot", "success"],
    ] as const) {
      expect(meter.observations(name, { ...labels, operation_name, operation_status })).toHaveLength(1);
    }
    await stop();
  });
});
