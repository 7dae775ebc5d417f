/** Ephemeral volumes of the reference driver, on every form of machine. */
import {
  type CsiConnection,
  inProcessCsi,
  VolumeCapability_AccessMode_Mode as Mode,
  VolumeUsage_Unit as Unit,
} from "@longshore/csi";
import { type Host, HostError, SimulatedHost } from "@longshore/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { csi, never, openCloud, testEnv } from "../testing/cloud-fixture.ts";
import { type HostForTest, hostForms } from "../testing/host-forms.ts";
import { createReferenceDriver } from "./reference-driver.ts";

const call = { signal: never, timeoutMs: 20_000 };
const ephemeral = { "csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.name": "p" };
const mounted = (fsType = "", volumeMountGroup = "") => ({
  accessType: { case: "mount" as const, value: { fsType, volumeMountGroup } },
  accessMode: { mode: Mode.SINGLE_NODE_WRITER },
});

/** The driver on this machine, as a new process of it would be. */
async function start(host: Host, dir: string, isOn = true): Promise<CsiConnection> {
  const service = await openCloud(host, `${dir}/cloud`);
  const hub = inProcessCsi(testEnv());
  const services = createReferenceDriver(
    { ...testEnv(), host, cloud: service.forCaller(csi) },
    {
      driverName: "ebs.csi.aws.com",
      nodeName: "node-1",
      services: "both",
      recordsFile: `${dir}/records.json`,
      ...(isOn ? { ephemeralDir: `${dir}/ephemeral` } : {}),
    },
  );
  await hub.serve("/csi.sock", services);
  return hub.connect("/csi.sock");
}

function requestOf(dir: string, pod: string, attributes: Readonly<Record<string, string>> = {}) {
  return {
    volumeId: `csi-${pod}`,
    targetPath: `${dir}/pods/${pod}`,
    volumeCapability: mounted(),
    volumeContext: { ...ephemeral, ...attributes },
  };
}

/** Directories of ephemeral volumes, mounts and records that are left. */
async function whatIsLeft(host: Host, dir: string): Promise<readonly unknown[]> {
  const { volumes } = JSON.parse((await host.readFile(`${dir}/records.json`)) ?? '{"volumes":{}}') as {
    readonly volumes: object;
  };
  const directories = (await host.readDirectory(`${dir}/ephemeral`)) ?? [];
  return [...directories, ...(await host.listMounts(dir)), ...Object.keys(volumes)];
}

describe.each(hostForms)("an ephemeral volume on the %s host", (form, make) => {
  let machine: HostForTest;
  let host: Host;
  let dir: string;
  let driver: CsiConnection;
  beforeEach(async () => {
    machine = await make();
    ({ host, dir } = machine);
    await host.makeDirectory(`${dir}/pods`);
    driver = await start(host, dir);
  });
  afterEach(() => machine.close());

  test("is made with its publish, keeps its data over a restart, and is gone with its unpublish", async () => {
    const request = requestOf(dir, "p", { size: "16Mi" });
    await driver.node.nodePublishVolume(request, call);
    await host.writeFileAtomic(`${request.targetPath}/data`, "x");
    driver = await start(host, dir);
    await driver.node.nodePublishVolume(request, call);
    expect(await host.readFile(`${request.targetPath}/data`)).toBe("x");
    const { volumeId, targetPath: volumePath } = request;
    const { usage } = await driver.node.nodeGetVolumeStats({ volumeId, volumePath }, call);
    const total = Number(usage.find(({ unit }) => unit === Unit.BYTES)?.total);
    expect(total).toBeGreaterThan(8 * 2 ** 20);
    if (form !== "unprivileged") expect(total).toBeLessThanOrEqual(16 * 2 ** 20);
    for (const _ of ["first", "again"]) await driver.node.nodeUnpublishVolume(request, call);
    expect(await host.stat(request.targetPath)).toBeUndefined();
    expect(await whatIsLeft(host, dir)).toEqual([]);
  });

  test("begins empty after one of the same id, and shares nothing with another", async () => {
    const [p, q] = [requestOf(dir, "p"), requestOf(dir, "q")];
    await driver.node.nodePublishVolume(p, call);
    await host.writeFileAtomic(`${p.targetPath}/data`, "x");
    await driver.node.nodePublishVolume(q, call);
    expect(await host.readFile(`${q.targetPath}/data`)).toBeUndefined();
    await driver.node.nodeUnpublishVolume(p, call);
    await driver.node.nodePublishVolume(p, call);
    expect(await host.readFile(`${p.targetPath}/data`)).toBeUndefined();
    for (const request of [p, q]) await driver.node.nodeUnpublishVolume(request, call);
    expect(await whatIsLeft(host, dir)).toEqual([]);
  });

  test("for reading alone takes no writes", async () => {
    const request = { ...requestOf(dir, "p"), readonly: true };
    await driver.node.nodePublishVolume(request, call);
    await driver.node.nodePublishVolume(request, call);
    expect(await host.listMounts(request.targetPath)).toMatchObject([{ readOnly: true }]);
    await driver.node.nodeUnpublishVolume(request, call);
    expect(await whatIsLeft(host, dir)).toEqual([]);
  });
});

describe("an ephemeral volume", () => {
  const dir = "/t";
  async function aDriver(isOn = true) {
    const host = new SimulatedHost();
    await host.makeDirectory(`${dir}/pods`);
    return { host, driver: await start(host, dir, isOn) };
  }

  test.each<[string, object, string]>([
    ["an attribute that is not known", { color: "blue" }, "volume_context color"],
    ["a size that is none", { size: "much" }, "volume_context size"],
    ["a size of nothing", { size: "0" }, "volume_context size"],
    ["a size beyond its bound", { size: "2Gi" }, "volume_context size"],
  ])("with %s is refused, and nothing is made", async (_, attributes, named) => {
    const { host, driver } = await aDriver();
    const refused = driver.node.nodePublishVolume(requestOf(dir, "p", attributes as never), call);
    await expect(refused).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining(named),
    });
    expect(await whatIsLeft(host, dir)).toEqual([]);
  });

  test.each([
    ["a block device", { ...mounted(), accessType: { case: "block" as const, value: {} } }, {}],
    ["an xfs too small for one", mounted("xfs"), { size: "64Mi" }],
  ])("as %s is refused", async (_, volumeCapability, attributes) => {
    const { driver } = await aDriver();
    const request = { ...requestOf(dir, "p", attributes), volumeCapability };
    await expect(driver.node.nodePublishVolume(request, call)).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
  });

  test("is one pod's: no second path, and no other size at the first", async () => {
    const { driver } = await aDriver();
    const request = requestOf(dir, "p");
    await driver.node.nodePublishVolume(request, call);
    const elsewhere = { ...request, targetPath: `${dir}/pods/q` };
    await expect(driver.node.nodePublishVolume(elsewhere, call)).rejects.toMatchObject({
      code: "FAILED_PRECONDITION",
    });
    const larger = requestOf(dir, "p", { size: "128Mi" });
    await expect(driver.node.nodePublishVolume(larger, call)).rejects.toMatchObject({
      code: "ALREADY_EXISTS",
    });
  });

  test("is none where the driver makes none: there is no such volume", async () => {
    const { driver } = await aDriver(false);
    await expect(driver.node.nodePublishVolume(requestOf(dir, "p"), call)).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
  });

  test("is removed by a driver that makes none any more", async () => {
    const { host, driver } = await aDriver();
    await driver.node.nodePublishVolume(requestOf(dir, "p"), call);
    await (await start(host, dir, false)).node.nodeUnpublishVolume(requestOf(dir, "p"), call);
    expect(await whatIsLeft(host, dir)).toEqual([]);
  });

  test("whose file system cannot be made leaves nothing, as no unpublish follows", async () => {
    const { host, driver } = await aDriver();
    host.format = async (device) => {
      throw new HostError("format", device, "EIO");
    };
    const failed = driver.node.nodePublishVolume(requestOf(dir, "p"), call);
    await expect(failed).rejects.toMatchObject({ code: "INTERNAL" });
    expect(await whatIsLeft(host, dir)).toEqual([]);
  });

  test("that cannot be published again after a reboot is kept, and the code says that it is there", async () => {
    const { host, driver } = await aDriver();
    const request = requestOf(dir, "p");
    await driver.node.nodePublishVolume(request, call);
    await host.writeFileAtomic(`${request.targetPath}/data`, "x");
    host.losePower();
    const again = await start(host, dir);
    const mount = host.mountDevice.bind(host);
    host.mountDevice = async (device) => {
      throw new HostError("mountDevice", device, "EIO");
    };
    await expect(again.node.nodePublishVolume(request, call)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    host.mountDevice = mount;
    await again.node.nodePublishVolume(request, call);
    expect(await host.readFile(`${request.targetPath}/data`)).toBe("x");
  });

  test.each(["the machine loses power", "the process is killed"])(
    "leaves nothing when %s before any write, and it is unpublished",
    async (how) => {
      let cuts = 0;
      for (let at = 1, isCut = true; isCut; at++) {
        let writes = Number.NEGATIVE_INFINITY;
        let isDead = false;
        const host: SimulatedHost = new SimulatedHost({
          beforeChange(operation, path) {
            if (++writes === at) {
              isDead = true;
              if (how === "the machine loses power") host.losePower();
            }
            if (isDead) throw new HostError(operation, path, "EINTR");
          },
        });
        await host.makeDirectory(`${dir}/pods`);
        const request = requestOf(dir, "p");
        const { node } = await start(host, dir);
        writes = 0;
        const story = node
          .nodePublishVolume(request, call)
          .then(() => node.nodeUnpublishVolume(request, call));
        const settled = story.catch(() => {});
        // A call to a machine without power never ends.
        await Promise.race([
          settled,
          (async () => {
            for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
          })(),
        ]);
        isCut = isDead;
        if (isCut) cuts++;
        isDead = false;
        writes = Number.NEGATIVE_INFINITY;
        await (await start(host, dir)).node.nodeUnpublishVolume(request, call);
        expect(await whatIsLeft(host, dir)).toEqual([]);
        expect(host.disks.loops()).toEqual([]);
      }
      expect(cuts).toBeGreaterThan(8);
    },
  );
});
