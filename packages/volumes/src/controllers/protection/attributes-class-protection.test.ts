/** The protection of VolumeAttributesClasses: its table, and against the embedded API server. */
import { resources } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { afterEach, describe, expect, it } from "vitest";
import { ControlPlane } from "../../testing/control-plane.ts";
import { decideAttributesClassProtection } from "./decide-attributes-class-protection.ts";
import { startProtectionControllers } from "./protection-controllers.ts";

const planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes.splice(0)) await plane.stop();
});

const claimOf = (attributesClass: string) => ({
  metadata: { name: "a", namespace: "default" },
  spec: {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
    volumeAttributesClassName: attributesClass,
  },
});

async function withClass(): Promise<ControlPlane> {
  const plane = new ControlPlane();
  planes.push(plane);
  plane.running(startProtectionControllers({ ...plane.env, kube: plane.kube }));
  await plane.create(resources.volumeAttributesClasses, {
    metadata: { name: "gold" },
    driverName: "ebs.csi.aws.com",
    parameters: { iops: "4000" },
  });
  await plane.pass(1_000);
  return plane;
}

describe("VolumeAttributesClasses", () => {
  it("a class gets the finalizer, and goes when it is deleted and no object names it (controllers.md Part D)", async () => {
    const plane = await withClass();
    const stored = await plane.get(resources.volumeAttributesClasses, "gold");
    expect(stored?.metadata.finalizers).toEqual(["kubernetes.io/vac-protection"]);
    await plane.delete(resources.volumeAttributesClasses, "gold");
    await plane.pass(10_000);
    expect(await plane.get(resources.volumeAttributesClasses, "gold")).toBeUndefined();
  });

  it("a class stays while a claim names it, in its spec or as the one in force (controllers.md Part D)", async () => {
    const plane = await withClass();
    await plane.create(resources.persistentVolumeClaims, claimOf("gold"));
    await plane.delete(resources.volumeAttributesClasses, "gold");
    await plane.pass(600_000);
    expect(await plane.get(resources.volumeAttributesClasses, "gold")).toBeDefined();

    const ref = { namespace: "default", name: "a" };
    const current = { status: { phase: "Bound", currentVolumeAttributesClassName: "gold" } };
    await plane.merge(resources.persistentVolumeClaims, ref, current, "status");
    await plane.merge(resources.persistentVolumeClaims, ref, { spec: { volumeAttributesClassName: "iron" } });
    await plane.pass(600_000);
    expect(await plane.get(resources.volumeAttributesClasses, "gold")).toBeDefined();

    const other = { status: { currentVolumeAttributesClassName: "iron" } };
    await plane.merge(resources.persistentVolumeClaims, ref, other, "status");
    await plane.pass(10_000);
    expect(await plane.get(resources.volumeAttributesClasses, "gold")).toBeUndefined();
  });
});

describe("the decision", () => {
  const decide = pureDecision(decideAttributesClassProtection);
  const finalizers = ["kubernetes.io/vac-protection"];
  const gold = (metadata: object) => ({
    metadata: { name: "gold", uid: "1", resourceVersion: "1", ...metadata },
    driverName: "d.example.com",
  });
  const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z" };
  it.each([
    ["a new class", gold({}), false, 0, "addFinalizer"],
    ["a protected class", gold({ finalizers }), true, 0, "settle"],
    ["a deleted class in use", gold({ ...deleted, finalizers }), true, 0, "settle"],
    ["a class deleted just now", gold({ ...deleted, finalizers }), false, 5000, "waitForCache"],
    ["a deleted class without users", gold({ ...deleted, finalizers }), false, 0, "removeFinalizer"],
    ["a deleted class with other finalizers", gold(deleted), false, 0, "settle"],
  ])("%s", (_name, attributesClass, isUsed, cacheLagMs, step) => {
    expect(decide({ attributesClass, isUsed, cacheLagMs }).step).toBe(step);
  });
});
