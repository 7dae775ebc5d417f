import { interceptWrites, type KubeClient, KubeTransportError, type Lease, resources } from "@longshore/kube";
import { recordingLogger, recordingMeter } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import {
  aClaim,
  addNode,
  anAttachment,
  anInTreeVolume,
  aStorageClass,
  sidecarWorld,
  type World,
} from "../testing/world.ts";
import type { SidecarOptions } from "./sidecar-kinds.ts";
import { type Sidecars, type SidecarsFailedError, type SidecarsOptions, startSidecars } from "./sidecars.ts";

const all: SidecarOptions = {
  provisioner: {},
  attacher: {},
  resizer: {},
  snapshotter: {},
  "health-monitor": {},
};
const lease = { namespace: "default", identity: "ours" };
const attacherLease = { name: "external-attacher-leader-ebs-csi-aws-com", namespace: "default" };
const provisionerLease = { name: "ebs-csi-aws-com", namespace: "default" };

async function worldWithWork(): Promise<World> {
  const world = await sidecarWorld();
  const { kube, signal } = world;
  await addNode(world, "node-a", "us-east-1a");
  await kube.create(resources.storageClasses, aStorageClass(), { signal });
  await kube.create(resources.persistentVolumes, anInTreeVolume(), { signal });
  return world;
}

const leaseNow = ({ kube, signal }: World, ref = attacherLease) =>
  kube.get(resources.leases, ref, { signal });

const takeLease = async (world: World, ref = attacherLease) => {
  const { kube, signal } = world;
  const held = (await leaseNow(world, ref)) as Lease;
  const spec = { ...held.spec, holderIdentity: "thief", leaseDurationSeconds: 15 };
  await kube.update(resources.leases, { ...held, spec }, { signal });
};

const failureOf = (world: World, sidecars: Sidecars): Promise<SidecarsFailedError> => {
  let found: SidecarsFailedError | undefined;
  void sidecars.failed.then((error) => {
    found = error;
  });
  return world.eventually("failed", async () => found, 60_000);
};

const leads = (sidecars: Sidecars, name: keyof SidecarOptions) =>
  sidecars.leases().get(name)?.isLeader === true;

describe("sidecars in one process", () => {
  it("serve what the driver can do, and say what is left out and why", async () => {
    const world = await worldWithWork();
    const { kube, signal, clock } = world;
    const logger = recordingLogger();
    const sidecars = startSidecars({ ...world.env(), logger }, { sidecars: all });
    await kube.create(resources.persistentVolumeClaims, aClaim(), { signal });
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    await world.eventually("provisioned and attached", async () => {
      const { items } = await kube.list(resources.persistentVolumes, { signal });
      const va = await kube.get(resources.volumeAttachments, { name: "csi-1" }, { signal });
      return items.length === 2 && va?.status?.attached === true;
    });
    const leftOut = logger.lines.filter(({ message }) => message.includes("is left out"));
    expect(Object.fromEntries(leftOut.map(({ message, fields }) => [message, fields.why]))).toEqual({
      "the resizer is left out": expect.stringContaining("EXPAND_VOLUME"),
      "the snapshotter is left out": expect.stringContaining("CREATE_DELETE_SNAPSHOT"),
      "the health-monitor is left out": expect.stringContaining("VOLUME_CONDITION"),
    });
    expect(await leaseNow(world)).toBeUndefined();
    await clock.run(sidecars.stop());
  });

  it("that are not asked for do not run", async () => {
    const world = await worldWithWork();
    const { kube, signal, clock } = world;
    const sidecars = startSidecars(world.env(), { sidecars: { attacher: {} } });
    await kube.create(resources.persistentVolumeClaims, aClaim(), { signal });
    await clock.advance(60_000);
    expect(world.cloud.calls).toEqual([]);
    await clock.run(sidecars.stop());
  });

  it("keep one cache of each kind, together", async () => {
    const world = await worldWithWork();
    const watches: string[] = [];
    const counting: KubeClient = {
      ...bound(world.kube),
      watch(resource, options) {
        watches.push(resource.plural);
        return world.kube.watch(resource, options);
      },
    };
    const sidecars = startSidecars(world.env(counting), { sidecars: all, lease });
    await world.clock.advance(20_000);
    expect(leads(sidecars, "attacher") && leads(sidecars, "provisioner")).toBe(true);
    expect(watches.sort()).toEqual([...new Set(watches)]);
    expect(watches).toContain("persistentvolumes");
    await world.clock.run(sidecars.stop());
  });

  it("measure their calls, and label those for migrated volumes", async () => {
    for (const [name, migrated] of [
      ["ebs.csi.aws.com", "true"],
      ["other.csi.example.com", undefined],
    ] as const) {
      const world = await sidecarWorld({ name });
      const { kube, signal } = world;
      const meter = recordingMeter();
      const sidecars = startSidecars({ ...world.env(), meter }, { sidecars: { attacher: {} } });
      const inline = { accessModes: ["ReadWriteOnce"], csi: { driver: name, volumeHandle: "vol-1" } };
      const source = migrated ? { inlineVolumeSpec: inline } : { persistentVolumeName: "pv-csi" };
      const { awsElasticBlockStore: _, ...plain } = anInTreeVolume().spec ?? {};
      const spec = { ...plain, csi: inline.csi };
      await kube.create(resources.persistentVolumes, { metadata: { name: "pv-csi" }, spec }, { signal });
      const drivers = [{ name, nodeID: "i-1", topologyKeys: [] }];
      await kube.create(resources.csiNodes, { metadata: { name: "node-b" }, spec: { drivers } }, { signal });
      await kube.create(
        resources.volumeAttachments,
        anAttachment({ attacher: name, source, nodeName: "node-b" }),
        { signal },
      );
      const labels = {
        driver_name: name,
        method_name: "/csi.v1.Controller/ControllerPublishVolume",
        grpc_status_code: "OK",
        ...(migrated === undefined ? {} : { migrated }),
      };
      await world.eventually(
        "attached, and measured",
        async () => meter.value("csi_sidecar_operations_seconds", labels) === 1,
      );
      await world.clock.run(sidecars.stop());
    }
  });

  it("wait for a driver that is not there yet, and can be stopped meanwhile", async () => {
    const world = await worldWithWork();
    world.csi.crash("/csi/csi.sock");
    const logger = recordingLogger();
    const sidecars = startSidecars({ ...world.env(), logger }, { sidecars: all, lease });
    await world.clock.advance(65_000);
    expect(sidecars.leases().size).toBe(0);
    expect(logger.lines.map(({ message, fields }) => [message, fields.seconds])).toEqual([
      ["still waiting for the driver", 30],
      ["still waiting for the driver", 60],
    ]);
    await world.clock.run(sidecars.stop());
    await world.clock.advance(60_000);
    expect(logger.lines).toHaveLength(2);
  });

  it("cannot go on when the connection to the driver is lost", async () => {
    const world = await worldWithWork();
    const sidecars = startSidecars(world.env(), { sidecars: all });
    await world.clock.advance(5000);
    world.csi.crash("/csi/csi.sock");
    const { reason, message } = await failureOf(world, sidecars);
    expect([reason, message]).toEqual(["driverLost", "Lost connection to CSI driver, exiting"]);
    await world.clock.run(sidecars.stop());
  });
});

describe("each with a lease of its own", () => {
  it("has the reference's names, and lets go of none unless asked to", async () => {
    const world = await worldWithWork();
    for (const releaseOnStop of [false, true]) {
      const sidecars = startSidecars(world.env(), {
        sidecars: all,
        lease: { ...lease, releaseOnStop, labels: { app: "driver" } },
      });
      for (const ref of [attacherLease, provisionerLease]) {
        await world.eventually("held", async () => {
          const held = await leaseNow(world, ref);
          return held?.spec?.holderIdentity === "ours" && held.metadata.labels?.app === "driver";
        });
      }
      await world.clock.run(sidecars.stop());
      const after = await leaseNow(world);
      expect(after?.spec?.holderIdentity).toBe(releaseOnStop ? "" : "ours");
    }
    const { items } = await world.kube.list(resources.leases, { signal: world.signal });
    expect(items.map(({ metadata }) => metadata.name).sort()).toEqual([
      provisionerLease.name,
      attacherLease.name,
    ]);
  });

  it("that loses it stops alone, and competes again", async () => {
    const world = await worldWithWork();
    const { kube, signal, clock } = world;
    const sidecars = startSidecars(world.env(), { sidecars: all, lease });
    await world.eventually(
      "both lead",
      async () => leads(sidecars, "attacher") && leads(sidecars, "provisioner"),
    );
    await takeLease(world);
    await world.eventually("lost", async () => !leads(sidecars, "attacher"));
    await kube.create(resources.volumeAttachments, anAttachment(), { signal });
    await kube.create(resources.persistentVolumeClaims, aClaim(), { signal });
    await clock.advance(8000);
    // The thief's lease has not lapsed yet.
    expect(world.cloud.calls).toEqual([expect.stringContaining("CreateVolume")]);
    await world.eventually("attached", async () => {
      const va = await kube.get(resources.volumeAttachments, { name: "csi-1" }, { signal });
      return va?.status?.attached;
    });
    expect((await leaseNow(world))?.spec?.holderIdentity).toBe("ours");
    await clock.run(sidecars.stop());
  });

  it.each(["taken", "not renewed in time"])("alone, ends with one that was %s", async (how) => {
    const world = await worldWithWork();
    let isCut = false;
    const kube = interceptWrites(world.kube, (_request, signal, send) =>
      isCut ? Promise.reject(new KubeTransportError("cut off")) : send(signal),
    );
    const sidecars = startSidecars(world.env(kube), { sidecars: { attacher: {} }, lease, leaseLost: "fail" });
    await world.eventually("leads", async () => leads(sidecars, "attacher"));
    if (how === "taken") await takeLease(world);
    else isCut = true;
    expect((await failureOf(world, sidecars)).reason).toBe("leaseLost");
    await world.clock.run(sidecars.stop());
  });

  it("alone, ends with a driver that has no use for it", async () => {
    for (const over of [{}, { lease }] satisfies Partial<SidecarsOptions>[]) {
      const world = await worldWithWork();
      const options = { sidecars: { resizer: {} }, unsupported: "fail", ...over } as const;
      const sidecars = startSidecars(world.env(), options);
      const failure = await failureOf(world, sidecars);
      expect(failure.reason).toBe("unsupported");
      expect((failure.cause as Error).message).toContain("EXPAND_VOLUME");
      await world.clock.run(sidecars.stop());
    }
  });

  it("does not compete for what the driver has no use for", async () => {
    const world = await worldWithWork();
    const sidecars = startSidecars(world.env(), { sidecars: { snapshotter: {}, resizer: {} }, lease });
    await world.clock.advance(60_000);
    expect((await world.kube.list(resources.leases, { signal: world.signal })).items).toEqual([]);
    await world.clock.run(sidecars.stop());
  });
});

/** The client as an object whose members can be replaced. */
function bound(kube: KubeClient): KubeClient {
  return {
    get: (...args) => kube.get(...args),
    list: (...args) => kube.list(...args),
    watch: (...args) => kube.watch(...args),
    create: (...args) => kube.create(...args),
    update: (...args) => kube.update(...args),
    updateStatus: (...args) => kube.updateStatus(...args),
    patch: (...args) => kube.patch(...args),
    delete: (...args) => kube.delete(...args),
    createSubresource: (...args) => kube.createSubresource(...args),
    servedVersion: (...args) => kube.servedVersion(...args),
  };
}
