/**
 * How the attach/detach controller attaches and detaches by VolumeAttachments, which its cache follows.
 * Source: docs/behaviour/csi-plugin.md 4-6.
 */
import { type KubeClient, KubeTransportError, resources } from "@longshore/kube";
import { featureGates } from "@longshore/runtime";
import { attachmentName } from "@longshore/storage";
import { afterEach, describe, expect, it } from "vitest";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import { csiPlugin } from "../../plugins/csi/csi-plugin.ts";
import { aBoundEbsVolume, aCsiNode, aNode, aPod, ControlPlane } from "../../testing/control-plane.ts";
import { startAttachDetachController } from "./attach-detach-controller.ts";

const driver = "ebs.csi.aws.com";
const csiName = `kubernetes.io/csi/${driver}^vol-a`;
const name = attachmentName("vol-a", driver, "n1");
const finalizers = ["external-attacher/x"];

let plane: ControlPlane;
afterEach(() => plane.stop());

async function world(kubeOf: (kube: KubeClient) => KubeClient = (kube) => kube): Promise<void> {
  plane = new ControlPlane();
  await plane.create(resources.nodes, aNode("n1"));
  await plane.create(resources.csiNodes, aCsiNode("n1", [driver], "kubernetes.io/aws-ebs"));
  await aBoundEbsVolume(plane, "a", "vol-a");
  startController(kubeOf(plane.kube));
  await plane.pass(1_000);
}

function startController(kube: KubeClient): void {
  plane.running(
    startAttachDetachController(
      { ...plane.env, kube, plugins: [csiPlugin()] },
      { gates: featureGates(volumeGates, { CSIMigrationAWS: true }) },
    ),
  );
}

const aPodOnN1 = () =>
  plane.create(resources.pods, aPod("p", "n1", { persistentVolumeClaim: { claimName: "a" } }));
const aVolumeAttachment = () =>
  plane.create(resources.volumeAttachments, {
    metadata: { name, finalizers },
    spec: { attacher: driver, nodeName: "n1", source: { persistentVolumeName: "pv-a" } },
  });
const setStatus = (status: object) =>
  plane.merge(resources.volumeAttachments, { name }, { status }, "status");
const events = () => plane.eventsOn("Pod", "p");

/** The disk is attached and listed, and its VolumeAttachment has the finalizer of an attacher. */
async function attached(): Promise<void> {
  await world();
  await aPodOnN1();
  await plane.pass(1_000);
  await plane.merge(resources.volumeAttachments, { name }, { metadata: { finalizers } });
  await setStatus({ attached: true });
  await plane.pass(1_000);
  expect(await plane.volumesAttached("n1")).toEqual([csiName]);
}

describe("attach", () => {
  it("takes a VolumeAttachment that is there as it is (csi-plugin.md 4)", async () => {
    await world();
    const before = await aVolumeAttachment();
    await aPodOnN1();
    await plane.pass(1_000);
    const after = await plane.get(resources.volumeAttachments, name);
    expect(after?.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
    await setStatus({ attached: true });
    await plane.pass(1_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
  });

  it("does not trust one that is being deleted, even one that says attached (csi-plugin.md 5)", async () => {
    await world();
    const { metadata } = await aVolumeAttachment();
    await setStatus({ attached: true });
    await plane.delete(resources.volumeAttachments, name);
    await aPodOnN1();
    await plane.pass(30_000);
    expect(await plane.volumesAttached("n1")).toEqual([]);
    expect(await events()).toEqual([expect.stringContaining("volume attachment is being deleted")]);
    await plane.merge(resources.volumeAttachments, { name }, { metadata: { finalizers: null } });
    await plane.pass(130_000);
    const next = await plane.get(resources.volumeAttachments, name);
    expect([next === undefined, next?.metadata.uid === metadata.uid]).toEqual([false, false]);
    await setStatus({ attached: true });
    await plane.pass(130_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
  });

  it("fails after two minutes, leaves the object, and takes it when it is attached after all (csi-plugin.md 4, 5)", async () => {
    await world();
    await aPodOnN1();
    await plane.pass(119_000);
    expect(await events()).toEqual([]);
    await plane.pass(2_000);
    expect(await events()).toEqual([expect.stringContaining("attachdetachment timeout for volume vol-a")]);
    await setStatus({ attached: true });
    await plane.pass(5_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
  });

  it("whose answer is lost is not taken for one that did not happen (csi-plugin.md 4)", async () => {
    let losesAnswers = true;
    await world(
      (kube) =>
        new Proxy(kube, {
          get(target, property) {
            const method = Reflect.get(target, property).bind(target);
            if (property !== "create") return method;
            return async (resource: { plural: string }, ...rest: unknown[]) => {
              const answer = await method(resource, ...rest);
              if (!losesAnswers || resource.plural !== "volumeattachments") return answer;
              losesAnswers = false;
              throw new KubeTransportError("the connection was lost");
            };
          },
        }),
    );
    await aPodOnN1();
    await plane.pass(300);
    // The pod goes before the attach is tried again: what may be there is deleted.
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(5_000);
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);
  });
});

describe("a driver that needs no attach any more", () => {
  /** The driver is removed, and installed again in a version that attaches nothing. */
  async function needsNoAttach(): Promise<void> {
    await plane.delete(resources.csiDrivers, driver);
    await plane.create(resources.csiDrivers, {
      metadata: { name: driver },
      spec: { attachRequired: false },
    });
    await plane.pass(1_000);
  }

  /** The pod's VolumeAttachment is there, and its attacher has begun. */
  async function attaching(): Promise<void> {
    await world();
    await plane.create(resources.csiDrivers, { metadata: { name: driver }, spec: { attachRequired: true } });
    await aPodOnN1();
    await plane.pass(1_000);
    await plane.merge(resources.volumeAttachments, { name }, { metadata: { finalizers } });
    await needsNoAttach();
  }

  const isBeingDeleted = async () =>
    (await plane.get(resources.volumeAttachments, name))?.metadata.deletionTimestamp !== undefined;

  it("leaves no VolumeAttachment of an attach that was under way (csi-plugin.md 4, 6)", async () => {
    await attaching();
    await setStatus({ attached: true });
    await plane.pass(130_000);
    expect(await isBeingDeleted()).toBe(true);
    await plane.merge(resources.volumeAttachments, { name }, { metadata: { finalizers: null } });
    await plane.pass(5_000);
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);
    expect(await plane.volumesAttached("n1")).toEqual([]);
  });

  it("leaves none of an attach that no attacher ever answered (csi-plugin.md 4, 6)", async () => {
    await attaching();
    await plane.pass(130_000);
    expect(await isBeingDeleted()).toBe(true);
  });

  it("leaves none of an attach whose controller has gone meanwhile (csi-plugin.md 4, 6)", async () => {
    await attaching();
    await plane.stop();
    startController(plane.kube);
    await setStatus({ attached: true });
    await plane.pass(130_000);
    expect(await isBeingDeleted()).toBe(true);
  });
});

describe("detach", () => {
  it("waits until the attacher has let the object go (csi-plugin.md 6)", async () => {
    await attached();
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(60_000);
    expect((await plane.get(resources.volumeAttachments, name))?.metadata.deletionTimestamp).toBeDefined();
    // A pod that comes meanwhile waits for the end of the detach, and gets a new VolumeAttachment.
    await aPodOnN1();
    await plane.pass(10_000);
    expect(await plane.volumesAttached("n1")).toEqual([]);
    await plane.merge(resources.volumeAttachments, { name }, { metadata: { finalizers: null } });
    await plane.pass(5_000);
    expect((await plane.get(resources.volumeAttachments, name))?.metadata.deletionTimestamp).toBeUndefined();
    await setStatus({ attached: true });
    await plane.pass(5_000);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
  });

  it("of a VolumeAttachment that is gone already is done at once (csi-plugin.md 6)", async () => {
    await attached();
    await plane.merge(resources.volumeAttachments, { name }, { metadata: { finalizers: null } });
    await plane.delete(resources.volumeAttachments, name);
    await plane.pass(1_000);
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(1_000);
    expect(await plane.volumesAttached("n1")).toEqual([]);
    // No attach begins while a detach is under way.
    await aPodOnN1();
    await plane.pass(1_000);
    expect(await plane.get(resources.volumeAttachments, name)).toBeDefined();
  });

  it("that the driver refuses lists the volume again, and is asked again until it is done (csi-plugin.md 5, 6; controllers.md A7)", async () => {
    await attached();
    await plane.delete(resources.pods, "p", "default");
    await plane.pass(1_000);
    expect(await plane.volumesAttached("n1")).toEqual([]);
    await setStatus({ attached: true, detachError: { message: "busy" } });
    await plane.pass(100);
    expect(await plane.volumesAttached("n1")).toEqual([csiName]);
    await plane.pass(30_000);
    await plane.merge(resources.volumeAttachments, { name }, { metadata: { finalizers: null } });
    await plane.pass(130_000);
    expect(await plane.list(resources.volumeAttachments)).toEqual([]);
    expect(await plane.volumesAttached("n1")).toEqual([]);
  });
});
