/** The protection controllers against the embedded API server, under the virtual clock. */
import { type KubeClient, resources } from "@longshore/kube";
import { laggingClient } from "@longshore/testing/kube";
import { afterEach, describe, expect, it } from "vitest";
import { aBoundEbsVolume, aPod, ControlPlane } from "../../testing/control-plane.ts";
import { isUsed } from "./claim-users.ts";
import { startProtectionControllers } from "./protection-controllers.ts";

const planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes.splice(0)) await plane.stop();
});

describe("protection", () => {
  it("keeps a claim while a scheduled pod uses it, and its volume while it is bound (controllers.md Part D)", async () => {
    const plane = new ControlPlane();
    planes.push(plane);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await plane.create(resources.pods, aPod("p", "n1", { persistentVolumeClaim: { claimName: "a" } }));
    plane.running(startProtectionControllers({ ...plane.env, kube: plane.kube }));
    await plane.pass(1_000);
    await plane.delete(resources.persistentVolumeClaims, "a", "default");
    await plane.delete(resources.persistentVolumes, "pv-a");
    await plane.pass(60_000);
    const claim = await plane.get(resources.persistentVolumeClaims, "a", "default");
    expect(claim?.metadata.finalizers).toEqual(["kubernetes.io/pvc-protection"]);
    expect(await plane.get(resources.persistentVolumes, "pv-a")).toBeDefined();

    await plane.delete(resources.pods, "p", "default");
    await plane.pass(1_000);
    expect(await plane.get(resources.persistentVolumeClaims, "a", "default")).toBeUndefined();
    expect(await plane.get(resources.persistentVolumes, "pv-a")).toBeDefined(); // Still says Bound.
    await plane.merge(
      resources.persistentVolumes,
      { name: "pv-a" },
      { status: { phase: "Released" } },
      "status",
    );
    await plane.pass(1_000);
    expect(await plane.get(resources.persistentVolumes, "pv-a")).toBeUndefined();
  });

  it("keeps a claim for a pod that only the API server shows (controllers.md Part D)", async () => {
    const plane = new ControlPlane();
    planes.push(plane);
    await aBoundEbsVolume(plane, "a", "vol-a");
    const late = laggingClient(plane.clock, plane.kube, { lagMs: 10_000, isDead: false });
    const kube = new Proxy(plane.kube, {
      get(target, property) {
        if (property !== "watch") return Reflect.get(target, property).bind(target);
        const watch: KubeClient["watch"] = (resource, options) =>
          (resource.plural === "pods" ? late : target).watch(resource, options);
        return watch;
      },
    });
    plane.running(startProtectionControllers({ ...plane.env, kube }));
    await plane.pass(1_000);
    await plane.create(resources.pods, aPod("p", "n1", { persistentVolumeClaim: { claimName: "a" } }));
    await plane.delete(resources.persistentVolumeClaims, "a", "default");
    await plane.pass(9_000);
    expect(await plane.get(resources.persistentVolumeClaims, "a", "default")).toBeDefined();
    await plane.pass(60_000);
    expect(await plane.get(resources.persistentVolumeClaims, "a", "default")).toBeDefined();
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(11_000);
    expect(await plane.get(resources.persistentVolumeClaims, "a", "default")).toBeUndefined();
  });

  it("lets no claim and no volume wait for the request of another (controllers.md Part D)", async () => {
    const plane = new ControlPlane();
    planes.push(plane);
    await aBoundEbsVolume(plane, "a", "vol-a");
    await aBoundEbsVolume(plane, "b", "vol-b");
    let isSlow = false;
    const kube = new Proxy(plane.kube, {
      get(target, property) {
        const method = Reflect.get(target, property).bind(target);
        if (property !== "update") return method;
        const update: KubeClient["update"] = async (resource, object, options) => {
          const isOfA = object.metadata?.name === "a" || object.metadata?.name === "pv-a";
          if (isSlow && isOfA) await plane.clock.sleep(3_600_000, options?.signal);
          return target.update(resource, object, options);
        };
        return update;
      },
    });
    plane.running(startProtectionControllers({ ...plane.env, kube }));
    await plane.pass(1_000);
    isSlow = true;
    const released = { status: { phase: "Released" } };
    for (const name of ["a", "b"]) {
      await plane.merge(resources.persistentVolumes, { name: `pv-${name}` }, released, "status");
      await plane.delete(resources.persistentVolumeClaims, name, "default");
      await plane.delete(resources.persistentVolumes, `pv-${name}`);
    }
    await plane.pass(1_000);
    const claims = await plane.list(resources.persistentVolumeClaims);
    const volumes = await plane.list(resources.persistentVolumes);
    expect([...claims, ...volumes].map(({ metadata }) => metadata.name)).toEqual(["a", "pv-a"]);
  });

  const claim = { metadata: { namespace: "default", name: "a" } };
  const pod = (fields: object, volume: object = { persistentVolumeClaim: { claimName: "a" } }) => {
    const base = aPod("p", "n1", volume);
    return { ...base, ...fields };
  };
  it.each([
    ["a running pod", pod({}), true],
    ["a finished pod", pod({ status: { phase: "Succeeded" } }), true],
    ["an unscheduled pod", { ...pod({}), spec: { ...pod({}).spec, nodeName: "" } }, false],
    ["another claim", pod({}, { persistentVolumeClaim: { claimName: "b" } }), false],
    ["another namespace", pod({ metadata: { name: "p", namespace: "x" } }), false],
  ])("%s", (_name, user, used) => {
    expect(isUsed(claim, [user as never])).toBe(used);
  });
  it.each([
    ["Running", true],
    ["Failed", false],
  ])("a generic ephemeral volume of a pod that is %s", (phase, used) => {
    const user = pod({ status: { phase } }, { ephemeral: { volumeClaimTemplate: {} } });
    expect(isUsed({ metadata: { namespace: "default", name: "p-v" } }, [user as never])).toBe(used);
  });
});
