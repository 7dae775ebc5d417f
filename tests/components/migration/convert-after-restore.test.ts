/**
 * A conversion whose API server is restored from a backup that was made before it or in its middle: run again where its journal is, it ends as
 * it would have, and no disk is deleted or made (docs/guides/convert.md).
 */
import { interceptWrites } from "@longshore/kube";
import { afterEach, describe, expect, test } from "vitest";
import { type ConversionWorld, conversionWorld } from "./conversion-world.ts";

type Backup = ReturnType<ConversionWorld["plane"]["backUp"]>;

let made: ConversionWorld | undefined;
afterEach(async () => {
  await made?.plane.stop();
  made = undefined;
});

/** A world whose conversion has ended, with backups from before it and after each of its writes. */
async function converted() {
  const world = await conversionWorld();
  made = world;
  const { plane, pair, run } = world;
  await pair("data");
  const backups: Backup[] = [plane.backUp()];
  const watched = interceptWrites(plane.kube, async (_write, signal, send) => {
    const answer = await send(signal);
    backups.push(plane.backUp());
    return answer;
  });
  expect((await run({}, watched)).failed).toEqual([]);
  return { ...world, backups };
}

/** As `longshore convert run` does: goes on with what is unfinished, or begins. */
async function runAgain({ journals, resume, run }: ConversionWorld) {
  const isOpen = [...(await journals()).values()].some(({ finishedAt }) => finishedAt === undefined);
  return isOpen ? resume() : run();
}

async function expectConverted({ claim, volume, cloud, journals }: ConversionWorld): Promise<void> {
  const now = await claim("data");
  expect(now).toMatchObject({ spec: { volumeName: "pv-data-csi" }, status: { phase: "Bound" } });
  expect(await volume("pv-data")).toBeUndefined();
  expect(await volume("pv-data-csi")).toMatchObject({
    spec: {
      csi: { volumeHandle: "vol-data" },
      persistentVolumeReclaimPolicy: "Delete",
      claimRef: { uid: now?.metadata.uid },
    },
  });
  expect(cloud.calls).toEqual([]);
  expect([...(await journals()).values()]).toMatchObject([{ finishedAt: /./ }]);
}

describe("an API server that is restored from a backup", () => {
  test("made before the conversion has the volume as it was: a run converts it again", async () => {
    const world = await converted();
    const [before] = world.backups;
    if (before === undefined) throw new Error("no backup");
    await world.plane.restore(before);
    await world.plane.pass(60_000);
    expect((await world.claim("data"))?.spec?.volumeName).toBe("pv-data");
    expect((await runAgain(world)).failed).toEqual([]);
    await expectConverted(world);
  });

  test("made after any write of the conversion is in its middle, although the file of its journal says that it has ended: a run goes on from there", async () => {
    const world = await converted();
    expect(world.backups.length).toBeGreaterThan(8);
    for (const [index, backup] of world.backups.entries()) {
      await world.plane.restore(backup);
      await world.plane.pass(60_000);
      const { failed } = await runAgain(world);
      expect([index, failed]).toEqual([index, []]);
      await expectConverted(world);
    }
  });

  test("made between the conversion and its undo has the volume converted, although the file of its journal says that it was undone: an undo carries it back", async () => {
    const world = await converted();
    const backup = world.plane.backUp();
    expect((await world.undo()).failed).toEqual([]);
    expect((await world.claim("data"))?.spec?.volumeName).toBe("pv-data");
    await world.plane.restore(backup);
    await world.plane.pass(60_000);
    expect((await world.claim("data"))?.spec?.volumeName).toBe("pv-data-csi");
    expect((await world.undo()).failed).toEqual([]);
    expect((await world.claim("data"))?.spec?.volumeName).toBe("pv-data");
    expect(await world.volume("pv-data-csi")).toBeUndefined();
    expect(world.cloud.calls).toEqual([]);
  });
});
