/**
 * The attacher with the reference driver over gRPC, against the real API server that validates what it
 * writes, with no more than the rights that the reference deployment grants.
 */
import { type CsiConnection, type CsiServer, grpcConnector, grpcListener } from "@longshore/csi";
import {
  type HttpKubeClient,
  type PersistentVolume,
  type PersistentVolumeSpec,
  resources,
  type Stored,
  type VolumeAttachment,
} from "@longshore/kube";
import { startAttacher } from "@longshore/sidecars";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createReferenceDriver } from "../../packages/reference-driver/src/driver/index.ts";
import {
  type ControlPlane,
  connectAs,
  eventually,
  grant,
  machine,
  type Provider,
  realEnv,
  signal,
  startControlPlane,
  startProvider,
} from "./support/index.ts";

const driverName = "ebs.csi.aws.com";
const finalizer = "external-attacher/ebs-csi-aws-com";
const user = "system:serviceaccount:kube-system:ebs-csi-controller";
const node1 = machine("node-1");
const node2 = machine("node-2");

let kubernetes: ControlPlane;
let provider: Provider;
let kube: HttpKubeClient;
let attacherKube: HttpKubeClient;
let server: CsiServer;
let csi: CsiConnection;
let attacher: ReturnType<typeof startAttacher>;

beforeAll(async () => {
  [kubernetes, provider] = await Promise.all([
    startControlPlane({
      featureGates: { CSIMigration: true, CSIMigrationAWS: true },
      users: [{ name: user }],
    }),
    startProvider([node1, node2]),
  ]);
  kube = await connectAs(kubernetes);
  await grant(kubernetes, user, "attacher");
  attacherKube = await connectAs(kubernetes, user);
  const cloud = provider.cloud.forCaller({ path: "csi", component: driverName });
  const services = createReferenceDriver(
    { ...realEnv, host: provider.host, cloud },
    { driverName, services: "controller" },
  );
  const socket = `${provider.directory}/csi.sock`;
  server = await grpcListener(realEnv).serve(socket, services);
  csi = grpcConnector(realEnv).connect(socket);
  attacher = start();
  for (const { nodeName, instanceId } of [node1, node2]) {
    await kube.create(resources.nodes, { metadata: { name: nodeName } }, { signal });
    await kube.create(
      resources.csiNodes,
      { metadata: { name: nodeName }, spec: { drivers: [{ name: driverName, nodeID: instanceId }] } },
      { signal },
    );
  }
});
afterAll(async () => {
  await attacher?.stop();
  csi?.close();
  await server?.close();
  await Promise.all([kube?.close(), attacherKube?.close()]);
  await Promise.all([kubernetes?.stop(), provider?.stop()]);
});

function start() {
  return startAttacher(
    { ...realEnv, kube: attacherKube, csi },
    { backoff: { initialMs: 100, maximumMs: 1000 } },
  );
}

const volumeSpec = (source: PersistentVolumeSpec): PersistentVolumeSpec => ({
  accessModes: ["ReadWriteOnce"],
  capacity: { storage: "1Gi" },
  persistentVolumeReclaimPolicy: "Retain",
  ...source,
});

function createVolume(name: string, source: PersistentVolumeSpec): Promise<Stored<PersistentVolume>> {
  return kube.create(
    resources.persistentVolumes,
    { metadata: { name }, spec: volumeSpec(source) },
    { signal },
  );
}

function attach(
  name: string,
  source: VolumeAttachment["spec"]["source"],
  nodeName = node1.nodeName,
): Promise<Stored<VolumeAttachment>> {
  const spec = { attacher: driverName, nodeName, source };
  return kube.create(resources.volumeAttachments, { metadata: { name }, spec }, { signal });
}

const attachment = (name: string) => kube.get(resources.volumeAttachments, { name }, { signal });

function attached(name: string): Promise<Stored<VolumeAttachment>> {
  return eventually(`${name} is attached`, async () => {
    const va = await attachment(name);
    return va?.status?.attached === true && va;
  });
}

async function detach(name: string): Promise<void> {
  await kube.delete(resources.volumeAttachments, { name }, { signal });
  await eventually(`${name} is gone`, async () => (await attachment(name)) === undefined);
}

describe("a volume is attached when asked for and detached when the attachment is deleted:", () => {
  test("a CSI volume", async () => {
    const disk = await provider.makeDisk("csi");
    await createVolume("csi", { csi: { driver: driverName, volumeHandle: disk, fsType: "ext4" } });
    await attach("va-csi", { persistentVolumeName: "csi" });
    const va = await attached("va-csi");
    expect(va.metadata.finalizers).toEqual([finalizer]);
    expect(va.metadata.annotations).toEqual({ "csi.alpha.kubernetes.io/node-id": node1.instanceId });
    expect(va.status?.attachError).toBeUndefined();
    expect(va.status?.attachmentMetadata).toMatchObject({ devicePath: expect.stringContaining("/") });
    expect(provider.attachedTo(disk)).toEqual([node1.instanceId]);
    const pv = await kube.get(resources.persistentVolumes, { name: "csi" }, { signal });
    expect(pv?.metadata.finalizers).toContain(finalizer);

    await detach("va-csi");
    expect(provider.attachedTo(disk)).toEqual([]);
  });

  test("a migrated in-tree volume, by the handle that its translation gives", async () => {
    const disk = await provider.makeDisk("in-tree");
    const pv = await createVolume("in-tree", {
      awsElasticBlockStore: { volumeID: `aws://${node1.zone}/${disk}`, fsType: "ext4" },
    });
    const migrated = { metadata: { annotations: { "pv.kubernetes.io/migrated-to": driverName } } };
    await kube.patch(
      resources.persistentVolumes,
      { name: "in-tree" },
      { type: "merge", body: migrated },
      { signal },
    );
    await attach("va-in-tree", { persistentVolumeName: "in-tree" });
    const va = await attached("va-in-tree");
    expect(va.metadata.finalizers).toEqual([finalizer]);
    expect(provider.attachedTo(disk)).toEqual([node1.instanceId]);
    const stored = await kube.get(resources.persistentVolumes, { name: "in-tree" }, { signal });
    expect(stored?.spec).toEqual(pv.spec);
    expect(stored?.metadata.finalizers).toContain(finalizer);

    await detach("va-in-tree");
    expect(provider.attachedTo(disk)).toEqual([]);

    // Migration switched off: nothing holds the volume any more.
    const back = { metadata: { annotations: { "pv.kubernetes.io/migrated-to": null } } };
    await kube.patch(
      resources.persistentVolumes,
      { name: "in-tree" },
      { type: "merge", body: back },
      { signal },
    );
    await eventually("the attacher lets go of the volume", async () => {
      const released = await kube.get(resources.persistentVolumes, { name: "in-tree" }, { signal });
      return !released?.metadata.finalizers?.includes(finalizer);
    });
  });

  test("an inline volume, which has no PersistentVolume", async () => {
    const disk = await provider.makeDisk("inline");
    // The API server refuses capacity and reclaim policy here.
    const inlineVolumeSpec: PersistentVolumeSpec = {
      accessModes: ["ReadWriteOnce"],
      csi: { driver: driverName, volumeHandle: disk, fsType: "ext4" },
    };
    await attach("va-inline", { inlineVolumeSpec });
    const va = await attached("va-inline");
    // Kept as it was: the API server drops this field where its gate is off.
    expect(va.spec.source.inlineVolumeSpec?.csi?.volumeHandle).toBe(disk);
    expect(provider.attachedTo(disk)).toEqual([node1.instanceId]);
    await detach("va-inline");
    expect(provider.attachedTo(disk)).toEqual([]);
  });
});

test("a failure stands in the status until it has passed", async () => {
  const disk = await provider.makeDisk("busy");
  await createVolume("busy", { csi: { driver: driverName, volumeHandle: disk } });
  await attach("va-busy-1", { persistentVolumeName: "busy" });
  await attached("va-busy-1");
  await attach("va-busy-2", { persistentVolumeName: "busy" }, node2.nodeName);
  const failed = await eventually("the second attachment fails", async () => {
    const va = await attachment("va-busy-2");
    return va?.status?.attachError !== undefined && va;
  });
  expect(failed.status).toMatchObject({ attached: false, attachError: { time: expect.any(String) } });
  expect(failed.status?.attachError?.message).toContain(disk);
  await detach("va-busy-1");
  const va = await attached("va-busy-2");
  expect(va.status?.attachError).toBeUndefined();
  expect(provider.attachedTo(disk)).toEqual([node2.instanceId]);
  await detach("va-busy-2");
  // The events that the CSI design asks for.
  await eventually("the failure is reported in an event", async () => {
    const { items } = await kube.list(resources.events, { signal });
    return items.some(
      (event) => event.involvedObject.name === "va-busy-2" && event.reason === "FailedAttachVolume",
    );
  });
});

test("an attacher that starts again finds what was asked for while it was away", async () => {
  const [kept, wanted, unwanted] = [
    await provider.makeDisk("kept"),
    await provider.makeDisk("wanted"),
    await provider.makeDisk("unwanted"),
  ];
  const disks = { kept, wanted, unwanted };
  for (const [name, disk] of Object.entries(disks)) {
    await createVolume(name, { csi: { driver: driverName, volumeHandle: disk } });
  }
  for (const name of ["kept", "unwanted"]) {
    await attach(`va-${name}`, { persistentVolumeName: name });
    await attached(`va-${name}`);
  }
  await attacher.stop();
  await attach("va-wanted", { persistentVolumeName: "wanted" });
  await kube.delete(resources.volumeAttachments, { name: "va-unwanted" }, { signal });
  expect((await attachment("va-unwanted"))?.metadata.deletionTimestamp).toBeDefined();
  const before = await attachment("va-kept");

  attacher = start();
  await attached("va-wanted");
  await eventually("va-unwanted is gone", async () => (await attachment("va-unwanted")) === undefined);
  expect(provider.attachedTo(unwanted)).toEqual([]);
  expect(provider.attachedTo(wanted)).toEqual([node1.instanceId]);
  // Nothing was to be done, so nothing was written.
  expect((await attachment("va-kept"))?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
  await detach("va-kept");
  await detach("va-wanted");
});

test("a volume that is deleted while attached stays until it is detached", async () => {
  const disk = await provider.makeDisk("leaving");
  await createVolume("leaving", { csi: { driver: driverName, volumeHandle: disk } });
  await attach("va-leaving", { persistentVolumeName: "leaving" });
  await attached("va-leaving");
  await kube.delete(resources.persistentVolumes, { name: "leaving" }, { signal });
  // No pv-protection runs here: what holds the volume is the attacher's finalizer.
  const leaving = await kube.get(resources.persistentVolumes, { name: "leaving" }, { signal });
  expect(leaving?.metadata.finalizers).toContain(finalizer);
  expect(leaving?.metadata.deletionTimestamp).toBeDefined();
  await detach("va-leaving");
  expect(provider.attachedTo(disk)).toEqual([]);
  await eventually("the attacher's finalizer is off", async () => {
    const pv = await kube.get(resources.persistentVolumes, { name: "leaving" }, { signal });
    return !pv?.metadata.finalizers?.includes(finalizer);
  });
});
