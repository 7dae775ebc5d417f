import { resources } from "@longshore/kube";
import { modifySecretNameAnnotation, modifySecretNamespaceAnnotation } from "@longshore/storage";
import { Life } from "@longshore/testing/kube";
import { describe, expect, it } from "vitest";
import { mortal } from "../testing/crashing.ts";
import {
  addBoundClaim,
  ask,
  eventReasons,
  resizingWorld,
  theClaim,
  theVolume,
} from "../testing/fake-resizing.ts";
import type { World } from "../testing/world.ts";
import { startResizer } from "./resizer.ts";

const current = async (world: World) => (await theClaim(world)).status?.currentVolumeAttributesClassName;
const progress = async (world: World) => (await theClaim(world)).status?.modifyVolumeStatus;
const conditionsOf = async (world: World) =>
  ((await theClaim(world)).status?.conditions ?? []).map(({ type }) => type);
const calls = ({ cloud }: World) => cloud.calls.filter((call) => call.startsWith("ControllerModify"));
const applied = (world: World, className: string) => async () =>
  (await current(world)) === className && (await progress(world)) === undefined;

async function addClass({ kube, signal }: World, name: string, iops: string): Promise<void> {
  const driverName = "ebs.csi.aws.com";
  await kube.create(
    resources.volumeAttributesClasses,
    { metadata: { name }, driverName, parameters: { iops } },
    { signal },
  );
}

async function worldWithClasses(options: { controllerExpands?: boolean; nodeExpands?: boolean } = {}) {
  const world = await resizingWorld({ modifies: true, ...options });
  await addBoundClaim(world);
  await addClass(world, "gold", "9000");
  await addClass(world, "silver", "3000");
  return world;
}

describe("the modifier", () => {
  it("applies the class that a claim names, and the next", async () => {
    const world = await worldWithClasses();
    const resizer = startResizer(world.env());
    await ask(world, { className: "gold" });
    await world.eventually("gold", applied(world, "gold"));
    expect((await theVolume(world)).spec?.volumeAttributesClassName).toBe("gold");
    expect(await conditionsOf(world)).toEqual([]);
    await ask(world, { className: "silver" });
    await world.eventually("silver", applied(world, "silver"));
    await world.clock.advance(3_600_000);
    expect(calls(world)).toEqual([
      'ControllerModifyVolume vol-9 {"iops":"9000"}',
      'ControllerModifyVolume vol-9 {"iops":"3000"}',
    ]);
    expect((await eventReasons(world)).slice(0, 2)).toEqual(["VolumeModify", "VolumeModifySuccessful"]);
    await resizer.stop();
  });

  it("works for a driver that cannot expand", async () => {
    const world = await worldWithClasses({ controllerExpands: false, nodeExpands: false });
    const resizer = startResizer(world.env());
    await ask(world, { className: "gold" });
    await world.eventually("gold", applied(world, "gold"));
    await resizer.stop();
  });

  it("waits for a class that does not exist yet", async () => {
    const world = await worldWithClasses();
    const resizer = startResizer(world.env());
    await ask(world, { className: "platinum" });
    await world.eventually("pending", async () => (await progress(world))?.status === "Pending");
    expect(await eventReasons(world)).toEqual(["VolumeModifyFailed"]);
    await addClass(world, "platinum", "99000");
    await world.eventually("platinum", applied(world, "platinum"), 1000);
    await resizer.stop();
  });

  it("goes back to the former class after an impossible one", async () => {
    const world = await worldWithClasses();
    const resizer = startResizer(world.env());
    await ask(world, { className: "silver" });
    await world.eventually("silver", applied(world, "silver"));
    world.cloud.next("ControllerModifyVolume", { code: "INVALID_ARGUMENT" });
    await ask(world, { className: "gold" });
    await world.eventually("infeasible", async () => (await progress(world))?.status === "Infeasible");
    expect(await conditionsOf(world)).toContain("ModifyVolumeError");
    await world.clock.advance(280_000);
    expect(calls(world)).toHaveLength(2);
    await ask(world, { className: "silver" });
    await world.eventually("silver again", applied(world, "silver"));
    expect(calls(world)).toHaveLength(3);
    expect(await conditionsOf(world)).toEqual([]);
    await resizer.stop();
  });

  it("ends what may be under way before it goes back, also after a restart", async () => {
    const world = await worldWithClasses();
    const first = startResizer(world.env());
    await ask(world, { className: "silver" });
    await world.eventually("silver", applied(world, "silver"));
    world.cloud.next("ControllerModifyVolume", { lost: true });
    await ask(world, { className: "gold" });
    await world.eventually("a call", async () => calls(world).length === 2);
    await first.stop();
    await ask(world, { className: "silver" });
    const second = startResizer(world.env());
    await world.eventually("silver again", applied(world, "silver"));
    expect(calls(world).slice(2)).toEqual([
      'ControllerModifyVolume vol-9 {"iops":"9000"}',
      'ControllerModifyVolume vol-9 {"iops":"3000"}',
    ]);
    await second.stop();
  });

  it("gives the driver the secret of the volume and, if asked to, the names of its objects", async () => {
    const world = await worldWithClasses();
    const seen: unknown[] = [];
    world.csi.intercept(async (call, proceed) => {
      if (call.rpc === "ControllerModifyVolume") seen.push(call.request);
      return proceed();
    });
    await world.kube.create(
      resources.secrets,
      { metadata: { name: "key", namespace: "default" }, data: { token: btoa("t-1") } },
      { signal: world.signal },
    );
    const annotations = { [modifySecretNameAnnotation]: "key", [modifySecretNamespaceAnnotation]: "default" };
    await world.kube.patch(
      resources.persistentVolumes,
      { name: "pv-1" },
      { type: "merge", body: { metadata: { annotations } } },
      { signal: world.signal },
    );
    const resizer = startResizer(world.env(), { extraModifyMetadata: true });
    await ask(world, { className: "gold" });
    await world.eventually("gold", applied(world, "gold"));
    expect(seen).toMatchObject([
      {
        secrets: { token: "t-1" },
        mutableParameters: {
          iops: "9000",
          "csi.storage.k8s.io/pvc/name": "data",
          "csi.storage.k8s.io/pvc/namespace": "default",
          "csi.storage.k8s.io/pv/name": "pv-1",
        },
      },
    ]);
    await resizer.stop();
  });

  it("serves resizes where the cluster has no such classes", async () => {
    const world = await resizingWorld({
      modifies: true,
      nodeExpansionRequired: false,
      emulatedVersion: "1.20",
    });
    await addBoundClaim(world);
    const resizer = startResizer(world.env());
    await ask(world, { storage: "2Gi" });
    await world.eventually(
      "resized",
      async () => (await theClaim(world)).status?.capacity?.storage === "2Gi",
    );
    await world.clock.advance(3_600_000);
    await resizer.stop();
  });

  it("resizes and modifies a claim that asks for both", async () => {
    const world = await worldWithClasses();
    const resizer = startResizer(world.env());
    await ask(world, { className: "gold", storage: "2Gi" });
    await world.eventually("gold", applied(world, "gold"));
    await world.eventually(
      "resized",
      async () => (await theClaim(world)).status?.allocatedResourceStatuses?.storage === "NodeResizePending",
    );
    expect(await conditionsOf(world)).toEqual(["Resizing", "FileSystemResizePending"]);
    await resizer.stop();
  });

  it.each(["before", "after"] as const)(
    "ends right after a crash at any call, %s it took effect",
    async (effect) => {
      for (let n = 1; ; n++) {
        const world = await worldWithClasses();
        await ask(world, { className: "gold" });
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
        await world.eventually(`gold after a crash at ${life.log.at(-1)}`, applied(world, "gold"));
        expect((await theVolume(world)).spec?.volumeAttributesClassName).toBe("gold");
        expect(await conditionsOf(world)).toEqual([]);
        await second.stop();
      }
    },
  );
});
