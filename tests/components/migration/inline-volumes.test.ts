/** Inline volumes of pod templates become claims on the same disks, and disks again, while a writer's records stay. */
import { type Deployment, type KubeClient, resources } from "@longshore/kube";
import { describe, expect, test } from "vitest";
import { ConversionWorld } from "../../../packages/simulation/src/conversion-world.ts";
import { missingRights, recordingClient } from "./rights-asked.ts";

const options = { scaleDown: true };
const inline = { plugins: ["aws-ebs"], inline: true } as const;
const { signal } = new AbortController();
const namespace = "default";

test("the disk of a StatefulSet's template becomes a claim, and its own volume again", async () => {
  await ConversionWorld.play(inline, async (world) => {
    const operator = world.operator("m1");
    const { kube, asked } = recordingClient(operator.kube);
    const result = await world.convert({ ...operator, kube }, options);
    expect(result.failed).toEqual([]);
    expect(result.converted).toEqual([
      { volume: "StatefulSet default/writer", requests: expect.any(Number) },
    ]);
    expect(result.converted[0]?.requests).toBeLessThan(100);
    await world.writersRun();
    expect(world.leftovers("csi", new Set())).toEqual([]);
    const [set] = world.cluster.objects(resources.statefulSets);
    expect(set?.spec?.template.spec?.volumes).toEqual([
      { name: "data", persistentVolumeClaim: { claimName: "writer-data" } },
    ]);
    const saved = await operator.host.readFile("/backup/templates/statefulset.default.writer.json");
    expect(saved).toContain("awsElasticBlockStore");

    const back = await world.undo({ ...operator, kube }, options);
    expect([back.failed, back.refused]).toEqual([[], []]);
    await world.writersRun();
    expect(world.leftovers("in-tree", new Set())).toEqual([]);
    expect(await world.lostWrites()).toEqual([]);
    expect(world.violations).toEqual([]);
    expect(world.driverCalls.filter(({ rpc }) => /CreateVolume|DeleteVolume/.test(rpc))).toEqual([]);
    expect(missingRights(asked)).toEqual([]);
    expect(asked).toContain("patch apps/statefulsets");
  });
});

/** The writer is the pod of a Deployment from now on. */
async function becomesDeployment(world: ConversionWorld): Promise<void> {
  const { kube } = world.cluster;
  const [set] = world.cluster.objects(resources.statefulSets);
  await world.scaleWriters(0);
  await kube.delete(resources.statefulSets, { namespace, name: "writer" }, { signal });
  const { template, selector } = set?.spec ?? {};
  const deployment = {
    metadata: { namespace, name: "web" },
    spec: { replicas: 1, selector, template },
  } as unknown as Deployment;
  await kube.create(resources.deployments, deployment, { signal });
  await world.until("its pod runs", () => readyPods(world).length === 1);
}

const readyPods = (world: ConversionWorld) =>
  world.cluster
    .objects(resources.pods)
    .filter(({ status }) => status?.phase === "Running")
    .map(({ spec }) => spec?.volumes?.find(({ name }) => name === "data"));

describe("a Deployment", () => {
  test("is changed only without a pod, and each pod is made from the template of its time", async () => {
    await ConversionWorld.play(inline, async (world) => {
      await becomesDeployment(world);
      const { kube, host } = world.operator("m1");
      const podsAtChange: number[] = [];
      const looking = new Proxy(kube, {
        get(target, key) {
          const member = target[key as keyof KubeClient] as (...args: unknown[]) => unknown;
          if (key !== "patch") return member;
          return (...args: Parameters<KubeClient["patch"]>) => {
            const { body, dryRun } = args[2];
            if (dryRun !== true && JSON.stringify(body).includes('"template"'))
              podsAtChange.push(world.cluster.objects(resources.pods).length);
            return Reflect.apply(member, target, args);
          };
        },
      });
      const result = await world.convert({ kube: looking, host }, options);
      expect([result.failed, result.converted.map(({ volume }) => volume)]).toEqual([
        [],
        ["Deployment default/web"],
      ]);
      await world.until("its pod runs", () => readyPods(world).length === 1);
      expect(readyPods(world)).toEqual([{ name: "data", persistentVolumeClaim: { claimName: "web-data" } }]);
      const back = await world.undo({ kube: looking, host }, options);
      expect([back.failed, back.refused]).toEqual([[], []]);
      await world.until("its pod runs", () => readyPods(world).length === 1);
      expect(readyPods(world)[0]?.awsElasticBlockStore?.volumeID).toMatch(/^vol-/);
      expect(podsAtChange).toEqual([0, 0]);
      expect(world.cluster.objects(resources.persistentVolumes)).toEqual([]);
      expect(world.violations).toEqual([]);
    });
  });

  test("that has replicas is refused, and not changed, unless it may be scaled", async () => {
    await ConversionWorld.play(inline, async (world) => {
      const result = await world.convert(world.operator("m1"), {});
      expect(result.converted).toEqual([]);
      expect(world.cluster.objects(resources.persistentVolumes)).toEqual([]);
      await world.writersRun();
    });
  });
});
