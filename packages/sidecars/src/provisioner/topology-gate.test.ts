import { resources } from "@longshore/kube";
import { expect, test } from "vitest";
import { aClaim, addNode, aStorageClass, sidecarWorld } from "../testing/world.ts";
import { startProvisioner } from "./provisioner.ts";

test.each([
  [true, "us-east-1a"],
  [false, undefined],
])("with the gate Topology=%s a volume is bound to %s", async (topology, zone) => {
  const world = await sidecarWorld();
  const { kube, signal } = world;
  await addNode(world, "node-a", "us-east-1a");
  await kube.create(resources.storageClasses, aStorageClass(), { signal });
  const provisioner = startProvisioner(world.env(), { topology });
  await kube.create(resources.persistentVolumeClaims, aClaim(), { signal });
  const pv = await world.eventually("a volume", async () => {
    const { items } = await kube.list(resources.persistentVolumes, { signal });
    return items[0];
  });
  const [term] = pv.spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  expect(term?.matchExpressions?.[0]?.values?.[0]).toBe(zone);
  await world.clock.run(provisioner.stop());
});
