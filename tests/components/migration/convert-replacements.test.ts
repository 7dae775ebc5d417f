/** Classes and claim templates become those of the driver and in-tree ones again, around pods that go on running. */
import { resources, type StatefulSet, type StorageClass, type Stored } from "@longshore/kube";
import { expect, test } from "vitest";
import { ConversionWorld } from "../../../packages/simulation/src/conversion-world.ts";

const podsOf = ({ cluster }: ConversionWorld) =>
  cluster.objects(resources.pods).map(({ metadata }) => `${metadata.name} ${metadata.uid}`);
const setOf = ({ cluster }: ConversionWorld) =>
  cluster.objects(resources.statefulSets)[0] as Stored<StatefulSet>;
const classesOf = ({ cluster }: ConversionWorld) =>
  Object.fromEntries(
    (cluster.objects(resources.storageClasses) as Stored<StorageClass>[]).map(({ metadata, provisioner }) => [
      metadata.name,
      provisioner,
    ]),
  );
const templateClass = (world: ConversionWorld) =>
  setOf(world).spec?.volumeClaimTemplates?.[0]?.spec?.storageClassName;

test("a class is made again under its name, and goes back", { timeout: 60_000 }, async () => {
  await ConversionWorld.play({ plugins: ["aws-ebs"] }, async (world) => {
    const operator = world.operator("m1");
    const [before, pods] = [classesOf(world), podsOf(world)];
    const options = { noVolumes: true, classes: true, templates: true };
    const result = await world.convert(operator, options);
    expect(result.failed).toEqual([]);
    const names = result.converted.map(({ volume }) => volume);
    expect(names).toContain(`StorageClass ${templateClass(world)}`);
    expect(names.filter((name) => name.startsWith("StatefulSet"))).toEqual([]);
    expect(Object.keys(classesOf(world)).sort()).toEqual(Object.keys(before).sort());
    expect(classesOf(world)[templateClass(world) ?? ""]).toBe("ebs.csi.aws.com");

    const undone = await world.undo(operator, options);
    expect([undone.failed, undone.refused]).toEqual([[], []]);
    expect(classesOf(world)).toEqual(before);
    expect(podsOf(world)).toEqual(pods);
    expect(world.violations).toEqual([]);
  });
});

test("templates name a new class beside the old one, and the pods stay", { timeout: 60_000 }, async () => {
  await ConversionWorld.play({ plugins: ["aws-ebs"], replicas: 2 }, async (world) => {
    const operator = world.operator("m1");
    const [classes, pods, old] = [classesOf(world), podsOf(world), templateClass(world)];
    const { uid } = setOf(world).metadata;
    const options = { noVolumes: true, classes: true, templates: true, classSuffix: "-csi" };
    const result = await world.convert(operator, options);
    expect(result.failed).toEqual([]);
    expect(templateClass(world)).toBe(`${old}-csi`);
    expect(setOf(world).metadata.uid).not.toBe(uid);
    expect(podsOf(world)).toEqual(pods);
    const owners = world.cluster
      .objects(resources.pods)
      .map(({ metadata }) => metadata.ownerReferences?.[0]?.uid);
    expect(new Set(owners)).toEqual(new Set([setOf(world).metadata.uid]));
    await world.writersRun();

    const undone = await world.undo(operator, options);
    expect([undone.failed, undone.refused]).toEqual([[], []]);
    expect(templateClass(world)).toBe(old);
    expect(classesOf(world)).toEqual(classes);
    expect(podsOf(world)).toEqual(pods);
    await world.writersRun();
    expect(await world.lostWrites()).toEqual([]);
    expect(world.violations).toEqual([]);
  });
});
