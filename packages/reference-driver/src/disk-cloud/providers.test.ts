import { type HostError, SimulatedDisks, SimulatedHost } from "@longshore/runtime";
import { CloudError, type CloudProvider, cloudProviders } from "@longshore/volumes";
import { describe, expect, test } from "vitest";
import { aDisk, gibibyte, instance, never, openCloud } from "../testing/cloud-fixture.ts";
import { hostForms } from "../testing/host-forms.ts";
import { accountTags, defaultCephUsers } from "./credentials.ts";
import type { DiskCloudService } from "./disk-cloud.ts";

const one = instance(1).instanceId;
const two = instance(2).instanceId;
const admin = { user: "admin", key: defaultCephUsers.admin ?? "" };
const uuid = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const azureDisks = "/subscriptions/longshore/resourceGroups/longshore/providers/Microsoft.Compute/disks";

async function failureOf(
  call: Promise<unknown>,
): Promise<{ readonly code: string; readonly message: string }> {
  return call.then(
    () => ({ code: "ok", message: "" }),
    (error: unknown) => (error instanceof CloudError ? error : { code: "other", message: String(error) }),
  );
}

const codeOf = async (call: Promise<unknown>) => (await failureOf(call)).code;

function callerOf(service: DiskCloudService, provider: CloudProvider) {
  return service.forCaller({ provider, path: "in-tree", component: "test" });
}

/** A disk that any provider makes. */
function requestFor(provider: CloudProvider, name = "pvc-1") {
  const isAnywhere = ["azure-file", "portworx-volume", "rbd", "vsphere-volume"].includes(provider);
  return { ...aDisk, name, zone: isAnywhere ? "" : "us-east-1a" };
}

/** Form of the id, and what the link to the device is called, for a disk named pvc-1. */
const forms: Readonly<Record<CloudProvider, readonly [id: RegExp, device: (id: string) => RegExp]>> = {
  "aws-ebs": [/^vol-[0-9a-f]{17}$/, () => /^\/dev\/loop\d+$/],
  "gce-pd": [/^pvc-1$/, () => /\/disk\/by-id\/google-pvc-1$/],
  "azure-disk": [new RegExp(`^${azureDisks}/pvc-1$`), () => /\/disk\/azure\/scsi1\/lun0$/],
  "azure-file": [/^longshore#longshore#pvc-1$/, () => /^\/cloud\/shares\/vol-[0-9a-f]{17}$/],
  cinder: [new RegExp(`^${uuid}$`), (id) => new RegExp(`/disk/by-id/virtio-${id.slice(0, 20)}$`)],
  "vsphere-volume": [
    /^\[longshore\] kubevols\/pvc-1\.vmdk$/,
    () => /\/disk\/by-id\/wwn-0x6000c29[0-9a-f]{25}$/,
  ],
  "portworx-volume": [/^\d{5,19}$/, (id) => new RegExp(`/pxd/pxd${id}$`)],
  rbd: [/^rbd\/pvc-1$/, () => /\/rbd0$/],
};

describe.each(cloudProviders)("%s", (provider) => {
  async function credentials(cloud: ReturnType<typeof callerOf>, id: string) {
    if (provider === "azure-file") return { credentials: await cloud.shareCredentials(id, never) };
    return provider === "rbd" ? { credentials: admin } : {};
  }

  test("ids and devices have the provider's names, and survive a restart", async () => {
    const host = new SimulatedHost();
    const service = await openCloud(host, "/cloud");
    const cloud = callerOf(service, provider);
    const { id } = await cloud.createDisk(requestFor(provider), never);
    const [idForm, deviceForm] = forms[provider];
    expect(id).toMatch(idForm);
    expect((await cloud.createDisk(requestFor(provider), never)).id).toBe(id);
    const proof = await credentials(cloud, id);
    const { devicePath } = await cloud.attachDisk(id, one, never, proof);
    expect(devicePath).toMatch(deviceForm(id));
    const isLink = !["aws-ebs", "azure-file"].includes(provider);
    if (isLink) {
      expect(devicePath.startsWith(`/cloud/devices/${one}/`)).toBe(true);
      expect(await host.readLink(devicePath)).toMatch(/^\/dev\/loop\d+$/);
      await host.removeFile(devicePath);
    }
    await service.stop();
    const next = callerOf(await openCloud(host, "/cloud"), provider);
    if (isLink) expect(await host.readLink(devicePath)).toMatch(/^\/dev\/loop\d+$/);
    expect((await next.attachDisk(id, one, never, proof)).devicePath).toBe(devicePath);
    await next.detachDisk(id, one, never);
    if (isLink) expect(await host.readLink(devicePath)).toBeUndefined();
    expect(await codeOf(next.attachDisk("constructor", one, never, proof))).toBe("NotFound");
    await next.deleteDisk(id, never);
    expect(await next.listDisks(never)).toEqual([]);
    for (const dir of ["disks", "shares"]) {
      expect((await host.readDirectory(`/cloud/${dir}`)) ?? []).toEqual([]);
    }
  });

  test("another provider's disk of the same name is another one, and out of sight", async () => {
    const service = await openCloud(new SimulatedHost(), "/cloud");
    const cloud = callerOf(service, provider);
    const { id } = await cloud.createDisk(requestFor(provider), never);
    for (const other of cloudProviders.filter((name) => name !== provider)) {
      const theirs = callerOf(service, other);
      expect(await theirs.listDisks(never)).toEqual([]);
      expect(await theirs.describeDisk(id, never)).toBeUndefined();
      await theirs.deleteDisk(id, never);
      await theirs.createDisk(requestFor(other), never);
      await theirs.deleteDisk((await theirs.listDisks(never))[0]?.id ?? "", never);
    }
    expect((await cloud.listDisks(never)).map((disk) => disk.id)).toEqual([id]);
    expect(service.disks()).toHaveLength(1);
  });

  test("a failure has the provider's own code", async () => {
    const service = await openCloud(new SimulatedHost(), "/cloud");
    await service.setKnobs("listDisks", { failNext: 1 }, never, provider);
    const other = provider === "cinder" ? "gce-pd" : "cinder";
    expect(await codeOf(callerOf(service, other).listDisks(never))).toBe("ok");
    expect(await failureOf(callerOf(service, provider).listDisks(never))).toMatchObject({
      code: "Throttled",
      message: expect.stringMatching(/^[A-Za-z]+( \(slow ops\))?: listDisks was refused/),
    });
  });
});

describe("places", () => {
  test("a regional disk is attached in each of its zones, and nowhere else", async () => {
    const service = await openCloud(new SimulatedHost(), "/cloud");
    const cloud = callerOf(service, "gce-pd");
    const request = { ...aDisk, replicaZones: ["us-east-1b"] };
    const { id, replicaZones } = await cloud.createDisk(request, never);
    expect(replicaZones).toEqual(["us-east-1b"]);
    expect(await codeOf(cloud.attachDisk(id, instance(3).instanceId, never))).toBe("ZoneMismatch");
    for (const where of [one, two]) {
      expect(await codeOf(cloud.attachDisk(id, where, never))).toBe("ok");
      await cloud.detachDisk(id, where, never);
    }
    expect(await codeOf(cloud.createDisk(aDisk, never))).toBe("AlreadyExists");
    const twice = { ...request, name: "x", replicaZones: ["us-east-1a"] };
    expect((await failureOf(cloud.createDisk(twice, never))).message).toContain(
      "replicaZones has a zone twice",
    );
    const azure = callerOf(service, "azure-disk").createDisk(request, never);
    expect((await failureOf(azure)).message).toContain("leave replicaZones out");
  });

  test("a provider without zones refuses one, and attaches anywhere", async () => {
    const cloud = callerOf(await openCloud(new SimulatedHost(), "/cloud"), "vsphere-volume");
    const refused = cloud.createDisk({ ...aDisk, zone: "us-east-1a" }, never);
    expect((await failureOf(refused)).message).toContain('leave zone "us-east-1a" empty');
    const { id } = await cloud.createDisk({ ...aDisk, zone: "" }, never);
    for (const n of [1, 2, 3]) {
      expect(await codeOf(cloud.attachDisk(id, instance(n).instanceId, never))).toBe("ok");
      expect(await codeOf(cloud.attachDisk(id, instance((n % 3) + 1).instanceId, never))).toBe("InUse");
      await cloud.detachDisk(id, instance(n).instanceId, never);
    }
  });

  test.each([
    ["aws-ebs", 39],
    ["gce-pd", 127],
    ["azure-disk", 16],
    ["cinder", 256],
    ["vsphere-volume", 59],
    ["rbd", Number.MAX_SAFE_INTEGER],
  ] as const)(
    "%s: an instance has at most %i disks, each provider counted for itself",
    async (provider, limit) => {
      const instances = [{ ...instance(1), attachLimits: { cinder: 1 } }, instance(2)];
      const service = await openCloud(new SimulatedHost(), "/cloud", { instances });
      const cloud = callerOf(service, provider);
      expect((await cloud.describeInstance("node-2", never))?.attachLimit).toBe(limit);
      const limits = (await cloud.listInstances(never)).map(({ attachLimit }) => attachLimit);
      expect(limits).toEqual([provider === "cinder" ? 1 : limit, limit]);
      const small = callerOf(service, "cinder");
      const [a, b] = [
        await small.createDisk(aDisk, never),
        await small.createDisk({ ...aDisk, name: "b" }, never),
      ];
      await small.attachDisk(a.id, one, never);
      expect(await codeOf(small.attachDisk(b.id, one, never))).toBe("LimitExceeded");
      const proof = provider === "rbd" ? { credentials: admin } : {};
      const { id } = await cloud.createDisk(requestFor(provider, "c"), never);
      expect(await codeOf(cloud.attachDisk(id, one, never, proof))).toBe(
        provider === "cinder" ? "LimitExceeded" : "ok",
      );
    },
  );
});

test("LUNs: the lowest that is free, per instance; URIs without regard to case", async () => {
  const cloud = callerOf(await openCloud(new SimulatedHost(), "/cloud"), "azure-disk");
  const ids = [];
  for (const name of ["a", "b", "c"]) ids.push((await cloud.createDisk({ ...aDisk, name }, never)).id);
  const [a = "", b = "", c = ""] = ids;
  expect((await cloud.attachDisk(a, one, never)).lun).toBe(0);
  expect((await cloud.attachDisk(b.toUpperCase(), one, never)).lun).toBe(1);
  await cloud.detachDisk(a, one, never);
  expect(await cloud.attachDisk(c, one, never)).toEqual({
    instanceId: one,
    lun: 0,
    caching: "None",
    devicePath: `/cloud/devices/${one}/disk/azure/scsi1/lun0`,
  });
  expect((await cloud.describeDisk(b, never))?.attachments).toMatchObject([{ lun: 1 }]);
});

test("a machine caches a managed disk as the attach says, and as nothing else can", async () => {
  const service = await openCloud(new SimulatedHost(), "/cloud");
  const cloud = callerOf(service, "azure-disk");
  const { id } = await cloud.createDisk(requestFor("azure-disk"), never);
  const caching = async () => (await cloud.describeDisk(id, never))?.attachments.map((a) => a.caching);
  const refused = await failureOf(cloud.attachDisk(id, one, never, { caching: "Fast" }));
  expect(refused.code).toBe("InvalidArgument");
  expect(refused.message).toMatch(/"Fast" is not a mode of azure-disk: use one of None, ReadOnly, ReadWrite/);
  expect(await caching()).toEqual([]);
  expect(await cloud.attachDisk(id, one, never, { caching: "readwrite" })).toMatchObject({
    lun: 0,
    caching: "ReadWrite",
  });
  expect(await caching()).toEqual(["ReadWrite"]);
  await cloud.detachDisk(id, one, never);
  await cloud.attachDisk(id, one, never);
  expect(await caching()).toEqual(["None"]);
  const ebs = callerOf(service, "aws-ebs");
  const other = await ebs.createDisk(requestFor("aws-ebs", "pvc-2"), never);
  expect(await codeOf(ebs.attachDisk(other.id, one, never, { caching: "None" }))).toBe("InvalidArgument");
});

describe("names", () => {
  test.each(["../../etc", "a/b", "..", "a#b", "x".repeat(201)])("%s cannot stand in a path", async (name) => {
    const service = await openCloud(new SimulatedHost(), "/cloud");
    for (const provider of ["gce-pd", "azure-disk", "azure-file", "vsphere-volume", "rbd"] as const) {
      expect(await codeOf(callerOf(service, provider).createDisk(requestFor(provider, name), never))).toBe(
        "InvalidArgument",
      );
    }
    expect(service.disks()).toEqual([]);
  });

  test("an instance's id leads to no other directory", async () => {
    const host = new SimulatedHost();
    const instances = ["..", "a/../../b"].map((instanceId, n) => ({
      ...instance(1),
      instanceId,
      nodeName: `n${n}`,
    }));
    const cloud = callerOf(await openCloud(host, "/cloud", { instances }), "gce-pd");
    const paths = [];
    for (const { instanceId } of instances) {
      await cloud.createDisk(aDisk, never);
      paths.push((await cloud.attachDisk("pvc-1", instanceId, never)).devicePath);
      await cloud.detachDisk("pvc-1", instanceId, never);
    }
    expect(paths).toEqual([
      "/cloud/devices/%2E%2E/disk/by-id/google-pvc-1",
      "/cloud/devices/a%2F..%2F..%2Fb/disk/by-id/google-pvc-1",
    ]);
  });

  test("tags name pool, datastore and account", async () => {
    const service = await openCloud(new SimulatedHost(), "/cloud");
    const make = async (provider: CloudProvider, tags: Record<string, string>) =>
      (await callerOf(service, provider).createDisk({ ...requestFor(provider), tags }, never)).id;
    expect(await make("rbd", { pool: "fast" })).toBe("fast/pvc-1");
    // Of one name in another pool: another image.
    expect(await make("rbd", {})).toBe("rbd/pvc-1");
    expect(await make("vsphere-volume", { datastore: "ssd" })).toBe("[ssd] kubevols/pvc-1.vmdk");
    expect(await make("azure-file", { resourcegroup: "rg", storageaccount: "acc" })).toBe("rg#acc#pvc-1");
  });
});

describe("storage policies", () => {
  test("a disk of vSphere is made under one of the catalogue, and keeps it", async () => {
    const host = new SimulatedHost();
    const cloud = callerOf(await openCloud(host, "/cloud"), "vsphere-volume");
    expect(await cloud.listStoragePolicies(never)).toContain("gold");
    const request = { ...requestFor("vsphere-volume"), storagePolicy: "gold" };
    expect(await cloud.createDisk(request, never)).toMatchObject({ storagePolicy: "gold" });
    const later = callerOf(await openCloud(host, "/cloud"), "vsphere-volume");
    expect(await later.listDisks(never)).toMatchObject([{ storagePolicy: "gold" }]);
    expect(await failureOf(later.createDisk({ ...request, storagePolicy: "silver" }, never))).toMatchObject({
      code: "AlreadyExists",
      message: expect.stringContaining("storagePolicy gold, not silver"),
    });
  });

  test("an unknown one is refused with the names of those that are there, and nothing is made", async () => {
    const service = await openCloud(new SimulatedHost(), "/cloud", { storagePolicies: ["fast", "slow"] });
    const create = (provider: CloudProvider) =>
      callerOf(service, provider).createDisk({ ...requestFor(provider), storagePolicy: "platinum" }, never);
    expect(await failureOf(create("vsphere-volume"))).toMatchObject({
      code: "InvalidArgument",
      message: 'InvalidArgument: there is no storage policy "platinum": use one of fast, slow',
    });
    expect(await failureOf(create("gce-pd"))).toMatchObject({
      code: "InvalidArgument",
      message: expect.stringMatching(/gce-pd has no storage policies: leave storagePolicy "platinum" out/),
    });
    expect(service.disks()).toEqual([]);
  });
});

describe("shares", () => {
  test("a share is a directory, for all who have the key of its account", async () => {
    const host = new SimulatedHost();
    const service = await openCloud(host, "/cloud");
    const cloud = callerOf(service, "azure-file");
    const made = await cloud.createDisk(requestFor("azure-file"), never);
    const key = made.tags[accountTags.key] ?? "";
    expect(key).toMatch(/^[A-Za-z0-9+/]{86}==$/);
    expect(made.tags[accountTags.name]).toBe("longshore");
    const credentials = { user: "longshore", key };
    const attach = (where: string, proof = {}) => cloud.attachDisk(made.id, where, never, proof);
    const paths = [await attach(one, { credentials }), await attach(two, { credentials })];
    expect(paths[0]?.devicePath).toBe(paths[1]?.devicePath);
    await host.writeFileAtomic(`${paths[0]?.devicePath}/data`, "shared");
    expect(await codeOf(attach("i-0", { credentials }))).toBe("NotFound");
    for (const wrong of [undefined, { user: "other", key }, { user: "longshore", key: "bad" }]) {
      const failure = await failureOf(attach(one, wrong && { credentials: wrong }));
      expect(failure.code).toBe("Unauthenticated");
      expect(failure.message).not.toContain(key);
    }
    // Neither the resource group nor what follows the share distinguishes one from another.
    const seen = await cloud.describeDisk("#longshore#pvc-1#pv#default", never);
    expect(seen).toMatchObject({ id: made.id, attachments: [], tags: {} });
    expect(await host.readFile("/cloud/calls.jsonl")).not.toContain(key);
    await cloud.deleteDisk(made.id, never);
    expect(await host.readDirectory("/cloud/shares")).toEqual([]);
    // The account stays, with its key.
    const later = await cloud.createDisk(requestFor("azure-file", "other"), never);
    expect(later.tags[accountTags.key]).toBe(key);
    expect(await codeOf(cloud.createSnapshot({ name: "s", diskId: later.id }, never))).toBe(
      "InvalidArgument",
    );
  });
});

describe("images", () => {
  test("a user with its key maps an image; writers exclude others, readers do not", async () => {
    const host = new SimulatedHost();
    const service = await openCloud(host, "/cloud");
    const cloud = callerOf(service, "rbd");
    const { id } = await cloud.createDisk(requestFor("rbd"), never);
    const map = (where: string, more = {}) =>
      cloud.attachDisk(id, where, never, { credentials: admin, ...more });
    const wrong = await failureOf(map(one, { credentials: { user: "admin", key: "nope" } }));
    expect(wrong).toMatchObject({ code: "Unauthenticated", message: expect.not.stringContaining("nope") });
    expect(await codeOf(cloud.attachDisk(id, one, never))).toBe("Unauthenticated");
    expect(await codeOf(map(one, { credentials: { user: "toString", key: "" } }))).toBe("Unauthenticated");
    await map(one);
    expect(await codeOf(map(two))).toBe("InUse");
    expect(await codeOf(map(two, { readOnly: true }))).toBe("InUse");
    await cloud.detachDisk(id, one, never);
    const readers = [one, two, instance(3).instanceId];
    for (const reader of readers) await map(reader, { readOnly: true });
    expect(await codeOf(map(two))).toBe("ok"); // It is mapped there.
    const described = await cloud.describeDisk(id, never);
    expect(described?.attachments.map((a) => [a.instanceId, a.devicePath])).toEqual(
      readers.map((reader) => [reader, `/cloud/devices/${reader}/rbd0`]),
    );
    await service.stop();
    const next = callerOf(await openCloud(host, "/cloud"), "rbd");
    for (const reader of readers) {
      expect(await host.readLink(`/cloud/devices/${reader}/rbd0`)).toMatch(/loop/);
      expect(await codeOf(next.deleteDisk(id, never))).toBe("InUse");
      await next.detachDisk(id, reader, never);
      expect(await host.readLink(`/cloud/devices/${reader}/rbd0`)).toBeUndefined();
    }
    expect(host.disks.loops()).toEqual([]);
    await next.deleteDisk(id, never);
  });
});

describe.each(hostForms)("on the %s host", (_form, make) => {
  test.each(cloudProviders.filter((name) => name !== "azure-file"))(
    "%s: the device's name can be formatted, mounted and grown, and follows the disk",
    async (provider) => {
      const { host, dir, close } = await make();
      const service = await openCloud(host, `${dir}/cloud`);
      const cloud = callerOf(service, provider);
      const { id } = await cloud.createDisk(requestFor(provider), never);
      const credentials = { credentials: admin };
      const { devicePath } = await cloud.attachDisk(id, one, never, credentials);
      await host.format(devicePath, "ext4");
      await host.makeDirectory(`${dir}/m`);
      await host.mountDevice(devicePath, `${dir}/m`, { fsType: "ext4" });
      await host.writeFileAtomic(`${dir}/m/data`, "kept");
      expect(await codeOf(cloud.detachDisk(id, one, never))).toBe("InUse");
      await cloud.resizeDisk(id, 2n * gibibyte, never);
      const grown = await host.growFileSystem(devicePath, `${dir}/m`).then(
        () => undefined,
        ({ code }: HostError) => code,
      );
      await host.unmount(`${dir}/m`);
      // Without CAP_SYS_RESOURCE the kernel lets ext4 grow only unmounted.
      if (grown === "EPERM") await host.growUnmounted(devicePath);
      else expect(grown).toBeUndefined();
      await cloud.detachDisk(id, one, never);
      const again = await cloud.attachDisk(id, one, never, credentials);
      expect(again.devicePath).toBe(devicePath);
      expect(await host.fileSystemOf(devicePath)).toBe("ext4");
      await cloud.detachDisk(id, one, never);
      await service.stop();
      await close();
    },
  );
});

describe("power lost at any write", () => {
  /** Attach and detach at every instance in turn; of images at all at once, to read. */
  async function life(service: DiskCloudService, provider: CloudProvider): Promise<void> {
    const cloud = callerOf(service, provider);
    const { id } = await cloud.createDisk(requestFor(provider), never);
    const proof = provider === "azure-file" ? await cloud.shareCredentials(id, never) : admin;
    const isShared = provider === "rbd" || provider === "azure-file";
    const instances = isShared ? [one, two] : [one];
    for (const each of instances) {
      await cloud.attachDisk(id, each, never, { credentials: proof, readOnly: isShared });
    }
    for (const each of instances) await cloud.detachDisk(id, each, never);
    await cloud.deleteDisk(id, never);
  }

  /** Links below the directory of devices. */
  async function linksOf(host: SimulatedHost, dir: string): Promise<readonly string[]> {
    const links: string[] = [];
    for (const name of (await host.readDirectory(dir)) ?? []) {
      const path = `${dir}/${name}`;
      if ((await host.stat(path))?.kind === "symlink") links.push(path);
      else links.push(...(await linksOf(host, path)));
    }
    return links;
  }

  test.each(cloudProviders)("%s: done again, nothing is left", async (provider) => {
    let at = 1;
    for (; ; at++) {
      let count = 0;
      let lost: () => void = () => {};
      const powerLost = new Promise<"lost">((resolve) => {
        lost = () => resolve("lost");
      });
      const host: SimulatedHost = new SimulatedHost({
        beforeChange() {
          if (++count !== at) return;
          host.losePower();
          lost();
        },
      });
      const run = async () => life(await openCloud(host, "/cloud"), provider);
      const wasCut = (await Promise.race([run(), powerLost])) === "lost";
      count = Number.NEGATIVE_INFINITY;
      const service = await openCloud(host, "/cloud");
      for (const disk of service.disks()) {
        // What is attached has its link again, and what is not has none.
        const paths = disk.attachments.map(({ devicePath }) => devicePath).filter((path) => path !== "");
        const names = provider === "aws-ebs" ? [] : paths.sort();
        expect((await linksOf(host, "/cloud/devices")).toSorted(), `write ${at}`).toEqual(names);
      }
      await life(service, provider);
      expect(await linksOf(host, "/cloud/devices"), `write ${at}`).toEqual([]);
      expect(host.disks.loops()).toEqual([]);
      for (const dir of ["disks", "shares"]) {
        expect((await host.readDirectory(`/cloud/${dir}`)) ?? []).toEqual([]);
      }
      if (!wasCut) break;
    }
    expect(at).toBeGreaterThan(8);
  });
});

test("devices lie where machines with file systems of their own see them", async () => {
  const disks = new SimulatedDisks();
  const service = await openCloud(new SimulatedHost({ name: "cloud", disks }), "/cloud", {
    deviceDir: "/dev/longshore",
  });
  const cloud = callerOf(service, "gce-pd");
  const { id } = await cloud.createDisk(aDisk, never);
  const { devicePath } = await cloud.attachDisk(id, one, never);
  const node = new SimulatedHost({ name: "node-1", disks });
  expect(devicePath).toBe(`/dev/longshore/${one}/disk/by-id/google-pvc-1`);
  await node.format(devicePath, "ext4");
  await node.makeDirectory("/m");
  await node.mountDevice(devicePath, "/m", { fsType: "ext4" });
  expect(await codeOf(cloud.detachDisk(id, one, never))).toBe("InUse");
});

test("a state file from before there were providers holds disks of EBS", async () => {
  const host = new SimulatedHost();
  await host.makeDirectory("/cloud/disks");
  const id = "vol-0123456789abcdef0";
  await host.allocateFile(`/cloud/disks/${id}`, Number(gibibyte));
  const disk = { ...aDisk, id, sizeBytes: gibibyte.toString(), state: "attached", instanceId: one };
  const before = {
    version: 1,
    disks: { [id]: { ...disk, devicePath: "/dev/loop0" } },
    instances: { [one]: instance(1) },
    snapshots: { "snap-1": { id: "snap-1", name: "s", diskId: id, sizeBytes: "1", state: "ready" } },
  };
  await host.writeFileAtomic("/cloud/state.json", JSON.stringify(before));
  const service = await openCloud(host, "/cloud");
  const cloud = service.forCaller({ path: "csi", component: "ebs.csi.aws.com" });
  expect(await cloud.listDisks(never)).toMatchObject([{ id, attachments: [{ instanceId: one }] }]);
  expect(await cloud.listSnapshots(never)).toMatchObject([{ id: "snap-1", diskId: id }]);
  expect(await callerOf(service, "gce-pd").listDisks(never)).toEqual([]);
  await cloud.detachDisk(id, one, never);
  await cloud.deleteDisk(id, never);
  // What it writes of EBS, the version before reads as well.
  await cloud.createDisk(aDisk, never);
  const after = JSON.parse((await host.readFile("/cloud/state.json")) ?? "");
  expect(Object.keys(Object.values(after.disks)[0] as object).sort()).toEqual(
    ["id", "name", "zone", "type", "tags", "sizeBytes", "state"].sort(),
  );
});
