/** The expand controller against the embedded API server, under the virtual clock. */
import { resources } from "@longshore/kube";
import { featureGates } from "@longshore/runtime";
import { storageResizerAnnotation } from "@longshore/storage";
import { afterEach, describe, expect, it } from "vitest";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import { awsEbsPlugin } from "../../plugins/aws-ebs/aws-ebs-plugin.ts";
import { aBoundEbsVolume, ControlPlane } from "../../testing/control-plane.ts";
import { FakeCloud } from "../../testing/fake-cloud.ts";
import { startExpandController } from "./expand-controller.ts";
import { mergedResizeConditions } from "./merged-resize-conditions.ts";

const planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes.splice(0)) await plane.stop();
});

interface Given {
  readonly isStuck?: boolean;
  /** Called before each call of the cloud. */
  readonly meanwhile?: (plane: ControlPlane, call: string) => Promise<void>;
}

async function grown(
  gates: Record<string, boolean>,
  pv: object = {},
  { isStuck = false, meanwhile }: Given = {},
) {
  const plane = new ControlPlane();
  planes.push(plane);
  const cloud = new FakeCloud(["n1"]);
  if (meanwhile !== undefined) cloud.before = (call) => meanwhile(plane, call);
  const resizeDisk = (_id: string, _bytes: bigint, signal: AbortSignal) =>
    new Promise<bigint>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  if (isStuck) Object.assign(cloud, { resizeDisk });
  const plugin = awsEbsPlugin({ cloud });
  const lookedUp: string[] = [];
  const watched = {
    ...plugin,
    canSupport: (spec: Parameters<typeof plugin.canSupport>[0]) => {
      lookedUp.push("canSupport");
      return plugin.canSupport(spec);
    },
  };
  await plane.create(resources.storageClasses, {
    metadata: { name: "grows" },
    provisioner: "kubernetes.io/aws-ebs",
    allowVolumeExpansion: true,
  });
  await aBoundEbsVolume(plane, "a", "vol-a", { pv, storageClassName: "grows" });
  plane.running(
    startExpandController(
      { ...plane.env, kube: plane.kube, plugins: [watched] },
      { gates: featureGates(volumeGates, gates) },
    ),
  );
  await plane.pass(1_000);
  const requests = { requests: { storage: "8Gi" } };
  const ref = { name: "a", namespace: "default" };
  await plane.merge(resources.persistentVolumeClaims, ref, { spec: { resources: requests } });
  await plane.pass(2_000);
  return { plane, cloud, lookedUp, claim: await plane.get(resources.persistentVolumeClaims, "a", "default") };
}

describe("expansion", () => {
  it("of a migrated volume is the resizer's: named before any plugin is looked up (controllers.md Part C)", async () => {
    const { plane, cloud, lookedUp, claim } = await grown({ CSIMigrationAWS: true });
    expect(claim?.metadata.annotations?.[storageResizerAnnotation]).toBe("ebs.csi.aws.com");
    expect(await plane.eventsOn("PersistentVolumeClaim", "a")).toEqual([
      "Normal ExternalExpanding: CSI migration enabled for kubernetes.io/aws-ebs; waiting for external resizer to expand the pvc",
    ]);
    expect([lookedUp, cloud.calls]).toEqual([[], []]);
  });

  it("in-tree grows the disk, then waits for the file system (controllers.md Part C)", async () => {
    const { plane, cloud, claim } = await grown({});
    expect(cloud.calls).toEqual(["resize vol-a"]);
    expect(claim?.metadata.annotations?.[storageResizerAnnotation]).toBe("kubernetes.io/aws-ebs");
    expect(claim?.status?.conditions?.map(({ type }) => type)).toEqual(["FileSystemResizePending"]);
    expect(claim?.status?.capacity?.storage).toBe("5Gi");
    expect((await plane.get(resources.persistentVolumes, "pv-a"))?.spec?.capacity?.storage).toBe("8Gi");
  });

  it("in-tree of a device that takes too long is reported, and tried again (controllers.md Part C)", async () => {
    const { plane, cloud, claim } = await grown({}, {}, { isStuck: true });
    expect(claim?.status?.conditions?.map(({ type }) => type)).toEqual(["Resizing"]);
    await plane.pass(121_000);
    expect(await plane.eventsOn("PersistentVolumeClaim", "a")).toEqual([
      expect.stringContaining("Warning VolumeResizeFailed"),
    ]);
    Reflect.deleteProperty(cloud, "resizeDisk"); // That of its class is back.
    await plane.pass(125_000); // The second attempt began before.
    const volume = await plane.get(resources.persistentVolumes, "pv-a");
    expect(volume?.spec?.capacity?.storage).toBe("8Gi");
  });

  it("in-tree changes no other volume that has taken the name meanwhile (controllers.md Part C)", async () => {
    const meanwhile = async (plane: ControlPlane, call: string) => {
      if (!call.startsWith("resize")) return;
      const volumes = resources.persistentVolumes;
      const [ref, { signal }] = [{ name: "pv-a" }, plane];
      const { claimRef: _, ...spec } = (await plane.kube.get(volumes, ref, { signal }))?.spec ?? {};
      const body = { metadata: { finalizers: null } };
      await plane.kube.patch(volumes, ref, { type: "merge", body }, { signal });
      await plane.kube.delete(volumes, ref, { signal });
      await plane.kube.create(volumes, { metadata: ref, spec }, { signal });
    };
    const { plane } = await grown({}, {}, { meanwhile });
    const volume = await plane.get(resources.persistentVolumes, "pv-a");
    expect(volume?.spec?.capacity?.storage).toBe("5Gi");
  });

  it("in-tree of a block volume is done with the disk (controllers.md Part C)", async () => {
    const { claim } = await grown({}, { volumeMode: "Block" });
    expect(claim?.status?.capacity?.storage).toBe("8Gi");
    expect(claim?.status?.conditions ?? []).toEqual([]);
  });
});

describe("conditions", () => {
  const at = (type: string, time: string) => ({ type, status: "True", lastTransitionTime: time });
  it.each([
    ["a managed one that is not wanted goes", [at("Resizing", "1")], [], []],
    [
      "one with the same status keeps its time",
      [at("Resizing", "1")],
      [at("Resizing", "2")],
      [at("Resizing", "1")],
    ],
    ["others stay", [at("Other", "1")], [at("Resizing", "2")], [at("Other", "1"), at("Resizing", "2")]],
    [
      "one follows the other",
      [at("Resizing", "1")],
      [at("FileSystemResizePending", "2")],
      [at("FileSystemResizePending", "2")],
    ],
  ])("%s", (_name, present, wanted, merged) => {
    expect(mergedResizeConditions(present, wanted)).toEqual(merged);
  });
});
