/** The driver under each of the eight names, and the same disks under the in-tree plugins' names for them. */
import {
  type CsiConnection,
  inProcessCsi,
  type MessageInitShape,
  VolumeCapability_AccessMode_Mode as Mode,
  type VolumeCapabilitySchema,
} from "@longshore/csi";
import { HostError, SimulatedHost } from "@longshore/runtime";
import * as translation from "@longshore/translation";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type DiskCloudService, defaultCephUsers, type ProviderCloud } from "../disk-cloud/index.ts";
import { gibibyte, instance, never, openCloud, testEnv } from "../testing/cloud-fixture.ts";
import { driverKind, driverKinds } from "./driver-kinds.ts";
import { createReferenceDriver } from "./reference-driver.ts";

const call = { signal: never, timeoutMs: 20_000 };
const node1 = instance(1).instanceId;
const zone = instance(1).zone;
type Capability = MessageInitShape<typeof VolumeCapabilitySchema>;
const capability = (mode: Mode, accessType: "mount" | "block" = "mount"): Capability => ({
  accessType: { case: accessType, value: {} },
  accessMode: { mode },
});
const writer = capability(Mode.SINGLE_NODE_WRITER);
const block = capability(Mode.SINGLE_NODE_WRITER, "block");
const ceph = { user: "admin", key: defaultCephUsers.admin ?? "" };

async function codeOf(rpc: Promise<unknown>): Promise<string> {
  return rpc.then(
    () => "OK",
    (error: { readonly code?: string }) => String(error.code ?? error),
  );
}

/** Fields of sources by their names. */
type Sources = Readonly<Record<string, Readonly<Record<string, string>>>>;

interface Facts {
  /** The volume as a PersistentVolume of the in-tree plugin has it. */
  source(diskId: string, diskName: string): object;
  /** The disk's id in such a source. */
  diskIdIn(spec: Sources): string;
  /** Form of the id of a volume that the driver makes as pvc-1. */
  readonly idForm: RegExp;
  /** Parameters as a translated class has them. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly maxVolumes: bigint;
  /** A parameter that the real driver refuses. */
  readonly refusesUnknown: boolean;
}

const uuid = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const secretRef = { name: "azure-storage-account-longshore-secret", namespace: "default" };
const facts: Readonly<Record<string, Facts>> = {
  "ebs.csi.aws.com": {
    source: (id) => ({ awsElasticBlockStore: { volumeID: `aws://${zone}/${id}` } }),
    diskIdIn: (spec) => spec.awsElasticBlockStore?.volumeID ?? "",
    idForm: /^vol-[0-9a-f]{17}$/,
    parameters: { type: "io1", iopsPerGB: "10", allowautoiopspergbincrease: "true" },
    maxVolumes: 39n,
    refusesUnknown: true,
  },
  "pd.csi.storage.gke.io": {
    source: (id) => ({ gcePersistentDisk: { pdName: id } }),
    diskIdIn: (spec) => spec.gcePersistentDisk?.pdName ?? "",
    idForm: /^projects\/UNSPECIFIED\/zones\/us-east-1a\/disks\/pvc-1$/,
    parameters: { type: "pd-ssd", "replication-type": "none", "csi.storage.k8s.io/fstype": "ext4" },
    maxVolumes: 127n,
    refusesUnknown: true,
  },
  "disk.csi.azure.com": {
    source: (diskURI, diskName) => ({ azureDisk: { diskName, diskURI, kind: "Managed" } }),
    diskIdIn: (spec) => spec.azureDisk?.diskURI ?? "",
    idForm: /^\/subscriptions\/[^/]+\/resourceGroups\/[^/]+\/providers\/Microsoft.Compute\/disks\/pvc-1$/,
    parameters: { skuName: "Premium_LRS", cachingMode: "None", kind: "Managed" },
    maxVolumes: 16n,
    refusesUnknown: true,
  },
  "file.csi.azure.com": {
    source: (_, shareName) => ({
      azureFile: { shareName, secretName: secretRef.name, secretNamespace: "default" },
    }),
    diskIdIn: (spec) => `#longshore#${spec.azureFile?.shareName}`,
    idForm: /^longshore#longshore#pvc-1#$/,
    parameters: { skuName: "Standard_GRS" },
    maxVolumes: 0n,
    refusesUnknown: true,
  },
  "cinder.csi.openstack.org": {
    source: (volumeID) => ({ cinder: { volumeID } }),
    diskIdIn: (spec) => spec.cinder?.volumeID ?? "",
    idForm: new RegExp(`^${uuid}$`),
    parameters: { availability: "nova", type: "fast" },
    maxVolumes: 256n,
    refusesUnknown: false,
  },
  "csi.vsphere.vmware.com": {
    source: (volumePath) => ({ vsphereVolume: { volumePath } }),
    diskIdIn: (spec) => spec.vsphereVolume?.volumePath ?? "",
    idForm: /^\[ssd\] kubevols\/pvc-1\.vmdk$/,
    parameters: {
      csimigration: "true",
      "datastore-migrationparam": "ssd",
      "diskformat-migrationparam": "thin",
    },
    maxVolumes: 59n,
    refusesUnknown: true,
  },
  "pxd.portworx.com": {
    source: (volumeID) => ({ portworxVolume: { volumeID } }),
    diskIdIn: (spec) => spec.portworxVolume?.volumeID ?? "",
    idForm: /^\d{5,19}$/,
    parameters: { repl: "2", io_priority: "high" },
    maxVolumes: 0n,
    refusesUnknown: false,
  },
  "rbd.csi.ceph.com": {
    source: (id) => ({ rbd: { monitors: ["m:6789"], pool: "rbd", image: id.split("/")[1] } }),
    diskIdIn: (spec) => `${spec.rbd?.pool}/${spec.rbd?.image}`,
    idForm: new RegExp(`^0001-0020-[0-9a-f]{32}-[0-9a-f]{16}-${uuid}$`),
    parameters: {
      clusterID: "0123456789abcdef0123456789abcdef",
      migration: "true",
      monitors: "m:6789",
      pool: "fast",
    },
    maxVolumes: 0n,
    refusesUnknown: false,
  },
};

test("every kind is tested", () => {
  expect(Object.keys(facts).sort()).toEqual(Object.keys(driverKinds).sort());
});

describe.each(Object.keys(driverKinds))("%s", (driverName) => {
  const kind = driverKind(driverName);
  const own = facts[driverName] as Facts;
  const isOnNode = kind.attachesOn === "node";
  let host: SimulatedHost;
  let service: DiskCloudService;
  let driver: CsiConnection;
  let inTree: ProviderCloud;
  let close: () => Promise<void>;
  beforeEach(async () => {
    host = new SimulatedHost();
    service = await openCloud(host, "/cloud");
    inTree = service.forCaller({ provider: kind.provider, path: "in-tree", component: "test" });
    const cloud = service.forCaller({ provider: kind.provider, path: "csi", component: driverName });
    const hub = inProcessCsi(testEnv());
    const services = createReferenceDriver(
      { ...testEnv(), host, cloud },
      { driverName, nodeName: "node-1", services: "both", recordsFile: "/records/r.json" },
    );
    const server = await hub.serve("/csi.sock", services);
    driver = hub.connect("/csi.sock");
    close = async () => {
      driver.close();
      await server.close();
      await service.stop();
    };
  });
  afterEach(() => close());

  /** The secret that a node stages with, as the provisioner of a translated class names it. */
  async function secretsFor(diskId: string): Promise<Record<string, string>> {
    if (kind.provider === "rbd") return { userID: ceph.user, userKey: ceph.key };
    if (!kind.isShare) return {};
    const { user, key } = await inTree.shareCredentials(diskId, never);
    return { azurestorageaccountname: user, azurestorageaccountkey: key };
  }

  async function create(parameters = own.parameters, volumeCapability = writer) {
    const { volume } = await driver.controller.createVolume(
      {
        name: "pvc-1",
        parameters: { ...parameters },
        volumeCapabilities: [volumeCapability],
        ...(kind.topologyKey && {
          accessibilityRequirements: { requisite: [{ segments: { [kind.topologyKey]: zone } }] },
        }),
      },
      call,
    );
    return { volumeId: volume?.volumeId ?? "", volume };
  }

  async function publish(volumeId: string, volumeCapability = writer, volumeContext = {}) {
    if (isOnNode) return;
    const { nodeId } = await driver.node.nodeGetInfo({}, call);
    await driver.controller.controllerPublishVolume(
      { volumeId, nodeId, volumeCapability, volumeContext },
      call,
    );
  }

  async function unpublish(volumeId: string) {
    const { nodeId } = await driver.node.nodeGetInfo({}, call);
    if (!isOnNode) await driver.controller.controllerUnpublishVolume({ volumeId, nodeId }, call);
  }

  test("create, attach, stage, publish, expand, delete: each twice, data kept", async () => {
    const { volumeId, volume } = await create();
    expect((await create()).volumeId).toBe(volumeId);
    expect(volumeId).toMatch(own.idForm);
    const [disk] = service.disks();
    expect(disk?.name).toMatch(kind.provider === "rbd" ? /^csi-vol-/ : /^pvc-1$/);
    const secrets = await secretsFor(disk?.id ?? "");
    const { volumeContext = {} } = volume ?? {};
    const stage = {
      volumeId,
      stagingTargetPath: "/s",
      volumeCapability: writer,
      secrets,
      volumeContext,
    };
    for (const round of [1, 2]) {
      for (let n = 0; n < 2; n++) {
        await publish(volumeId, writer, volumeContext);
        await driver.node.nodeStageVolume(stage, call);
        await driver.node.nodePublishVolume({ ...stage, targetPath: "/p" }, call);
      }
      if (round === 1) await host.writeFileAtomic("/p/data", "kept");
      expect(await host.readFile("/p/data")).toBe("kept");
      if (round === 1) {
        const capacityRange = { requiredBytes: 3n * gibibyte };
        const grown = await driver.controller.controllerExpandVolume({ volumeId, capacityRange }, call);
        expect(grown).toMatchObject({
          capacityBytes: 3n * gibibyte,
          nodeExpansionRequired: !kind.isShare,
        });
        const onNode = await driver.node.nodeExpandVolume(
          { volumeId, volumePath: "/p", capacityRange },
          call,
        );
        expect(onNode.capacityBytes).toBe(3n * gibibyte);
        if (!kind.isShare) expect((await host.usage("/p")).totalBytes).toBe(Number(3n * gibibyte));
        const stats = await driver.node.nodeGetVolumeStats({ volumeId, volumePath: "/p" }, call);
        expect(stats.volumeCondition?.abnormal).toBe(false);
      }
      const listed = (await driver.controller.listVolumes({}, call)).entries[0];
      expect(listed?.volume?.volumeId).toBe(volumeId);
      const { nodeId } = await driver.node.nodeGetInfo({}, call);
      expect(listed?.status?.publishedNodeIds).toEqual(isOnNode ? [] : [nodeId]);
      for (let n = 0; n < 2; n++) {
        await driver.node.nodeUnpublishVolume({ volumeId, targetPath: "/p" }, call);
        await driver.node.nodeUnstageVolume({ volumeId, stagingTargetPath: "/s" }, call);
        await unpublish(volumeId);
      }
      expect(service.disks()[0]?.attachments).toEqual([]);
    }
    for (let n = 0; n < 2; n++) await driver.controller.deleteVolume({ volumeId }, call);
    expect(service.disks()).toEqual([]);
    expect(JSON.stringify(await service.calls(0, never))).not.toContain(ceph.key);
    expect(await host.readFile("/records/r.json")).not.toContain(ceph.key);
  });

  test("a block device is published as a file, if the driver has devices", async () => {
    if (kind.isShare) {
      expect(await codeOf(create(own.parameters, block))).toBe("INVALID_ARGUMENT");
      return;
    }
    const { volumeId } = await create(own.parameters, block);
    await publish(volumeId, block);
    await host.makeDirectory("/pod");
    const secrets = await secretsFor("");
    const stage = { volumeId, stagingTargetPath: "/s", volumeCapability: block, secrets };
    await driver.node.nodeStageVolume(stage, call);
    await driver.node.nodePublishVolume({ ...stage, targetPath: "/pod/device" }, call);
    expect((await host.stat("/pod/device"))?.sizeBytes).toBe(Number(gibibyte));
    await driver.node.nodeUnpublishVolume({ volumeId, targetPath: "/pod/device" }, call);
    await driver.node.nodeUnstageVolume({ volumeId, stagingTargetPath: "/s" }, call);
    await unpublish(volumeId);
    expect(service.disks()[0]?.attachments).toEqual([]);
  });

  test.runIf(kind.provider === "portworx-volume")(
    "a blank volume gets the file system that its class asked of the provider",
    async () => {
      const { volumeId } = await create({ fs: "xfs" });
      await driver.node.nodeStageVolume(
        { volumeId, stagingTargetPath: "/s", volumeCapability: writer },
        call,
      );
      expect((await host.listMounts("/s"))[0]?.fsType).toBe("xfs");
    },
  );

  test.runIf(kind.provider === "azure-disk")("a volume's context says how it is cached", async () => {
    const { volume } = await create({ cachingMode: "ReadOnly" });
    expect(volume?.volumeContext).toEqual({ cachingmode: "ReadOnly" });
  });

  test("what the in-tree plugin made and wrote, the driver has under the translated handle", async () => {
    const isZonal = kind.topologyKey !== undefined;
    const name = kind.provider === "rbd" ? "kubernetes-dynamic-pvc-1" : "pv-1";
    const request = { name, zone: isZonal ? zone : "", sizeBytes: gibibyte, type: "", tags: {} };
    const { id } = await inTree.createDisk(request, never);
    const credentials = kind.isShare ? await inTree.shareCredentials(id, never) : ceph;
    const { devicePath } = await inTree.attachDisk(id, node1, never, { credentials });
    if (kind.isShare) await host.writeFileAtomic(`${devicePath}/data`, "by in-tree");
    else {
      await host.format(devicePath, "ext4");
      await host.makeDirectory("/m");
      await host.mountDevice(devicePath, "/m", { fsType: "ext4" });
      await host.writeFileAtomic("/m/data", "by in-tree");
      await host.unmount("/m");
    }
    await inTree.detachDisk(id, node1, never);

    const pv = translation.translateInTreePVToCSI({
      metadata: { name: "pv", labels: { "topology.kubernetes.io/zone": zone } },
      spec: { accessModes: ["ReadWriteOnce"], ...own.source(id, name) },
    });
    const { volumeHandle: volumeId = "", volumeAttributes } = pv.spec?.csi ?? {};
    const volumeContext = { ...volumeAttributes };
    const seen = await driver.controller.controllerGetVolume({ volumeId }, call);
    expect(seen.volume?.capacityBytes).toBe(gibibyte);
    await publish(volumeId, writer, volumeContext);
    const secrets = await secretsFor(id);
    const stage = { volumeId, stagingTargetPath: "/s", volumeCapability: writer, volumeContext, secrets };
    await driver.node.nodeStageVolume(stage, call);
    expect(await host.readFile("/s/data")).toBe("by in-tree");
    await driver.node.nodeUnstageVolume({ volumeId, stagingTargetPath: "/s" }, call);
    await unpublish(volumeId);
    await driver.controller.deleteVolume({ volumeId }, call);
    expect(service.disks()).toEqual([]);
  });

  test("what the driver made, the in-tree plugin has under the name that the way back gives", async () => {
    const { volumeId, volume } = await create();
    const pv = translation.translateCSIPVToInTree({
      metadata: { name: "pv" },
      spec: {
        accessModes: ["ReadWriteOnce"],
        csi: {
          driver: driverName,
          volumeHandle: volumeId,
          volumeAttributes: volume?.volumeContext ?? {},
          ...(kind.isShare ? { nodeStageSecretRef: secretRef } : {}),
        },
      },
    });
    const disk = await inTree.describeDisk(own.diskIdIn(pv.spec as unknown as Sources), never);
    expect(disk?.id).toBe(service.disks()[0]?.id);
    // And forth again: the same disk.
    const again = translation.translateInTreePVToCSI(pv).spec?.csi;
    const found = await driver.controller.controllerGetVolume({ volumeId: again?.volumeHandle ?? "" }, call);
    expect(found.volume?.volumeId).toBe(volumeId);
  });

  test.runIf(kind.policyParameter !== undefined)(
    "a storage policy is the provider's, or refused",
    async () => {
      const unknown = create({ ...own.parameters, storagePolicyName: "platinum" });
      await expect(unknown).rejects.toMatchObject({
        code: "INVALID_ARGUMENT",
        message: expect.stringMatching(
          /parameter storagepolicyname "platinum" of the class .*use one of .*gold, silver/,
        ),
      });
      expect(service.disks()).toEqual([]);
      await create({ ...own.parameters, storagePolicyName: "silver" });
      expect(service.disks()).toMatchObject([{ storagePolicy: "silver" }]);
    },
  );

  test("parameters, topology, limits and capabilities are the driver's", async () => {
    const unknown = codeOf(create({ ...own.parameters, nonsense: "1" }));
    expect(await unknown).toBe(own.refusesUnknown ? "INVALID_ARGUMENT" : "OK");
    const info = await driver.node.nodeGetInfo({}, call);
    expect(info.maxVolumesPerNode).toBe(own.maxVolumes);
    const topology = kind.topologyKey === undefined ? undefined : { [kind.topologyKey]: zone };
    expect(info.accessibleTopology?.segments).toEqual(topology);
    const { controller } = driver;
    const publishing = controller.controllerPublishVolume(
      { volumeId: "x", nodeId: info.nodeId, volumeCapability: writer },
      call,
    );
    expect(await codeOf(publishing)).toBe(isOnNode ? "UNIMPLEMENTED" : "NOT_FOUND");
    const snapshots = codeOf(controller.listSnapshots({}, call));
    expect(await snapshots).toBe(kind.isShare ? "UNIMPLEMENTED" : "OK");
    const many = codeOf(create(own.parameters, capability(Mode.MULTI_NODE_MULTI_WRITER)));
    // Shares, and what in-tree code takes in every mode as well.
    const isTaken = ["azure-file", "portworx-volume"].includes(kind.provider);
    expect((await many) === "INVALID_ARGUMENT").toBe(!isTaken);
    expect(await codeOf(controller.listVolumes({ startingToken: "made-up" }, call))).toBe("ABORTED");
    for (const volumeId of [
      "x",
      "constructor",
      "a#b",
      "projects/p/zones/z/disks/d",
      "mig_mons-a_image-b_zz",
    ]) {
      expect(await codeOf(controller.controllerGetVolume({ volumeId }, call))).toBe("NOT_FOUND");
    }
  });
});

describe("a node's driver that ends before any of its writes", () => {
  test.each(Object.keys(driverKinds))("%s: called again, all comes to its end", async (driverName) => {
    const { provider, isShare } = driverKind(driverName);
    let crashes = 0;
    for (let at = 1; ; at++) {
      let count = 0;
      let hasEnded = false;
      const host = new SimulatedHost({
        beforeChange(operation, path) {
          // The cloud is another process.
          if (path.startsWith("/cloud")) return;
          if (++count === at) hasEnded = true;
          if (hasEnded) throw new HostError(operation, path, "EINTR");
        },
      });
      const service = await openCloud(host, "/cloud");
      const cloud = service.forCaller({ provider, path: "csi", component: driverName });
      let lives = 0;
      const life = async () => {
        const socket = `/${++lives}`;
        const hub = inProcessCsi(testEnv());
        const services = createReferenceDriver(
          { ...testEnv(), host, cloud },
          { driverName, nodeName: "node-1", services: "both", recordsFile: "/records/r.json", zone },
        );
        await hub.serve(socket, services);
        const { controller, node } = hub.connect(socket);
        const { volume } = await controller.createVolume({ name: "a", volumeCapabilities: [writer] }, call);
        const volumeId = volume?.volumeId ?? "";
        const { nodeId } = await node.nodeGetInfo({}, call);
        const onNode = driverKind(driverName).attachesOn === "node";
        const secrets = provider === "rbd" ? { userID: ceph.user, userKey: ceph.key } : {};
        const stage = { volumeId, stagingTargetPath: "/s", volumeCapability: writer, secrets };
        if (!onNode) {
          await controller.controllerPublishVolume({ volumeId, nodeId, volumeCapability: writer }, call);
        }
        await node.nodeStageVolume(stage, call);
        await node.nodePublishVolume({ ...stage, targetPath: "/pods/mount" }, call);
        await host.appendFileDurable("/pods/mount/data", "x");
        await node.nodeUnpublishVolume({ volumeId, targetPath: "/pods/mount" }, call);
        await node.nodeUnstageVolume({ volumeId, stagingTargetPath: "/s" }, call);
        if (!onNode) await controller.controllerUnpublishVolume({ volumeId, nodeId }, call);
      };
      const wasCut = await life().then(
        () => false,
        () => true,
      );
      hasEnded = false;
      count = Number.NEGATIVE_INFINITY;
      if (wasCut) {
        crashes++;
        await life();
      }
      expect(await host.isMountPoint("/s"), `write ${at}`).toBe(false);
      expect(await host.stat("/pods/mount")).toBeUndefined();
      expect(service.disks()).toMatchObject([{ attachments: [] }]);
      expect(host.disks.loops()).toEqual([]);
      expect(host.disks.violations).toEqual([]);
      expect(await host.readFile("/records/r.json")).toContain('"volumes": {}');
      if (!wasCut) break;
    }
    expect(crashes).toBeGreaterThan(isShare ? 6 : 8);
  });
});

describe("secrets of nodes", () => {
  async function openDriver(driverName: string) {
    const host = new SimulatedHost();
    const service = await openCloud(host, "/cloud");
    const { provider } = driverKind(driverName);
    const cloud = service.forCaller({ provider, path: "csi", component: driverName });
    const hub = inProcessCsi(testEnv());
    for (const node of ["node-1", "node-2"]) {
      const env = { ...testEnv(), host, cloud };
      await hub.serve(
        `/${node}`,
        createReferenceDriver(env, { driverName, nodeName: node, services: "both" }),
      );
    }
    return { host, cloud, one: hub.connect("/node-1"), two: hub.connect("/node-2") };
  }

  test("an image is mapped with the right user and key alone; one node writes, several read", async () => {
    const { one, two, cloud } = await openDriver("rbd.csi.ceph.com");
    const made = await one.controller.createVolume({ name: "a", volumeCapabilities: [writer] }, call);
    const volumeId = made.volume?.volumeId ?? "";
    const stage = (driver: CsiConnection, mode: Mode, secrets: Record<string, string>) =>
      driver.node.nodeStageVolume(
        {
          volumeId,
          stagingTargetPath: driver === one ? "/s1" : "/s2",
          volumeCapability: capability(mode),
          secrets,
        },
        call,
      );
    const right = { userID: "admin", userKey: ceph.key };
    expect(await codeOf(stage(one, Mode.SINGLE_NODE_WRITER, {}))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(stage(one, Mode.SINGLE_NODE_WRITER, { ...right, userKey: "no" }))).toBe(
      "UNAUTHENTICATED",
    );
    expect(await codeOf(stage(one, Mode.SINGLE_NODE_WRITER, right))).toBe("OK");
    expect(await codeOf(stage(two, Mode.SINGLE_NODE_WRITER, right))).toBe("FAILED_PRECONDITION");
    await one.node.nodeUnstageVolume({ volumeId, stagingTargetPath: "/s1" }, call);
    for (const driver of [one, two]) {
      expect(await codeOf(stage(driver, Mode.MULTI_NODE_READER_ONLY, right))).toBe("OK");
    }
    expect((await cloud.listDisks(never))[0]?.attachments).toHaveLength(2);
    for (const [driver, path] of [
      [one, "/s1"],
      [two, "/s2"],
    ] as const) {
      await driver.node.nodeUnstageVolume({ volumeId, stagingTargetPath: path }, call);
    }
    expect((await cloud.listDisks(never))[0]?.attachments).toEqual([]);
  });

  test("an inline image of another pool is found by its context, and unmapped without it", async () => {
    const { one, cloud } = await openDriver("rbd.csi.ceph.com");
    const request = { name: "img", zone: "", sizeBytes: gibibyte, type: "", tags: { pool: "fast" } };
    await cloud.createDisk(request, never);
    const secrets = { userID: "admin", userKey: ceph.key };
    const stage = { volumeId: "img", stagingTargetPath: "/s", volumeCapability: writer, secrets };
    expect(await codeOf(one.node.nodeStageVolume(stage, call))).toBe("NOT_FOUND");
    await one.node.nodeStageVolume({ ...stage, volumeContext: { pool: "fast" } }, call);
    await one.node.nodePublishVolume({ ...stage, targetPath: "/p" }, call);
    await one.node.nodeUnpublishVolume({ volumeId: "img", targetPath: "/p" }, call);
    await one.node.nodeUnstageVolume({ volumeId: "img", stagingTargetPath: "/s" }, call);
    expect((await cloud.listDisks(never))[0]?.attachments).toEqual([]);
  });

  test("a share is opened with the account's key, or by the node's own right; nodes write to one", async () => {
    const { one, two, cloud, host } = await openDriver("file.csi.azure.com");
    const everyone = capability(Mode.MULTI_NODE_MULTI_WRITER);
    const { volume } = await one.controller.createVolume({ name: "a", volumeCapabilities: [everyone] }, call);
    const volumeId = volume?.volumeId ?? "";
    const { user, key } = await cloud.shareCredentials(volumeId.slice(0, -1), never);
    const stage = (driver: CsiConnection, path: string, secrets: Record<string, string>) =>
      driver.node.nodeStageVolume(
        { volumeId, stagingTargetPath: path, volumeCapability: everyone, secrets },
        call,
      );
    const secret = { azurestorageaccountname: user, azurestorageaccountkey: key };
    expect(await codeOf(stage(one, "/s1", { ...secret, azurestorageaccountkey: "no" }))).toBe(
      "UNAUTHENTICATED",
    );
    await stage(one, "/s1", secret);
    await stage(two, "/s2", {});
    await host.writeFileAtomic("/s1/data", "shared");
    expect(await host.readFile("/s2/data")).toBe("shared");
  });
});

test("a regional disk of GCE is in two of the zones that are asked for, and has a handle of its region", async () => {
  const service = await openCloud(new SimulatedHost(), "/cloud");
  const driverName = "pd.csi.storage.gke.io";
  const cloud = service.forCaller({ provider: "gce-pd", path: "csi", component: driverName });
  const hub = inProcessCsi(testEnv());
  const host = new SimulatedHost();
  await hub.serve(
    "/c",
    createReferenceDriver({ ...testEnv(), host, cloud }, { driverName, services: "controller" }),
  );
  const { controller } = hub.connect("/c");
  const segmentsOf = (value: string) => ({ segments: { "topology.gke.io/zone": value } });
  const request = {
    name: "r",
    parameters: { "replication-type": "regional-pd" },
    volumeCapabilities: [writer],
    accessibilityRequirements: { requisite: ["us-east-1b", "us-east-1c"].map(segmentsOf) },
  };
  const { volume } = await controller.createVolume(request, call);
  expect((await controller.createVolume(request, call)).volume).toEqual(volume);
  const volumeId = "projects/UNSPECIFIED/regions/us-east/disks/r";
  expect(volume).toMatchObject({
    volumeId,
    accessibleTopology: ["us-east-1b", "us-east-1c"].map(segmentsOf),
  });
  const attach = (n: number) => {
    const nodeId = driverKind(driverName).nodeIdOf(instance(n));
    return codeOf(controller.controllerPublishVolume({ volumeId, nodeId, volumeCapability: writer }, call));
  };
  expect(await attach(1)).toBe("FAILED_PRECONDITION");
  expect(await attach(3)).toBe("OK");
  const zonal = volumeId.replace("regions/us-east", "zones/us-east-1b");
  expect(await codeOf(controller.controllerGetVolume({ volumeId: zonal }, call))).toBe("NOT_FOUND");
  // With the driver's own project in place of none, as handles are repaired.
  const repaired = translation.repairVolumeHandle(
    driverName,
    volumeId,
    driverKind(driverName).nodeIdOf(instance(3)),
  );
  expect(repaired).not.toBe(volumeId);
  expect(await codeOf(controller.controllerGetVolume({ volumeId: repaired }, call))).toBe("OK");
});
