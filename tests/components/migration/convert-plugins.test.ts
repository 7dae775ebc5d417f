/** Volumes of every plugin become native CSI volumes and in-tree ones again, on the same disks, with the same data. */
import { resources } from "@longshore/kube";
import { cloudProviders } from "@longshore/volumes";
import { expect, test } from "vitest";
import { ConversionWorld } from "../../../packages/simulation/src/conversion-world.ts";

const signal = new AbortController().signal;
const disksOf = ({ cluster }: ConversionWorld) => cluster.cloud.disks().map(({ id }) => id);
const claimsOf = ({ cluster }: ConversionWorld) =>
  cluster.objects(resources.persistentVolumeClaims).map(({ metadata }) => metadata.name);

test("volumes of all plugins are converted and undone without touching a block", {
  timeout: 120_000,
}, async () => {
  await ConversionWorld.play({ plugins: cloudProviders, nodes: 1 }, async (world) => {
    const before = {
      disks: disksOf(world),
      claims: claimsOf(world),
      names: new Set(world.cluster.objects(resources.persistentVolumes).map(({ metadata }) => metadata.name)),
    };
    const operator = world.operator("m1");

    // While the writers write, nothing is begun.
    const busy = await world.plan(operator, {});
    expect(busy.volumes).toEqual([]);
    expect(busy.refused.flatMap(({ refusals }) => refusals.map(({ code }) => code))).toEqual(
      cloudProviders.map(() => "volume-in-use"),
    );

    await world.scaleWriters(0);
    const sums = world.fingerprints();
    expect(sums.size).toBeGreaterThan(6);
    expect(new Set(sums.values()).size).toBe(sums.size);
    const calls = (await world.cluster.cloud.calls(0, signal)).at(-1)?.seq ?? 0;
    const driverCalls = world.driverCalls.length;
    const converted = await world.convert(operator);
    expect(converted.failed).toEqual([]);
    expect(converted.converted).toHaveLength(cloudProviders.length);
    expect(world.fingerprints()).toEqual(sums);
    expect(disksOf(world)).toEqual(before.disks);
    expect(claimsOf(world)).toEqual(before.claims);
    const changes = (await world.cluster.cloud.calls(calls, signal)).filter(
      ({ op }) => !/^(list|describe)/.test(op),
    );
    expect(changes).toEqual([]);
    expect(world.driverCalls.slice(driverCalls).filter(({ rpc }) => /Volume$/.test(rpc))).toEqual([]);

    await world.scaleWriters(1);
    expect(world.leftovers("csi", before.names)).toEqual([]);
    expect(await world.lostWrites()).toEqual([]);

    // The way back, with the writers running: the run stops them and starts them again.
    const undone = await world.undo(operator, { scaleDown: true });
    expect(undone.failed).toEqual([]);
    expect(undone.refused).toEqual([]);
    await world.writersRun();
    expect(world.leftovers("in-tree", before.names)).toEqual([]);
    expect(await world.lostWrites()).toEqual([]);
    expect(disksOf(world)).toEqual(before.disks);
    const madeOrDeleted = (await world.cluster.cloud.calls(calls, signal)).filter(({ op }) =>
      ["createDisk", "deleteDisk"].includes(op),
    );
    expect(madeOrDeleted).toEqual([]);
    expect(world.driverCalls.filter(({ rpc }) => ["CreateVolume", "DeleteVolume"].includes(rpc))).toEqual([]);
    expect(world.violations).toEqual([]);
  });
});
