/** Inline volumes of pod templates become claims on the same disks, and disks again, while a writer's records stay. */
import { resources } from "@longshore/kube";
import { expect, test } from "vitest";
import { ConversionWorld } from "../../../packages/simulation/src/conversion-world.ts";

const options = { scaleDown: true };

test("the disk of a StatefulSet's template becomes a claim, and its own volume again", async () => {
  await ConversionWorld.play({ plugins: ["aws-ebs"], inline: true }, async (world) => {
    const operator = world.operator("m1");
    const result = await world.convert(operator, options);
    expect(result.failed).toEqual([]);
    expect(result.converted).toEqual([
      { volume: "StatefulSet default/writer", requests: expect.any(Number) },
    ]);
    await world.writersRun();
    expect(world.leftovers("csi", new Set())).toEqual([]);
    const [set] = world.cluster.objects(resources.statefulSets);
    expect(set?.spec?.template.spec?.volumes).toEqual([
      { name: "data", persistentVolumeClaim: { claimName: "writer-data" } },
    ]);

    const back = await world.undo(operator, options);
    expect([back.failed, back.refused]).toEqual([[], []]);
    await world.writersRun();
    expect(world.leftovers("in-tree", new Set())).toEqual([]);
    expect(await world.lostWrites()).toEqual([]);
    expect(world.violations).toEqual([]);
    const changed = world.driverCalls.filter(({ rpc }) => /CreateVolume|DeleteVolume/.test(rpc));
    expect(changed).toEqual([]);
  });
});
