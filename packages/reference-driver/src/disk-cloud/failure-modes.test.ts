/** What providers do wrong, on demand: throttling, stuck attaches, answers that lag, zones that are out. */
import { SimulatedHost, VirtualClock } from "@longshore/runtime";
import { type CloudProvider, cloudProviders } from "@longshore/volumes";
import { describe, expect, test } from "vitest";
import { aDisk, instance, never, openCloud } from "../testing/cloud-fixture.ts";
import type { ProviderCloud } from "./provider-cloud.ts";

const [one, two] = [instance(1).instanceId, instance(2).instanceId];

async function openAt(provider: CloudProvider) {
  const clock = new VirtualClock();
  const host = new SimulatedHost();
  const service = await openCloud(host, "/cloud", { clock });
  const cloud = service.forCaller({ provider, path: "in-tree", component: "test" });
  return { clock, host, service, cloud };
}

const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => ({ code: "ok", message: "" }),
    (error: unknown) => error as { readonly code: string; readonly message: string },
  );

async function attachedTo(cloud: ProviderCloud, diskId: string): Promise<readonly (readonly string[])[]> {
  const disk = await cloud.describeDisk(diskId, never);
  return disk?.attachments.map((a) => [a.instanceId, a.devicePath === "" ? "attaching" : "attached"]) ?? [];
}

/** How each provider words a call too many. */
const throttled: Readonly<Record<CloudProvider, string>> = {
  "aws-ebs": "RequestLimitExceeded",
  "gce-pd": "rateLimitExceeded",
  "azure-disk": "TooManyRequests",
  "azure-file": "TooManyRequests",
  cinder: "overLimit",
  "vsphere-volume": "TaskInProgress",
  "portworx-volume": "ResourceExhausted",
  rbd: "EAGAIN (slow ops)",
};

test.each(cloudProviders)("%s throttles in its own words", async (provider) => {
  const { service, cloud } = await openAt(provider);
  await service.setKnobs("*", { failPerMille: 1000 }, never, provider);
  const failure = await failureOf(cloud.listInstances(never));
  expect([failure.code, failure.message.split(":")[0]]).toEqual(["Throttled", throttled[provider]]);
  await service.setKnobs("*", {}, never, provider);
  expect((await failureOf(cloud.listInstances(never))).code).toBe("ok");
});

describe("a stuck attach", () => {
  test("ends after its time", async () => {
    const { clock, service, cloud } = await openAt("gce-pd");
    const { id } = await cloud.createDisk(aDisk, never);
    await service.setKnobs("attachDisk", { stuckMs: 60_000 }, never, "gce-pd");
    const attach = () => failureOf(cloud.attachDisk(id, one, never));
    expect(await attach()).toMatchObject({
      code: "Unavailable",
      message: expect.stringContaining("stays attaching"),
    });
    expect(await attachedTo(cloud, id)).toEqual([[one, "attaching"]]);
    await clock.run(clock.sleep(59_000, never));
    expect((await attach()).code).toBe("Unavailable");
    await clock.run(clock.sleep(1_000, never));
    expect((await attach()).code).toBe("ok");
    expect(await attachedTo(cloud, id)).toEqual([[one, "attached"]]);
  });

  test("ends when it is released, and when the disk is detached", async () => {
    const { service, cloud } = await openAt("azure-disk");
    const [a, b] = [
      (await cloud.createDisk(aDisk, never)).id,
      (await cloud.createDisk({ ...aDisk, name: "b" }, never)).id,
    ];
    await service.setKnobs("attachDisk", { stuckMs: Number.MAX_SAFE_INTEGER }, never);
    for (const id of [a, b])
      expect((await failureOf(cloud.attachDisk(id, one, never))).code).toBe("Unavailable");
    await cloud.detachDisk(b, one, never);
    expect(await attachedTo(cloud, b)).toEqual([]);
    await cloud.deleteDisk(b, never);
    await service.setKnobs("attachDisk", {}, never);
    expect(await cloud.attachDisk(a, one, never)).toMatchObject({ lun: 0 });
  });

  test("is over when the cloud is started again", async () => {
    const { host, service, cloud } = await openAt("cinder");
    const { id } = await cloud.createDisk(aDisk, never);
    await service.setKnobs("attachDisk", { stuckMs: 60_000 }, never);
    await failureOf(cloud.attachDisk(id, one, never));
    await service.stop();
    const next = (await openCloud(host, "/cloud")).forCaller({
      provider: "cinder",
      path: "in-tree",
      component: "test",
    });
    expect(await attachedTo(next, id)).toEqual([[one, "attached"]]);
  });
});

test("answers lag behind by their time, and no more; changes do not", async () => {
  const { clock, service, cloud } = await openAt("aws-ebs");
  const before = await cloud.createDisk(aDisk, never);
  await service.setKnobs("describeDisk", { staleMs: 5_000 }, never);
  await service.setKnobs("listDisks", { staleMs: 5_000 }, never);
  const wait = (ms: number) => clock.run(clock.sleep(ms, never));
  const names = async () => (await cloud.listDisks(never)).map(({ name }) => name);
  const later = await cloud.createDisk({ ...aDisk, name: "later" }, never);
  await cloud.attachDisk(before.id, one, never);
  expect(await names()).toEqual(["pvc-1"]);
  expect(await cloud.describeDisk(later.id, never)).toBeUndefined();
  expect(await attachedTo(cloud, before.id)).toEqual([]);
  expect((await failureOf(cloud.attachDisk(later.id, one, never))).code).toBe("ok");
  await wait(3_000);
  await cloud.detachDisk(before.id, one, never);
  await wait(2_000);
  expect((await names()).length).toBe(2);
  expect(await attachedTo(cloud, before.id)).toEqual([[one, "attached"]]);
  await wait(3_000);
  expect(await attachedTo(cloud, before.id)).toEqual([]);
  await cloud.detachDisk(later.id, one, never);
  await cloud.deleteDisk(later.id, never);
  expect((await names()).length).toBe(2);
  // What changes after a long pause is compared with what was before it.
  await wait(100_000);
  await cloud.deleteDisk(before.id, never);
  expect(await names()).toEqual(["pvc-1"]);
  await service.setKnobs("listDisks", {}, never);
  expect(await names()).toEqual([]);
});

describe("a zone that is out", () => {
  test("stops what is about its disks and instances, and nothing else", async () => {
    const { service, cloud } = await openAt("gce-pd");
    const zonal = await cloud.createDisk(aDisk, never);
    const regional = await cloud.createDisk({ ...aDisk, name: "r", replicaZones: ["us-east-1b"] }, never);
    await cloud.attachDisk(regional.id, one, never);
    await service.setKnobs("*", { downZones: ["us-east-1a"] }, never);
    const codes = async (calls: readonly Promise<unknown>[]) =>
      Promise.all(calls.map(async (each) => (await failureOf(each)).code));
    const other = { ...aDisk, name: "x" };
    expect(
      await codes([
        cloud.attachDisk(zonal.id, one, never),
        cloud.resizeDisk(zonal.id, 2n ** 31n, never),
        cloud.createDisk(other, never),
        cloud.detachDisk(regional.id, one, never),
      ]),
    ).toEqual(["Unavailable", "Unavailable", "Unavailable", "Unavailable"]);
    expect(
      await codes([
        cloud.createDisk({ ...other, zone: "us-east-1b" }, never),
        cloud.resizeDisk(regional.id, 2n ** 31n, never),
        cloud.listDisks(never),
      ]),
    ).toEqual(["ok", "ok", "ok"]);
    expect((await failureOf(cloud.deleteDisk(zonal.id, never))).message).toBe(
      "backendError: zone us-east-1a is out of order by a fault set on the disk cloud: try again later",
    );
    await service.setKnobs("*", {}, never);
    await cloud.detachDisk(regional.id, one, never);
    await service.setKnobs("*", { downZones: ["us-east-1a"] }, never);
    expect((await failureOf(cloud.attachDisk(regional.id, two, never))).code).toBe("ok");
  });
});
