import { type CSIDriver, interceptWrites, resources } from "@longshore/kube";
import { recordingLogger } from "@longshore/runtime";
import { fakeDriver } from "@longshore/testing/sidecars";
import { describe, expect, it } from "vitest";
import { ClusterDriverRegistrarOptionError, startClusterDriverRegistrar } from "../index.ts";
import { sidecarWorld, type World } from "../testing/world.ts";

const name = "ebs.csi.aws.com";
const stored = ({ kube, signal }: World) => kube.get(resources.csiDrivers, { name }, { signal });
const foreign: CSIDriver = { metadata: { name }, spec: { attachRequired: false } };

describe("the cluster-driver-registrar", () => {
  it.each([
    ["a driver that attaches", { attaches: true }, undefined, true, false],
    ["a driver that attaches nothing", { attaches: false }, undefined, false, false],
    ["a driver that wants to know its pods", { attaches: true }, "v1", true, true],
  ])(
    "registers %s, until it ends",
    async (_, driver, podInfoMountVersion, attachRequired, podInfoOnMount) => {
      const world = await sidecarWorld(driver);
      const options = podInfoMountVersion === undefined ? {} : { podInfoMountVersion };
      const registrar = startClusterDriverRegistrar(world.env(), options);
      await world.clock.advance(1000);
      expect((await stored(world))?.spec).toMatchObject({ attachRequired, podInfoOnMount });
      await registrar.stop();
      expect(await stored(world)).toBeUndefined();
    },
  );

  it("leaves the object of another client alone, also when it ends, and logs once what is wrong with it", async () => {
    const world = await sidecarWorld();
    const before = await world.kube.create(resources.csiDrivers, foreign, { signal: world.signal });
    const logger = recordingLogger();
    const registrar = startClusterDriverRegistrar({ ...world.env(), logger });
    await world.clock.advance(600_000);
    const errors = logger.lines.filter(({ level }) => level === "error");
    expect(errors).toHaveLength(1);
    expect(errors[0]?.message).toContain("spec.attachRequired");
    await registrar.stop();
    expect((await stored(world))?.metadata).toMatchObject({
      uid: before.metadata.uid,
      resourceVersion: before.metadata.resourceVersion,
    });
  });

  it("makes its object again when a client deletes it", async () => {
    const world = await sidecarWorld();
    const registrar = startClusterDriverRegistrar(world.env());
    await world.clock.advance(1000);
    await world.kube.delete(resources.csiDrivers, { name }, { signal: world.signal });
    await world.clock.advance(121_000);
    expect(await stored(world)).toBeDefined();
    await registrar.stop();
  });

  it("repeats a look that failed when the next one is due", async () => {
    const world = await sidecarWorld();
    const attempts: number[] = [];
    const kube = interceptWrites(world.kube, async (_request, signal, send) => {
      attempts.push(world.clock.monotonicMs());
      if (attempts.length < 3) throw new Error("no connection");
      return send(signal);
    });
    const registrar = startClusterDriverRegistrar(world.env(kube), { checkMs: 60_000 });
    await world.clock.advance(600_000);
    const pauses = attempts.slice(1).map((ms, at) => ms - (attempts[at] ?? 0));
    expect(pauses).toEqual([60_000, 60_000]);
    expect(await stored(world)).toBeDefined();
    await registrar.stop();
  });

  it("after a crash, takes over what an earlier run made, and updates it for a driver that changed", async () => {
    const world = await sidecarWorld();
    startClusterDriverRegistrar(world.env(), { checkMs: 1e9 });
    await world.clock.advance(1000);
    expect((await stored(world))?.spec.attachRequired).toBe(true);
    world.csi.crash("/csi/csi.sock");
    await world.csi.serve("/csi/csi.sock", fakeDriver(world.cloud, { attaches: false }));
    const second = startClusterDriverRegistrar(world.env());
    await world.clock.advance(1000);
    expect((await stored(world))?.spec.attachRequired).toBe(false);
    await second.stop();
    expect(await stored(world)).toBeUndefined();
  });

  it("keeps the object when asked to", async () => {
    const world = await sidecarWorld();
    const registrar = startClusterDriverRegistrar(world.env(), { deleteOnExit: false });
    await world.clock.advance(1000);
    await registrar.stop();
    expect(await stored(world)).toBeDefined();
  });

  it("refuses a version of pod information that does not exist", async () => {
    const world = await sidecarWorld();
    expect(() => startClusterDriverRegistrar(world.env(), { podInfoMountVersion: "v2" })).toThrow(
      ClusterDriverRegistrarOptionError,
    );
  });
});
