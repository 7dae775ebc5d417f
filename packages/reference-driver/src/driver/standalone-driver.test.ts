import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import {
  type CsiConnection,
  grpcConnector,
  grpcListener,
  VolumeCapability_AccessMode_Mode as Mode,
} from "@longshore/csi";
import { unprivilegedHost } from "@longshore/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { never, testEnv } from "../testing/cloud-fixture.ts";
import { type StandaloneDriverOptions, startStandaloneDriver } from "./standalone-driver.ts";

const env = testEnv();
const host = unprivilegedHost();
const call = { signal: never, timeoutMs: 10_000 };
const capability = {
  accessType: { case: "mount" as const, value: {} },
  accessMode: { mode: Mode.SINGLE_NODE_WRITER },
};

let dir: string;
let open: { stop(): Promise<void> }[];
beforeEach(async () => {
  dir = await realpath(await mkdtemp(`${tmpdir()}/ls-`));
  open = [];
});
afterEach(async () => {
  for (const thing of open.reverse()) await thing.stop();
  await rm(dir, { recursive: true, force: true });
});

async function start(socket: string, more: Partial<StandaloneDriverOptions> = {}) {
  const endpoint = `${dir}/${socket}`;
  const options = { endpoint, stateDir: `${dir}/state`, driverName: "own.example.com", nodeId: "here" };
  const component = await startStandaloneDriver(
    { ...env, host, listener: grpcListener(env) },
    { ...options, services: "all", ...more },
  );
  const driver = grpcConnector(env).connect(endpoint);
  const running = {
    driver,
    async stop() {
      driver.close();
      await component.stop();
    },
  };
  open.push(running);
  return running;
}

async function stop(running: { stop(): Promise<void> }) {
  open.splice(open.indexOf(running), 1);
  await running.stop();
}

const create = async (driver: CsiConnection, name: string) =>
  (await driver.controller.createVolume({ name, volumeCapabilities: [capability] }, call)).volume;

test("it begins with an empty directory, and goes on where it was", async () => {
  const first = await start("csi.sock", { topologyKey: "example.com/rack", zones: ["r1", "r2"] });
  expect((await first.driver.identity.getPluginInfo({}, call)).name).toBe("own.example.com");
  const info = await first.driver.node.nodeGetInfo({}, call);
  expect(info).toMatchObject({
    nodeId: "here",
    maxVolumesPerNode: 39n,
    accessibleTopology: { segments: { "example.com/rack": "r1" } },
  });
  const volume = await create(first.driver, "a");
  expect(volume?.accessibleTopology).toMatchObject([{ segments: { "example.com/rack": "r1" } }]);
  const elsewhere = await first.driver.controller.createVolume(
    {
      name: "b",
      volumeCapabilities: [capability],
      accessibilityRequirements: { requisite: [{ segments: { "example.com/rack": "r2" } }] },
    },
    call,
  );
  expect(elsewhere.volume?.accessibleTopology).toMatchObject([{ segments: { "example.com/rack": "r2" } }]);
  await stop(first);
  const second = await start("csi.sock", { topologyKey: "example.com/rack", zones: ["r1", "r2"] });
  expect((await create(second.driver, "a"))?.volumeId).toBe(volume?.volumeId);
  expect((await second.driver.controller.listVolumes({}, call)).entries).toHaveLength(2);
});

test("two of them do not share a directory, and the second leaves the first alone", async () => {
  const first = await start("csi.sock");
  await expect(start("other.sock")).rejects.toThrow(/already running/);
  expect(await create(first.driver, "a")).toBeDefined();
  await expect(start("csi.sock", { stateDir: `${dir}/other` })).rejects.toThrow(/in use by a live server/);
  // What a failed start had opened is closed again.
  await start("third.sock", { stateDir: `${dir}/other` });
});

test("controller and node in processes of their own are one driver, whichever comes first", async () => {
  const node = await start("node.sock", { services: "node" });
  await expect(node.driver.node.nodeGetInfo({}, call)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  const controller = await start("controller.sock", { services: "controller" });
  await expect(controller.driver.node.nodeGetInfo({}, call)).rejects.toMatchObject({ code: "UNIMPLEMENTED" });
  const info = async () => {
    for (;;) {
      const answer = await node.driver.node.nodeGetInfo({}, call).catch(() => undefined);
      if (answer !== undefined) return answer;
      await new Promise(setImmediate);
    }
  };
  const { nodeId } = await info();
  const volumeId = (await create(controller.driver, "a"))?.volumeId ?? "";
  const at = { volumeId, nodeId, volumeCapability: capability, stagingTargetPath: `${dir}/stage` };
  await controller.driver.controller.controllerPublishVolume(at, call);
  await host.makeDirectory(at.stagingTargetPath);
  await node.driver.node.nodeStageVolume(at, call);
  expect(await host.isMountPoint(at.stagingTargetPath)).toBe(true);
  await node.driver.node.nodeUnstageVolume(at, call);
});

test("it has as much room as it is given, and breaks the rules of its faults", async () => {
  const { driver } = await start("csi.sock", {
    capacityBytes: 2n * 1024n ** 3n,
    faults: ["get-volume-missing-accepted"],
  });
  expect((await driver.controller.getCapacity({}, call)).availableCapacity).toBe(2n * 1024n ** 3n);
  for (const name of ["a", "b"]) await create(driver, name);
  await expect(create(driver, "c")).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED" });
  expect((await driver.controller.getCapacity({}, call)).availableCapacity).toBe(0n);
  await driver.controller.controllerGetVolume({ volumeId: "vol-0" }, call);
});

test("volumes of pods are made where it is asked for, and outlive the process (csi-plugin.md 9.3)", async () => {
  const request = {
    volumeId: "csi-p",
    targetPath: `${dir}/pod`,
    volumeCapability: capability,
    volumeContext: { "csi.storage.k8s.io/ephemeral": "true", size: "8Mi" },
  };
  const without = await start("without.sock");
  await expect(without.driver.node.nodePublishVolume(request, call)).rejects.toMatchObject({
    code: "NOT_FOUND",
  });
  await stop(without);
  const first = await start("first.sock", { ephemeral: true });
  await first.driver.node.nodePublishVolume(request, call);
  await host.writeFileAtomic(`${dir}/pod/data`, "x");
  await stop(first);
  const second = await start("second.sock", { ephemeral: true });
  await second.driver.node.nodePublishVolume(request, call);
  expect(await host.readFile(`${dir}/pod/data`)).toBe("x");
  await second.driver.node.nodeUnpublishVolume(request, call);
  expect(await host.readDirectory(`${dir}/state/ephemeral/here`)).toEqual([]);
});
